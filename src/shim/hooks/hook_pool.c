/* Hooks of memory pools and of allocations in stream order. */
#include "abi/cuda_graph.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"
#include "shim/residency/residency.h"
#include "shim/time/driver_calls.h"

static bool is_captured(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	return ll_real()->cuStreamIsCapturing(stream, &capture) == LL_CUDA_SUCCESS &&
	       capture != LL_CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Gives the card from whose current pool the stream allocates: the card of the stream's context. NULL: the card is not
 * governed. Returns the driver's error if the driver does not report the card. */
static ll_cu_result find_dev(struct ll_cu_stream *stream, struct ll_device_state **ret_dev)
{
	struct ll_cu_context *current = NULL, *context;
	struct ll_extent extent;
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!ll_stream_is_default(stream)) {
		status = ll_real()->cuStreamGetCtx(stream, &context);
		if (status == LL_CUDA_SUCCESS &&
		    ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent)) {
			*ret_dev = extent.dev;
			return LL_CUDA_SUCCESS;
		}
	}
	return ll_real_has_failed(status) ? status : ll_device_state_find(&current, ret_dev);
}

/*
 * The body of an allocation's hook: it reserves the growth, calls the driver and corrects the charge. In a stream that
 * is being captured the allocation becomes a node of a graph, which takes memory when the graph is launched. For an
 * evictable program the library makes the allocation itself if possible.
 */
#define ALLOCATE(call, free_call, handle, as_stream)                                                                   \
	LL_REENTRY_SCOPE();                                                                                            \
	if (is_captured(as_stream)) {                                                                                  \
		ll_pool_expect_graphs(bytes);                                                                          \
		return call;                                                                                           \
	}                                                                                                              \
	struct ll_device_state *dev;                                                                                   \
	ll_cu_result found = find_dev(as_stream, &dev);                                                                \
	if (found != LL_CUDA_SUCCESS)                                                                                  \
		return found;                                                                                          \
	if (!dev)                                                                                                      \
		return call;                                                                                           \
	struct ll_stream_place place;                                                                                  \
	struct ll_movable_pool *movable = ll_ordered_pool(dev, handle, as_stream, &place);                             \
	if (movable)                                                                                                   \
		return ll_ordered_allocate(movable, &place, ret_address, bytes);                                       \
	struct ll_pool_growth growth __attribute__((cleanup(ll_pool_leave))) =                                         \
	    ll_pool_begin(dev, handle, bytes, as_stream);                                                              \
	struct ll_pool *from = growth.pool;                                                                            \
	if (growth.refusal)                                                                                            \
		return growth.refusal;                                                                                 \
	LL_CHARGED_CALL(status, dev, call);                                                                            \
	bool is_made = status == LL_CUDA_SUCCESS;                                                                      \
	struct ll_extent block;                                                                                        \
	if (ll_pool_end(&growth, is_made ? *ret_address : 0, is_made ? bytes : 0) || !is_made ||                       \
	    !ll_pool_take(*ret_address, &block))                                                                       \
		return status;                                                                                         \
	ll_cu_result back = free_call;                                                                                 \
	ll_pool_freed_in(&block, back, as_stream);                                                                     \
	if (back != LL_CUDA_SUCCESS)                                                                                   \
		return status;                                                                                         \
	ll_pool_shed(from);                                                                                            \
	return LL_CUDA_ERROR_OUT_OF_MEMORY

#define ALLOCATE_HOOK(suffix, as_stream)                                                                               \
	LL_HOOK_EXPORT ll_cu_result cuMemAllocAsync##suffix(ll_cu_deviceptr *ret_address, size_t bytes,                \
							    struct ll_cu_stream *stream)                               \
	{                                                                                                              \
		LL_DRIVER_CALL(cuMemAllocAsync##suffix);                                                               \
		if (ll_charge_passes() || !ret_address || !bytes)                                                      \
			return ll_real()->cuMemAllocAsync##suffix(ret_address, bytes, stream);                         \
		ALLOCATE(ll_real()->cuMemAllocAsync##suffix(ret_address, bytes, stream),                               \
			 ll_real()->cuMemFreeAsync##suffix(*ret_address, stream), NULL, as_stream);                    \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_cu_result cuMemAllocFromPoolAsync##suffix(                                                   \
	    ll_cu_deviceptr *ret_address, size_t bytes, struct ll_cu_mem_pool *pool, struct ll_cu_stream *stream)      \
	{                                                                                                              \
		LL_DRIVER_CALL(cuMemAllocFromPoolAsync##suffix);                                                       \
		if (ll_charge_passes() || !ret_address || !pool || !bytes)                                             \
			return ll_real()->cuMemAllocFromPoolAsync##suffix(ret_address, bytes, pool, stream);           \
		ALLOCATE(ll_real()->cuMemAllocFromPoolAsync##suffix(ret_address, bytes, pool, stream),                 \
			 ll_real()->cuMemFreeAsync##suffix(*ret_address, stream), pool, as_stream);                    \
	}

ALLOCATE_HOOK(, stream)
ALLOCATE_HOOK(_ptsz, ll_stream_per_thread(stream))

/* cuMemFreeAsync also frees allocations of cuMemAlloc. In a captured stream the call frees nothing and becomes a node
 * of the graph. The driver makes such a node only for memory of graphs. It refuses all other memory, even memory of its
 * own pools. */
#define FREE_HOOK(suffix, as_stream)                                                                                   \
	LL_HOOK_EXPORT ll_cu_result cuMemFreeAsync##suffix(ll_cu_deviceptr address, struct ll_cu_stream *stream)       \
	{                                                                                                              \
		LL_DRIVER_CALL(cuMemFreeAsync##suffix);                                                                \
		struct ll_extent extent;                                                                               \
		if (ll_charge_passes())                                                                                \
			return ll_real()->cuMemFreeAsync##suffix(address, stream);                                     \
		LL_REENTRY_SCOPE();                                                                                    \
		bool is_freed = !ll_stream_is_captured(as_stream);                                                     \
		bool is_block = is_freed && ll_pool_take(address, &extent);                                            \
		bool is_plain = is_freed && !is_block && ll_extents_remove(LL_EXTENT_PLAIN, address, &extent);         \
		if ((is_block || is_plain) && extent.is_backed)                                                        \
			return ll_ordered_free(&extent, as_stream);                                                    \
		ll_cu_result status = ll_real()->cuMemFreeAsync##suffix(address, stream);                              \
		if (is_block)                                                                                          \
			ll_pool_freed_in(&extent, status, as_stream);                                                  \
		if (is_plain)                                                                                          \
			ll_charge_freed(&extent, status);                                                              \
		return status;                                                                                         \
	}

FREE_HOOK(, stream)
FREE_HOOK(_ptsz, ll_stream_per_thread(stream))

LL_HOOK_EXPORT ll_cu_result cuMemPoolCreate(struct ll_cu_mem_pool **ret_pool, const struct ll_cu_mem_pool_props *props)
{
	LL_DRIVER_CALL(cuMemPoolCreate);
	ll_cu_result status = ll_real()->cuMemPoolCreate(ret_pool, props);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_pool_add(*ret_pool, props);
	return status;
}

/* The hook removes the extent before the call, because another pool may get the handle as soon as the driver has
 * destroyed this pool. */
LL_HOOK_EXPORT ll_cu_result cuMemPoolDestroy(struct ll_cu_mem_pool *pool)
{
	LL_DRIVER_CALL(cuMemPoolDestroy);
	struct ll_extent extent;
	if (ll_charge_passes())
		return ll_real()->cuMemPoolDestroy(pool);
	LL_REENTRY_SCOPE();
	bool is_known = ll_extents_remove(LL_EXTENT_POOL, ll_extent_handle(pool), &extent);
	ll_cu_result status = ll_real()->cuMemPoolDestroy(pool);
	if (is_known && status == LL_CUDA_SUCCESS)
		ll_pool_destroyed(extent.pool);
	else if (is_known)
		ll_charge_put(&extent);
	return status;
}

/* ---- attributes of a pool, and access to it ---- */

static bool is_size(enum ll_cu_mem_pool_attribute attribute)
{
	return attribute >= LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && attribute <= LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

LL_HOOK_EXPORT ll_cu_result cuMemPoolGetAttribute(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute,
						  void *ret_value)
{
	ll_cu_result status = ll_real()->cuMemPoolGetAttribute(pool, attribute, ret_value);
	if (status != LL_CUDA_SUCCESS || !is_size(attribute) || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	struct ll_movable_pool *movable = ll_pool_movable_if_known(pool);
	if (movable)
		*(uint64_t *)ret_value += ll_movable_pool_size(movable, attribute);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemPoolSetAttribute(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute,
						  void *value)
{
	LL_DRIVER_CALL(cuMemPoolSetAttribute);
	ll_cu_result status = ll_real()->cuMemPoolSetAttribute(pool, attribute, value);
	if (status != LL_CUDA_SUCCESS || !is_size(attribute) || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	struct ll_movable_pool *movable = ll_pool_movable_if_known(pool);
	if (movable)
		ll_movable_pool_restart_high(movable, attribute);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemPoolSetAccess(struct ll_cu_mem_pool *pool,
					       const struct ll_cu_mem_access_desc *accesses, size_t count)
{
	LL_DRIVER_CALL(cuMemPoolSetAccess);
	ll_cu_result status = ll_real()->cuMemPoolSetAccess(pool, accesses, count);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	return ll_pool_set_access(pool, accesses, count);
}

/* ---- calls that return memory to the card ---- */

/* Defines the hook of a function after which a pool may have less memory. The charge is corrected after the call. note:
 * a statement before the call. then: a statement after the call, if it succeeded. */
#define THEN_TRUE_UP(symbol, params, call, note, then)                                                                 \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		note;                                                                                                  \
		if (ll_charge_passes() || !ll_pools_are_used)                                                          \
			return ll_real()->symbol call;                                                                 \
		uint64_t last_free __attribute__((unused)) = ll_pools_last_free();                                     \
		ll_cu_result status = ll_real()->symbol call;                                                          \
		LL_REENTRY_SCOPE();                                                                                    \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			then;                                                                                          \
		ll_pool_true_up_if_used();                                                                             \
		return status;                                                                                         \
	}

static void waited_for_stream(const char *function, struct ll_cu_stream *stream, uint64_t last_free)
{
	ll_ordered_waited_for_stream(function, stream);
	ll_pools_waited_for_stream(stream, last_free);
}

static void note_waited(const char *function)
{
	ll_ordered_waited(function);
	ll_pools_waited();
}

THEN_TRUE_UP(cuStreamSynchronize, (struct ll_cu_stream * stream), (stream), ll_waits_count(),
	     waited_for_stream("cuStreamSynchronize", stream, last_free))
THEN_TRUE_UP(cuStreamSynchronize_ptsz, (struct ll_cu_stream * stream), (stream), ll_waits_count(),
	     waited_for_stream("cuStreamSynchronize_ptsz", ll_stream_per_thread(stream), last_free))
THEN_TRUE_UP(cuEventSynchronize, (struct ll_cu_event * event), (event), , note_waited("cuEventSynchronize"))
THEN_TRUE_UP(cuCtxSynchronize, (void), (), ll_waits_count(), note_waited("cuCtxSynchronize"))
THEN_TRUE_UP(cuCtxSynchronize_v2, (struct ll_cu_context * context), (context), ll_waits_count(),
	     note_waited("cuCtxSynchronize_v2"))

LL_HOOK_EXPORT ll_cu_result cuMemPoolTrimTo(struct ll_cu_mem_pool *pool, size_t keep_bytes)
{
	LL_DRIVER_CALL(cuMemPoolTrimTo);
	if (ll_charge_passes() || !ll_pools_are_used)
		return ll_real()->cuMemPoolTrimTo(pool, keep_bytes);
	LL_REENTRY_SCOPE();
	ll_cu_result status = ll_pool_trim(pool, keep_bytes);
	if (status == LL_CUDA_SUCCESS)
		ll_pool_trim_movable(pool, keep_bytes);
	ll_pool_true_up_if_used();
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuDeviceGraphMemTrim(ll_cu_device device)
{
	LL_DRIVER_CALL(cuDeviceGraphMemTrim);
	if (ll_charge_passes() || !ll_graph_memory_is_used)
		return ll_real()->cuDeviceGraphMemTrim(device);
	LL_REENTRY_SCOPE();
	return ll_graph_memory_trim(device);
}
