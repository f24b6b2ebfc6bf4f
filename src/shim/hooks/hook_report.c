/* What a program is told of the card's memory. */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"
#include "shim/memory/report.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void tell_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ll_report report;
	struct ll_cu_context *context;
	const struct ll_device_state *dev = ll_device_state_current(&context);
	if (!dev)
		return;
	ll_pool_true_up_if_used();
	if (!ll_report_device(dev->device, &report))
		return;
	*total_bytes = least_of(*total_bytes, report.limit_bytes);
	*free_bytes = least_of(*free_bytes, ll_report_left(&report));
}

LL_HOOK_EXPORT ll_cu_result cuMemGetInfo(unsigned int *ret_free_bytes, unsigned int *ret_total_bytes)
{
	ll_cu_result status = ll_real()->cuMemGetInfo(ret_free_bytes, ret_total_bytes);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	uint64_t free_bytes = *ret_free_bytes, total_bytes = *ret_total_bytes;
	tell_info(&free_bytes, &total_bytes);
	*ret_free_bytes = (unsigned)free_bytes;
	*ret_total_bytes = (unsigned)total_bytes;
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuMemGetInfo_v2(size_t *ret_free_bytes, size_t *ret_total_bytes)
{
	ll_cu_result status = ll_real()->cuMemGetInfo_v2(ret_free_bytes, ret_total_bytes);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	uint64_t free_bytes = *ret_free_bytes, total_bytes = *ret_total_bytes;
	tell_info(&free_bytes, &total_bytes);
	*ret_free_bytes = free_bytes;
	*ret_total_bytes = total_bytes;
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuDeviceTotalMem(unsigned int *ret_bytes, ll_cu_device device)
{
	struct ll_report report;
	ll_cu_result status = ll_real()->cuDeviceTotalMem(ret_bytes, device);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	if (ll_report_device(device, &report))
		*ret_bytes = (unsigned)least_of(*ret_bytes, report.limit_bytes);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuDeviceTotalMem_v2(size_t *ret_bytes, ll_cu_device device)
{
	struct ll_report report;
	ll_cu_result status = ll_real()->cuDeviceTotalMem_v2(ret_bytes, device);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	if (ll_report_device(device, &report))
		*ret_bytes = least_of(*ret_bytes, report.limit_bytes);
	return status;
}
