/*
 * Queries of the memory of graphs.
 */
#include "cuda/local/graph_memory.h"
#include "cuda/enter.h"

static bool is_device(ll_cu_device device)
{
	return device >= 0 && device < sim_cuda.device_count;
}

ll_cu_result cuDeviceGetGraphMemAttribute(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute,
					  void *ret_value)
{
	SIM_ENTER();
	if (!ret_value || (unsigned)attribute > LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	*(uint64_t *)ret_value = sim_graph_reserve_bytes(device, attribute);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

/* Resets a high mark to the present value; nothing else can be set. */
ll_cu_result cuDeviceSetGraphMemAttribute(ll_cu_device device, enum ll_cu_graph_mem_attribute attribute, void *value)
{
	SIM_ENTER();
	bool is_used_high = attribute == LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
	if (!value || (!is_used_high && attribute != LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) ||
	    *(const uint64_t *)value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	sim_graph_reserve_reset_high(device, is_used_high);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceGraphMemTrim(ll_cu_device device)
{
	SIM_ENTER();
	if (!is_device(device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	sim_graph_reserve_trim(device);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}
