/* Hooks of physical memory and its mappings at addresses (VMM). */
#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/residency/residency.h"
#include "shim/time/driver_calls.h"

/* If the card has no room and the program is evictable, the program gives up the reserve of its pools. Then it asks
 * loadlined for room, and the thread waits. */
static ll_cu_result create_memory(struct ll_device_state *dev, ll_cu_mem_handle *ret_handle, size_t bytes,
				  const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags)
{
	ll_cu_result status;
	unsigned grants = 0;
	do
		status = ll_real()->cuMemCreate(ret_handle, bytes, prop, flags);
	while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_residency_backs(dev) &&
	       (ll_device_state_give_up_reserve(dev) || ll_residency_make_room(dev, bytes, false, &grants)));
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemCreate(ll_cu_mem_handle *ret_handle, size_t bytes,
					const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemCreate);
	if (ll_charge_passes() || ll_charge_is_hopeless(ret_handle, bytes) || !prop ||
	    prop->location.type != LL_CU_MEM_LOCATION_TYPE_DEVICE)
		return ll_real()->cuMemCreate(ret_handle, bytes, prop, flags);
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_charge_target_of_device(prop->location.id),
		  ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES));
	if (charge.refusal)
		return charge.refusal;
	struct ll_device_state *dev = charge.target.dev;
	bool can_move = ll_physical_can_move(prop, flags) && ll_residency_backs(dev);
	struct ll_cu_mem_allocation_prop wanted = can_move ? ll_physical_movable(prop) : *prop;
	LL_CHARGED_CALL(status, dev, create_memory(dev, ret_handle, bytes, &wanted, flags));
	if (status == LL_CUDA_SUCCESS)
		*ret_handle = ll_physical_add(&charge, *ret_handle, can_move ? prop : NULL);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemRelease(ll_cu_mem_handle handle)
{
	LL_DRIVER_CALL(cuMemRelease);
	if (ll_charge_passes())
		return ll_real()->cuMemRelease(handle);
	LL_REENTRY_SCOPE();
	return ll_physical_release(handle, ll_real()->cuMemRelease);
}

LL_HOOK_EXPORT ll_cu_result cuMemMap(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle,
				     unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemMap);
	ll_cu_mem_handle real;
	if (ll_charge_passes())
		return ll_real()->cuMemMap(address, bytes, offset, handle, flags);
	LL_REENTRY_SCOPE();
	if (!ll_physical_find(handle, &real))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = ll_physical_before_map(handle, bytes);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuMemMap(address, bytes, offset, real, flags);
	if (status == LL_CUDA_SUCCESS)
		ll_physical_mapped(address, bytes, offset, handle);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemUnmap(ll_cu_deviceptr address, size_t bytes)
{
	LL_DRIVER_CALL(cuMemUnmap);
	if (ll_charge_passes())
		return ll_real()->cuMemUnmap(address, bytes);
	LL_REENTRY_SCOPE();
	address = ll_backed_hide(address);
	return ll_physical_unmap(address, bytes, ll_real()->cuMemUnmap);
}

LL_HOOK_EXPORT ll_cu_result cuMemSetAccess(ll_cu_deviceptr address, size_t bytes,
					   const struct ll_cu_mem_access_desc *accesses, size_t count)
{
	LL_DRIVER_CALL(cuMemSetAccess);
	if (!ll_reentry_is_inside())
		address = ll_backed_hide(address);
	ll_cu_result status = ll_real()->cuMemSetAccess(address, bytes, accesses, count);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_physical_accessed(address, bytes, accesses, count);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemRetainAllocationHandle(ll_cu_mem_handle *ret_handle, void *address)
{
	LL_DRIVER_CALL(cuMemRetainAllocationHandle);
	if (!ll_charge_passes() && ret_handle) {
		LL_REENTRY_SCOPE();
		if (ll_physical_retain_at((uintptr_t)address, ret_handle))
			return LL_CUDA_SUCCESS;
	}
	if (!ll_reentry_is_inside())
		address = ll_backed_hide_pointer(address);
	ll_cu_result status = ll_real()->cuMemRetainAllocationHandle(ret_handle, address);
	if (status != LL_CUDA_SUCCESS || !ret_handle || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_physical_retain(*ret_handle);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemImportFromShareableHandle(ll_cu_mem_handle *ret_handle, void *os_handle,
							   enum ll_cu_mem_handle_type type)
{
	LL_DRIVER_CALL(cuMemImportFromShareableHandle);
	ll_cu_result status = ll_real()->cuMemImportFromShareableHandle(ret_handle, os_handle, type);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	return ll_physical_imported(*ret_handle, type, os_handle);
}

/* ---- handles of memory with a stand-in ---- */

/* Replaces the program's handle by the driver's handle. */
static bool find_real(ll_cu_mem_handle *handle)
{
	if (ll_charge_passes())
		return true;
	LL_REENTRY_SCOPE();
	ll_cu_mem_handle number = *handle;
	return ll_physical_find(number, handle);
}

/* If the call succeeded, pins the memory, because others can see it now. The thread is inside a driver call, so the
 * memory cannot have been evicted meanwhile. */
static ll_cu_result pin_if_done(ll_cu_result status, ll_cu_mem_handle number)
{
	if (status == LL_CUDA_SUCCESS)
		ll_physical_pin(number);
	return status;
}

static ll_cu_result pin_range_if_done(ll_cu_result status, ll_cu_deviceptr address, size_t bytes)
{
	if (status == LL_CUDA_SUCCESS)
		ll_physical_pin_range(address, bytes);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemExportToShareableHandle(void *ret_handle, ll_cu_mem_handle handle,
							 enum ll_cu_mem_handle_type type, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemExportToShareableHandle);
	ll_cu_mem_handle real = handle;
	if (!ll_physical_may_export(handle, type) || !find_real(&real))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = ll_real()->cuMemExportToShareableHandle(ret_handle, real, type, flags);
	if (status == LL_CUDA_SUCCESS && !ll_charge_passes()) {
		LL_REENTRY_SCOPE();
		ll_physical_exported(handle, type, ret_handle);
	}
	return pin_if_done(status, handle);
}

LL_HOOK_EXPORT ll_cu_result cuMemGetAllocationPropertiesFromHandle(struct ll_cu_mem_allocation_prop *ret_prop,
								   ll_cu_mem_handle handle)
{
	ll_cu_mem_handle real = handle;
	if (!find_real(&real))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = ll_real()->cuMemGetAllocationPropertiesFromHandle(ret_prop, real);
	if (status == LL_CUDA_SUCCESS)
		ll_physical_describe(handle, ret_prop);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMulticastBindMem(ll_cu_mem_handle handle, size_t offset, ll_cu_mem_handle memory,
					       size_t memory_offset, size_t bytes, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMulticastBindMem);
	ll_cu_mem_handle real = memory;
	if (!find_real(&real))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return pin_if_done(ll_real()->cuMulticastBindMem(handle, offset, real, memory_offset, bytes, flags), memory);
}

LL_HOOK_EXPORT ll_cu_result cuMulticastBindMem_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset,
						  ll_cu_mem_handle memory, size_t memory_offset, size_t bytes,
						  unsigned long long flags)
{
	LL_DRIVER_CALL(cuMulticastBindMem_v2);
	ll_cu_mem_handle real = memory;
	if (!find_real(&real))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return pin_if_done(ll_real()->cuMulticastBindMem_v2(handle, device, offset, real, memory_offset, bytes, flags),
			   memory);
}

LL_HOOK_EXPORT ll_cu_result cuMulticastBindAddr(ll_cu_mem_handle handle, size_t offset, ll_cu_deviceptr address,
						size_t bytes, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMulticastBindAddr);
	address = ll_backed_hide(address);
	return pin_range_if_done(ll_real()->cuMulticastBindAddr(handle, offset, address, bytes, flags), address, bytes);
}

LL_HOOK_EXPORT ll_cu_result cuMulticastBindAddr_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset,
						   ll_cu_deviceptr address, size_t bytes, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMulticastBindAddr_v2);
	address = ll_backed_hide(address);
	return pin_range_if_done(ll_real()->cuMulticastBindAddr_v2(handle, device, offset, address, bytes, flags),
				 address, bytes);
}
