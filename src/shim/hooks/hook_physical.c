/* Physical memory, and its mappings at addresses (VMM). */
#include "shim/interpose/hook.h"
#include "shim/memory/physical.h"
#include "shim/time/driver_calls.h"

LL_HOOK_EXPORT ll_cu_result cuMemCreate(ll_cu_mem_handle *ret_handle, size_t bytes,
					const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemCreate);
	if (ll_charge_passes() || !prop || prop->location.type != LL_CU_MEM_LOCATION_TYPE_DEVICE)
		return ll_real()->cuMemCreate(ret_handle, bytes, prop, flags);
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_place_device(prop->location.id), ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES));
	if (charge.is_refused)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	LL_CHARGED_CALL(status, charge.place.dev, ll_real()->cuMemCreate(ret_handle, bytes, prop, flags));
	if (status == LL_CUDA_SUCCESS)
		ll_physical_add(&charge, *ret_handle);
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
	ll_cu_result status = ll_real()->cuMemMap(address, bytes, offset, handle, flags);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_physical_mapped(address, bytes, offset, handle);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemUnmap(ll_cu_deviceptr address, size_t bytes)
{
	LL_DRIVER_CALL(cuMemUnmap);
	if (ll_charge_passes())
		return ll_real()->cuMemUnmap(address, bytes);
	LL_REENTRY_SCOPE();
	return ll_physical_unmap(address, bytes, ll_real()->cuMemUnmap);
}

LL_HOOK_EXPORT ll_cu_result cuMemSetAccess(ll_cu_deviceptr address, size_t bytes,
					   const struct ll_cu_mem_access_desc *accesses, size_t count)
{
	LL_DRIVER_CALL(cuMemSetAccess);
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
	ll_cu_result status = ll_real()->cuMemRetainAllocationHandle(ret_handle, address);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_physical_retain(*ret_handle);
	return status;
}

/* If a process imports its own export, the handle may come back with its old number. */
LL_HOOK_EXPORT ll_cu_result cuMemImportFromShareableHandle(ll_cu_mem_handle *ret_handle, void *os_handle,
							   enum ll_cu_mem_handle_type type)
{
	LL_DRIVER_CALL(cuMemImportFromShareableHandle);
	ll_cu_result status = ll_real()->cuMemImportFromShareableHandle(ret_handle, os_handle, type);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_physical_retain(*ret_handle);
	return status;
}
