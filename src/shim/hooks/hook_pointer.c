/* Hooks of functions that query an address. In an evictable program they answer for movable allocations as for any
 * other allocation (memory/backed.h). */
#include <stdatomic.h>

#include "shim/interpose/hook.h"
#include "shim/memory/backed.h"
#include "shim/memory/peers.h"
#include "shim/memory/physical.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

LL_HOOK_EXPORT ll_cu_result cuMemGetAddressRange_v2(ll_cu_deviceptr *ret_base, size_t *ret_bytes,
						    ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuMemGetAddressRange_v2);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_GAP)
		address = LL_BACKED_NOWHERE;
	ll_cu_result status = ll_real()->cuMemGetAddressRange_v2(ret_base, ret_bytes, address);
	if (what != LL_BACKED_ALLOCATION || status != LL_CUDA_SUCCESS)
		return status;
	if (ret_base)
		*ret_base = plain.address;
	if (ret_bytes)
		*ret_bytes = plain.bytes;
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerGetAttribute(void *ret_value, enum ll_cu_pointer_attribute attribute,
						  ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerGetAttribute);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_NOT || !ret_value)
		return ll_real()->cuPointerGetAttribute(ret_value, attribute, address);
	LL_REENTRY_SCOPE();
	if (what == LL_BACKED_GAP)
		return ll_real()->cuPointerGetAttribute(ret_value, attribute, LL_BACKED_NOWHERE);
	return ll_backed_attribute(&plain, attribute, ret_value)
		   ? LL_CUDA_SUCCESS
		   : ll_real()->cuPointerGetAttribute(ret_value, attribute, address);
}

/* For an address that is in no allocation, the driver returns the address itself as device and host pointer. */
static ll_cu_result get_of_gap(unsigned int count, enum ll_cu_pointer_attribute *attributes, void **ret_values,
			       ll_cu_deviceptr address)
{
	ll_cu_result status = ll_real()->cuPointerGetAttributes(count, attributes, ret_values, LL_BACKED_NOWHERE);
	for (unsigned int i = 0; status == LL_CUDA_SUCCESS && i < count; i++) {
		ll_cu_deviceptr *told = ret_values[i];
		bool is_address = attributes[i] == LL_CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
				  attributes[i] == LL_CU_POINTER_ATTRIBUTE_HOST_POINTER;
		if (told && is_address && *told == LL_BACKED_NOWHERE)
			*told = address;
	}
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerGetAttributes(unsigned int count, enum ll_cu_pointer_attribute *attributes,
						   void **ret_values, ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerGetAttributes);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_NOT)
		return ll_real()->cuPointerGetAttributes(count, attributes, ret_values, address);
	LL_REENTRY_SCOPE();
	if (what == LL_BACKED_GAP)
		return get_of_gap(count, attributes, ret_values, address);
	ll_cu_result status = ll_real()->cuPointerGetAttributes(count, attributes, ret_values, address);
	for (unsigned int i = 0; status == LL_CUDA_SUCCESS && i < count; i++) {
		if (ret_values[i])
			ll_backed_attribute(&plain, attributes[i], ret_values[i]);
	}
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerSetAttribute(const void *value, enum ll_cu_pointer_attribute attribute,
						  ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerSetAttribute);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	bool is_hidden = what == LL_BACKED_ALLOCATION || what == LL_BACKED_GAP;
	bool is_ours = what == LL_BACKED_ALLOCATION && value && attribute == LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
	if (!is_ours)
		return ll_real()->cuPointerSetAttribute(value, attribute, is_hidden ? LL_BACKED_NOWHERE : address);
	LL_REENTRY_SCOPE();
	return ll_backed_set_synced(&plain, *(const unsigned int *)value != 0);
}

/* The driver treats mapped memory as memory of the host. */
static void *hide_from_host(void *pointer)
{
	return ll_reentry_is_inside() ? pointer : ll_backed_hide_pointer(pointer);
}

LL_HOOK_EXPORT ll_cu_result cuMemHostGetDevicePointer_v2(ll_cu_deviceptr *ret_address, void *pointer,
							 unsigned int flags)
{
	return ll_real()->cuMemHostGetDevicePointer_v2(ret_address, hide_from_host(pointer), flags);
}

LL_HOOK_EXPORT ll_cu_result cuMemHostGetFlags(unsigned int *ret_flags, void *pointer)
{
	return ll_real()->cuMemHostGetFlags(ret_flags, hide_from_host(pointer));
}

/* ---- memory for others ---- */

LL_HOOK_EXPORT ll_cu_result cuMemGetHandleForAddressRange(void *ret_handle, ll_cu_deviceptr address, size_t bytes,
							  enum ll_cu_mem_range_handle_type type,
							  unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemGetHandleForAddressRange);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	ll_cu_result status = ll_real()->cuMemGetHandleForAddressRange(
	    ret_handle, what == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address, bytes, type, flags);
	if (status == LL_CUDA_SUCCESS && what == LL_BACKED_ALLOCATION)
		ll_backed_note_exported(&plain);
	else if (status == LL_CUDA_SUCCESS)
		ll_physical_pin_range(address, bytes);
	return status;
}

/* ---- peers ---- */

LL_HOOK_EXPORT ll_cu_result cuCtxEnablePeerAccess(struct ll_cu_context *peer, unsigned int flags)
{
	LL_DRIVER_CALL(cuCtxEnablePeerAccess);
	ll_cu_result status = ll_real()->cuCtxEnablePeerAccess(peer, flags);
	if (status != LL_CUDA_SUCCESS || ll_reentry_is_inside())
		return status;
	LL_REENTRY_SCOPE();
	return ll_peers_enabled(peer);
}

LL_HOOK_EXPORT ll_cu_result cuCtxDisablePeerAccess(struct ll_cu_context *peer)
{
	LL_DRIVER_CALL(cuCtxDisablePeerAccess);
	ll_cu_result status = ll_real()->cuCtxDisablePeerAccess(peer);
	if (status != LL_CUDA_SUCCESS || ll_reentry_is_inside())
		return status;
	LL_REENTRY_SCOPE();
	ll_peers_disabled(peer);
	return status;
}
