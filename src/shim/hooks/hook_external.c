/*
 * Memory that another API or process made. What comes from another CUDA process (IPC handles, shareable handles, pools)
 * is charged to that process alone, and has no hooks. What comes from elsewhere (Vulkan, a file descriptor) nobody is
 * charged for yet: its size, to the importer.
 */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"

LL_HOOK_EXPORT ll_cu_result cuImportExternalMemory(struct ll_cu_external_memory **ret_memory,
						   const struct ll_cu_external_memory_desc *descriptor)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuImportExternalMemory(ret_memory, descriptor);
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_place_current(), ll_footprint_plain(descriptor->bytes));
	if (charge.is_refused)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	ll_cu_result status = ll_real()->cuImportExternalMemory(ret_memory, descriptor);
	if (status == LL_CUDA_SUCCESS)
		ll_charge_keep(&charge, LL_SIZE_EXTERNAL, ll_charge_name(*ret_memory));
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuDestroyExternalMemory(struct ll_cu_external_memory *memory)
{
	struct ll_size size;
	if (ll_charge_passes())
		return ll_real()->cuDestroyExternalMemory(memory);
	LL_REENTRY_SCOPE();
	bool is_known = ll_charge_take(LL_SIZE_EXTERNAL, ll_charge_name(memory), &size);
	ll_cu_result status = ll_real()->cuDestroyExternalMemory(memory);
	if (is_known)
		ll_charge_freed(LL_SIZE_EXTERNAL, ll_charge_name(memory), &size, status);
	return status;
}
