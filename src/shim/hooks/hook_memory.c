/* Plain and managed allocations, and what cuMemFree frees: those, and blocks of pools. */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"
#include "shim/trace/trace.h"

/* The body of an allocation whose size is known: reserve, call, keep. */
#define ALLOCATE(call, bytes_taken)                                                                                    \
	LL_REENTRY_SCOPE();                                                                                            \
	LL_CHARGE(charge, ll_place_current(), bytes_taken);                                                            \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS)                                                                                 \
		ll_charge_keep(&charge, LL_SIZE_ADDRESS, *ret_address);                                                \
	return status

/* The driver chooses the pitch: rows may be longer than was foretold. */
#define ALLOCATE_ROWS(call)                                                                                            \
	LL_REENTRY_SCOPE();                                                                                            \
	LL_CHARGE(charge, ll_place_current(), ll_footprint_pitched(width_bytes, height));                              \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS) {                                                                               \
		ll_charge_correct(&charge, ll_footprint_pitched(*ret_pitch_bytes, height));                            \
		ll_charge_keep(&charge, LL_SIZE_ADDRESS, *ret_address);                                                \
	}                                                                                                              \
	return status

#define FREE(call)                                                                                                     \
	LL_REENTRY_SCOPE();                                                                                            \
	struct ll_size size;                                                                                           \
	struct ll_pool_block block;                                                                                    \
	bool is_plain = ll_charge_take(LL_SIZE_ADDRESS, address, &size);                                               \
	bool is_block = !is_plain && ll_pool_take(address, &block);                                                    \
	ll_cu_result status = call;                                                                                    \
	if (is_plain)                                                                                                  \
		ll_charge_freed(LL_SIZE_ADDRESS, address, &size, status);                                              \
	if (is_block)                                                                                                  \
		ll_pool_freed(address, &block, status);                                                                \
	return status

LL_HOOK_EXPORT ll_cu_result cuMemAlloc(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes)
{
	if (ll_charge_passes())
		return ll_real()->cuMemAlloc(ret_address, bytes);
	ALLOCATE(ll_real()->cuMemAlloc(ret_address, bytes), ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	if (ll_charge_passes())
		return ll_trace_allocated(ll_real()->cuMemAlloc_v2(ret_address, bytes), ret_address, bytes);
	ALLOCATE(ll_trace_allocated(ll_real()->cuMemAlloc_v2(ret_address, bytes), ret_address, bytes),
		 ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAllocPitch(ll_cu_deviceptr_v1 *ret_address, unsigned int *ret_pitch_bytes,
					    unsigned int width_bytes, unsigned int height, unsigned int element_bytes)
{
	if (ll_charge_passes())
		return ll_real()->cuMemAllocPitch(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes);
	ALLOCATE_ROWS(ll_real()->cuMemAllocPitch(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAllocPitch_v2(ll_cu_deviceptr *ret_address, size_t *ret_pitch_bytes,
					       size_t width_bytes, size_t height, unsigned int element_bytes)
{
	if (ll_charge_passes())
		return ll_real()->cuMemAllocPitch_v2(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes);
	ALLOCATE_ROWS(ll_real()->cuMemAllocPitch_v2(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes));
}

/* In full from the start, wherever its pages are: they may all come to the card. */
LL_HOOK_EXPORT ll_cu_result cuMemAllocManaged(ll_cu_deviceptr *ret_address, size_t bytes, unsigned int flags)
{
	if (ll_charge_passes())
		return ll_trace_allocated(ll_real()->cuMemAllocManaged(ret_address, bytes, flags), ret_address, bytes);
	ALLOCATE(ll_trace_allocated(ll_real()->cuMemAllocManaged(ret_address, bytes, flags), ret_address, bytes),
		 ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemFree(ll_cu_deviceptr_v1 address)
{
	if (ll_charge_passes())
		return ll_real()->cuMemFree(address);
	FREE(ll_real()->cuMemFree(address));
}

LL_HOOK_EXPORT ll_cu_result cuMemFree_v2(ll_cu_deviceptr address)
{
	if (ll_charge_passes())
		return ll_trace_freed(ll_real()->cuMemFree_v2(address), address);
	FREE(ll_trace_freed(ll_real()->cuMemFree_v2(address), address));
}
