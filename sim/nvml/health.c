/*
 * Faults of a card: remapped rows, errors of memory, errors of its links.
 */
#include "nvml/local.h"

enum { LINKS = 18, MIN_ROWS = 1 };

ll_nvml_result nvmlDeviceGetRemappedRows(struct ll_nvml_device *device, unsigned int *ret_corrected,
					 unsigned int *ret_uncorrected, unsigned int *ret_is_pending,
					 unsigned int *ret_has_failed)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_corrected || !ret_uncorrected || !ret_is_pending || !ret_has_failed)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_corrected = 0;
	*ret_uncorrected = view.card->has_remap_failure || view.card->has_remap_pending ? MIN_ROWS : 0;
	*ret_is_pending = view.card->has_remap_pending;
	*ret_has_failed = view.card->has_remap_failure;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetTotalEccErrors(struct ll_nvml_device *device, enum ll_nvml_memory_error error,
					   enum ll_nvml_ecc_counter counter, unsigned long long *ret_count)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_count || (unsigned)error > LL_NVML_MEMORY_ERROR_UNCORRECTED ||
	    (unsigned)counter > LL_NVML_ECC_AGGREGATE)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_count = error == LL_NVML_MEMORY_ERROR_UNCORRECTED ? view.card->ecc_uncorrected : 0;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetNvLinkState(struct ll_nvml_device *device, unsigned int link,
					enum ll_nvml_enable_state *ret_state)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_state || link >= LINKS)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_state = LL_NVML_FEATURE_ENABLED;
	return LL_NVML_SUCCESS;
}

/* All errors of the card are CRC errors of the flits of its first link. */
ll_nvml_result nvmlDeviceGetNvLinkErrorCounter(struct ll_nvml_device *device, unsigned int link, unsigned int counter,
					       unsigned long long *ret_count)
{
	enum { CRC_FLIT = 2 };
	SIM_NVML_OPEN(view, device);
	if (!ret_count || link >= LINKS || counter >= LL_NVML_NVLINK_ERRORS)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (view.is_slice)
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_count = link == 0 && counter == CRC_FLIT ? view.card->nvlink_errors : 0;
	return LL_NVML_SUCCESS;
}
