#include "shim/residency/residency.h"

#include "base/clock.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"
#include "shim/time/driver_calls.h"
#include "shim/time/flow.h"

/* ---- plain allocations ---- */

/* Another program evicts a batch in 10 ms. If no memory has become free for half a second, none will. */
#define CHUNK_PAUSE_NS (2 * LL_NS_PER_MS)
#define CHUNK_NS (500 * LL_NS_PER_MS)

/* The program itself may be evicted meanwhile. */
static bool wait_for_chunk(struct ll_device_state *dev, uint64_t since_ns)
{
	LL_SCOPE_NO_CANCEL;
	uint64_t now_ns = ll_now_ns();
	if (now_ns - since_ns >= CHUNK_NS || !ll_residency_is_served(dev))
		return false;
	ll_driver_call_step_out();
	ll_sleep_until_ns(now_ns + CHUNK_PAUSE_NS);
	ll_driver_call_step_in();
	return true;
}

ll_cu_result ll_plain_make(struct ll_device_state *dev, size_t bytes, ll_cu_deviceptr *ret_address,
			   uint32_t *ret_serial)
{
	bool waits_by_chunk = ll_backing_has_chunks(bytes);
	unsigned grants = 0;
	enum ll_move_room room = LL_MOVE_ROOM_THERE;
	ll_cu_result status;
	do {
		ll_backing_wait *wait = room == LL_MOVE_ROOM_COMING ? wait_for_chunk : NULL;
		status = ll_backing_allocate(dev, bytes, wait, ret_address, ret_serial);
	} while (status == LL_CUDA_ERROR_OUT_OF_MEMORY &&
		 (ll_device_state_give_up_reserve(dev) ||
		  (room = ll_residency_make_room(dev, bytes, waits_by_chunk, &grants))));
	return status;
}

static void end_wait(struct ll_flow **flow)
{
	ll_flow_end_wait(*flow);
}

/*
 * Waits for the current context's work as the driver's cuMemFree does. While a stream is being captured the wait for a
 * context would spoil the capture, and cuMemFree does not, unless the capture's mode forbids it. So the driver then
 * frees a few bytes of its own.
 */
static ll_cu_result wait_as_free_does(struct ll_flow *flow)
{
	ll_cu_deviceptr own;
	if (ll_flow_begin_wait(flow)) {
		/* Also if the thread is cancelled meanwhile. */
		struct ll_flow *entered __attribute__((cleanup(end_wait), unused)) = flow;
		return ll_real()->cuCtxSynchronize();
	}
	ll_cu_result status = ll_real()->cuMemAlloc_v2(&own, 1);
	return status == LL_CUDA_SUCCESS ? ll_real()->cuMemFree_v2(own) : status;
}

/* Waits for the work of the context that the memory belongs to, as the driver's cuMemFree does. If it belongs to none:
 * of the current one. */
static ll_cu_result plain_wait(const struct ll_extent *plain)
{
	struct ll_cu_context *current = NULL, *popped, *context = ll_context_of_owner(plain->owner);
	ll_cu_result status = ll_real()->cuCtxGetCurrent(&current);
	if (status != LL_CUDA_SUCCESS || !current || !context || context == current)
		return wait_as_free_does(plain->dev->flow);
	status = ll_real()->cuCtxPushCurrent_v2(context);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = wait_as_free_does(plain->dev->flow);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status;
}

ll_cu_result ll_plain_free(const struct ll_extent *plain)
{
	ll_cu_result status = plain_wait(plain);
	if (status == LL_CUDA_SUCCESS)
		ll_backing_free(plain);
	return status;
}

/* ---- allocations in the order of a stream ---- */

static ll_cu_result find_place(struct ll_cu_stream *stream, struct ll_stream_place *ret_place)
{
	struct ll_stream_place place = ll_stream_place_of(stream);
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!ll_stream_is_default(stream))
		status = ll_real()->cuStreamGetCtx(stream, &place.context);
	else if (!place.context)
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (status == LL_CUDA_SUCCESS)
		*ret_place = place;
	return status;
}

/* Whether the library knows the context, and so its end. It does not know those of green contexts. */
static bool is_known(const struct ll_cu_context *context)
{
	struct ll_extent extent;
	return ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent);
}

/* ---- allocating ---- */

struct ll_movable_pool *ll_ordered_pool(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					struct ll_cu_stream *stream, struct ll_stream_place *ret_place)
{
	if (!ll_residency_backs(dev) || ll_stream_is_captured(stream) || find_place(stream, ret_place) ||
	    !is_known(ret_place->context))
		return NULL;
	struct ll_movable_pool *pool = ll_pool_movable(dev, handle);
	return pool && ll_residency_backs(ll_movable_pool_dev(pool)) ? pool : NULL;
}

static ll_cu_result make_at_once(struct ll_device_state *dev, size_t bytes, ll_cu_deviceptr *ret_address,
				 uint32_t *ret_serial)
{
	ll_cu_result status = ll_backing_allocate(dev, bytes, NULL, ret_address, ret_serial);
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_device_state_give_up_reserve(dev))
		status = ll_backing_allocate(dev, bytes, NULL, ret_address, ret_serial);
	return status;
}

/* may_wait: for others to leave, if the card has no room. A program whose claim is lost may be charged nothing; its
 * memory can be moved all the same. */
static ll_cu_result make_block(struct ll_movable_pool *pool, uint64_t room_bytes, size_t bytes, bool may_wait,
			       struct ll_extent *ret_block)
{
	struct ll_device_state *dev = ll_movable_pool_dev(pool);
	struct ll_extent block = {.kind = LL_EXTENT_BLOCK,
				  .is_backed = true,
				  .dev = dev,
				  .bytes = bytes,
				  .movable = pool,
				  .room_bytes = room_bytes,
				  .told_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_POOL_BLOCK_BYTES)};
	LL_CHARGE(charge, (struct ll_charge_target){.dev = dev}, room_bytes);
	if (charge.refusal || !ll_movable_pool_grow(pool, &block))
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	enum ll_cu_capture_mode before = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_cu_deviceptr address = 0;
	LL_CHARGED_CALL(status, may_wait ? dev : NULL,
			may_wait ? ll_plain_make(dev, bytes, &address, &block.serial)
				 : make_at_once(dev, bytes, &address, &block.serial));
	block.address = address;
	ll_stream_exchange_capture_mode(before);
	if (status != LL_CUDA_SUCCESS) {
		ll_movable_pool_shrink(pool, &block);
		return status;
	}
	block.charged_bytes = charge.bytes;
	charge.bytes = 0;
	*ret_block = block;
	return LL_CUDA_SUCCESS;
}

/* There is no room for new memory: takes a block that another stream has freed, and lets this stream wait until that
 * one has reached the free. */
static ll_cu_result wait_for_block(struct ll_movable_pool *pool, const struct ll_stream_place *place,
				   uint64_t room_bytes, size_t bytes, struct ll_extent *ret_block)
{
	struct ll_pending_block pending;
	if (!ll_movable_pool_get_pending(pool, room_bytes, bytes, &pending))
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	ll_cu_result status = ll_real()->cuStreamWaitEvent(place->handle, pending.event, 0);
	if (status == LL_CUDA_SUCCESS) {
		ll_real()->cuEventDestroy_v2(pending.event);
		*ret_block = pending.block;
	} else {
		ll_movable_pool_put(pool, &pending.block, &pending.place, pending.event);
	}
	return status;
}

static ll_cu_result find_block(struct ll_movable_pool *pool, const struct ll_stream_place *place, size_t bytes,
			       struct ll_extent *ret_block)
{
	uint64_t room_bytes = ll_footprint_plain(bytes);
	if (room_bytes == UINT64_MAX)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (ll_movable_pool_get_block(pool, room_bytes, bytes, place, ret_block))
		return LL_CUDA_SUCCESS;
	ll_cu_result status = make_block(pool, room_bytes, bytes, false, ret_block);
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY)
		status = wait_for_block(pool, place, room_bytes, bytes, ret_block);
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY)
		status = make_block(pool, room_bytes, bytes, true, ret_block);
	return status;
}

ll_cu_result ll_ordered_allocate(struct ll_movable_pool *pool, const struct ll_stream_place *place,
				 ll_cu_deviceptr *ret_address, size_t bytes)
{
	LL_SCOPE_NO_CANCEL;
	struct ll_extent block;
	ll_cu_result status = find_block(pool, place, bytes, &block);
	if (status != LL_CUDA_SUCCESS)
		return status;
	if (!ll_charge_put(&block)) {
		struct ll_extent whole = block;
		whole.bytes = block.room_bytes;
		ll_backing_free(&whole);
		ll_charge_release(&block);
		ll_movable_pool_shrink(pool, &block);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_address = block.address;
	return LL_CUDA_SUCCESS;
}

/* ---- freeing ---- */

static ll_cu_result record_event(struct ll_cu_stream *stream, struct ll_cu_event **ret_event)
{
	struct ll_cu_event *event;
	ll_cu_result status = ll_real()->cuEventCreate(&event, LL_CU_EVENT_DISABLE_TIMING);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuEventRecord(event, stream);
	if (status == LL_CUDA_SUCCESS)
		*ret_event = event;
	else
		ll_real()->cuEventDestroy_v2(event);
	return status;
}

/* Records an event in the stream, whose context need not be the current one. If the context may end without the
 * library's notice, as a green one may, this waits for the stream instead: there is no event then. */
static ll_cu_result mark_free(const struct ll_stream_place *place, struct ll_cu_event **ret_event)
{
	struct ll_cu_context *current = NULL, *popped;
	*ret_event = NULL;
	if (!is_known(place->context))
		return ll_real()->cuStreamSynchronize(place->handle);
	ll_cu_result status = ll_real()->cuCtxGetCurrent(&current);
	if (status != LL_CUDA_SUCCESS || current == place->context)
		return status ? status : record_event(place->handle, ret_event);
	status = ll_real()->cuCtxPushCurrent_v2(place->context);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = record_event(place->handle, ret_event);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status;
}

/* Puts a freed block into its pool. A plain allocation comes into a pool here. */
static ll_cu_result put_freed(struct ll_extent *block, const struct ll_stream_place *place, struct ll_cu_event *event)
{
	bool is_plain = block->kind != LL_EXTENT_BLOCK;
	struct ll_movable_pool *pool = is_plain ? ll_pool_of_plain(block->dev) : block->movable;
	if (is_plain) {
		block->movable = pool;
		block->room_bytes = block->told_bytes = ll_footprint_plain(block->bytes);
	}
	if (is_plain && pool)
		ll_movable_pool_grow(pool, block);
	if (pool && ll_movable_pool_put(pool, block, place, event))
		return LL_CUDA_SUCCESS;
	if (is_plain && pool)
		ll_movable_pool_shrink(pool, block);
	if (event)
		ll_real()->cuEventDestroy_v2(event);
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result ll_ordered_free(struct ll_extent *block, struct ll_cu_stream *stream)
{
	LL_SCOPE_NO_CANCEL;
	struct ll_stream_place place;
	struct ll_cu_event *event;
	ll_cu_result status = find_place(stream, &place);
	if (status == LL_CUDA_SUCCESS)
		status = mark_free(&place, &event);
	if (status == LL_CUDA_SUCCESS)
		status = put_freed(block, &place, event);
	if (status != LL_CUDA_SUCCESS)
		ll_charge_put(block);
	return status;
}

ll_cu_result ll_ordered_free_now(const struct ll_extent *block)
{
	LL_SCOPE_NO_CANCEL;
	ll_cu_result status = plain_wait(block);
	if (status == LL_CUDA_SUCCESS && !ll_movable_pool_put(block->movable, block, NULL, NULL))
		status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (status != LL_CUDA_SUCCESS)
		ll_charge_put(block);
	return status;
}

/* ---- waiting ---- */

static void give_back(const char *function, const struct ll_stream_place *place)
{
	struct ll_driver_call *call __attribute__((cleanup(ll_driver_call_leave_scope), unused)) =
	    ll_driver_call_enter(function);
	ll_movable_pools_waited(place);
}

void ll_ordered_waited_for_stream(const char *function, struct ll_cu_stream *stream)
{
	if (!atomic_load_explicit(&ll_movable_pools_freed, memory_order_relaxed))
		return;
	struct ll_stream_place place = ll_stream_place_of(stream);
	give_back(function, &place);
}

void ll_ordered_waited(const char *function)
{
	if (atomic_load_explicit(&ll_movable_pools_freed, memory_order_relaxed))
		give_back(function, NULL);
}
