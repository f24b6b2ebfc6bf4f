/* Hooks of functions that report the size of the card's memory. */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"
#include "shim/memory/report.h"
#include "shim/residency/link.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Replaces the driver's figures by those of the limit. Returns the driver's error if the driver does not report the
 * card. */
static ll_cu_result limit_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ll_report report;
	struct ll_cu_context *context;
	struct ll_device_state *dev;
	ll_cu_result status = ll_device_state_find(&context, &dev);
	if (!dev)
		return status;
	ll_pool_true_up_if_used();
	if (!ll_report_device(dev->device, &report))
		return status;
	*total_bytes = least_of(*total_bytes, report.limit_bytes);
	report.limit_bytes = *total_bytes;
	/* The memory of other programs is evicted when this program needs the room. */
	if (ll_residency_backs(dev))
		*free_bytes = ll_report_left(&report);
	else
		*free_bytes = least_of(*free_bytes, ll_report_left(&report));
	return status;
}

/* The driver accepts NULL for either figure. The library needs both figures to limit one, so it asks the driver again
 * for the other. */
#define INFO_HOOK(symbol, type)                                                                                        \
	LL_HOOK_EXPORT ll_cu_result symbol(type *ret_free_bytes, type *ret_total_bytes)                                \
	{                                                                                                              \
		type free_of_card, total_of_card;                                                                      \
		ll_cu_result status = ll_real()->symbol(ret_free_bytes, ret_total_bytes);                              \
		if (status != LL_CUDA_SUCCESS || ll_charge_passes())                                                   \
			return status;                                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		if (ret_free_bytes && ret_total_bytes) {                                                               \
			free_of_card = *ret_free_bytes;                                                                \
			total_of_card = *ret_total_bytes;                                                              \
		} else if ((status = ll_real()->symbol(&free_of_card, &total_of_card)) != LL_CUDA_SUCCESS) {           \
			return status;                                                                                 \
		}                                                                                                      \
		uint64_t free_bytes = free_of_card, total_bytes = total_of_card;                                       \
		status = limit_info(&free_bytes, &total_bytes);                                                        \
		if (ret_free_bytes)                                                                                    \
			*ret_free_bytes = (type)free_bytes;                                                            \
		if (ret_total_bytes)                                                                                   \
			*ret_total_bytes = (type)total_bytes;                                                          \
		return status;                                                                                         \
	}

INFO_HOOK(cuMemGetInfo, unsigned int)
INFO_HOOK(cuMemGetInfo_v2, size_t)

#define TOTAL_HOOK(symbol, type)                                                                                       \
	LL_HOOK_EXPORT ll_cu_result symbol(type *ret_bytes, ll_cu_device device)                                       \
	{                                                                                                              \
		struct ll_report report;                                                                               \
		ll_cu_result status = ll_real()->symbol(ret_bytes, device);                                            \
		if (status != LL_CUDA_SUCCESS || ll_charge_passes())                                                   \
			return status;                                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		if (ll_report_device(device, &report))                                                                 \
			*ret_bytes = (type)least_of(*ret_bytes, report.limit_bytes);                                   \
		return status;                                                                                         \
	}

TOTAL_HOOK(cuDeviceTotalMem, unsigned int)
TOTAL_HOOK(cuDeviceTotalMem_v2, size_t)
