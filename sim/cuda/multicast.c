/*
 * Multicast objects and sparse arrays: not on this card (it has no switch), so each call says so, as on an H200 alone.
 */
#include "cuda/local.h"

ll_cu_result cuMulticastCreate(ll_cu_mem_handle *ret_handle, const struct ll_cu_multicast_prop *prop)
{
	SIM_ENTER();
	return ret_handle && prop ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastAddDevice(ll_cu_mem_handle handle, ll_cu_device device)
{
	SIM_ENTER();
	(void)handle;
	(void)device;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindMem(ll_cu_mem_handle handle, size_t offset, ll_cu_mem_handle memory, size_t memory_offset,
				size_t bytes, unsigned long long flags)
{
	SIM_ENTER();
	(void)handle;
	(void)offset;
	(void)memory;
	(void)memory_offset;
	(void)bytes;
	(void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindAddr(ll_cu_mem_handle handle, size_t offset, ll_cu_deviceptr address, size_t bytes,
				 unsigned long long flags)
{
	SIM_ENTER();
	(void)handle;
	(void)offset;
	(void)address;
	(void)bytes;
	(void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastUnbind(ll_cu_mem_handle handle, ll_cu_device device, size_t offset, size_t bytes)
{
	SIM_ENTER();
	(void)handle;
	(void)device;
	(void)offset;
	(void)bytes;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastGetGranularity(size_t *ret_bytes, const struct ll_cu_multicast_prop *prop,
				       enum ll_cu_multicast_granularity_flags option)
{
	SIM_ENTER();
	(void)option;
	return ret_bytes && prop ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemMapArrayAsync(struct ll_cu_array_map_info *infos, unsigned int count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	(void)stream;
	return infos && count ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}
