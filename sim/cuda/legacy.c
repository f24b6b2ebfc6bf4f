/*
 * Old versions of functions. Those from before CUDA 3.2 have addresses and sizes of 32 bits. On a present card no
 * context supports them; their statuses are as measured on an H200 (driver 580). Those for OpenGL and VDPAU were not
 * measured, and return what cuCtxCreate does.
 */
#include "cuda/enter.h"

ll_cu_result cuDeviceTotalMem(unsigned int *ret_bytes, ll_cu_device device)
{
	SIM_ENTER();
	size_t bytes;
	if (!ret_bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = cuDeviceTotalMem_v2(&bytes, device);
	if (status == LL_CUDA_SUCCESS)
		*ret_bytes = bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
	return status;
}

static ll_cu_result refuse_context(struct ll_cu_context **ret_context, ll_cu_device device)
{
	if (!ret_context)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuCtxCreate(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	(void)flags;
	return refuse_context(ret_context, device);
}

ll_cu_result cuGLCtxCreate(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	(void)flags;
	return refuse_context(ret_context, device);
}

ll_cu_result cuVDPAUCtxCreate(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device,
			      ll_vdp_device vdp_device, ll_vdp_get_proc_address *vdp_get_proc_address)
{
	SIM_ENTER();
	(void)flags;
	(void)vdp_device;
	(void)vdp_get_proc_address;
	return refuse_context(ret_context, device);
}

/* The functions with two 32-bit results write them even when they fail (bench/c/null_outs.txt). */
static ll_cu_result refuse_results(unsigned int *ret_first, unsigned int *ret_second)
{
	if (ret_first)
		*ret_first = 0;
	if (ret_second)
		*ret_second = 0;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuMemGetInfo(unsigned int *ret_free_bytes, unsigned int *ret_total_bytes)
{
	SIM_ENTER();
	return refuse_results(ret_free_bytes, ret_total_bytes);
}

ll_cu_result cuMemAlloc(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes)
{
	SIM_ENTER();
	(void)ret_address;
	(void)bytes;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuMemAllocPitch(ll_cu_deviceptr_v1 *ret_address, unsigned int *ret_pitch_bytes, unsigned int width_bytes,
			     unsigned int height, unsigned int element_bytes)
{
	SIM_ENTER();
	(void)width_bytes;
	(void)height;
	(void)element_bytes;
	return refuse_results(ret_address, ret_pitch_bytes);
}

ll_cu_result cuMemGetAddressRange(ll_cu_deviceptr_v1 *ret_base, unsigned int *ret_bytes, ll_cu_deviceptr_v1 address)
{
	SIM_ENTER();
	(void)address;
	return refuse_results(ret_base, ret_bytes);
}

ll_cu_result cuMemFree(ll_cu_deviceptr_v1 address)
{
	SIM_ENTER();
	(void)address;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuArrayCreate(struct ll_cu_array **ret_array, const struct ll_cu_array_descriptor_v1 *descriptor)
{
	SIM_ENTER();
	(void)ret_array;
	(void)descriptor;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuArrayGetDescriptor(struct ll_cu_array_descriptor_v1 *ret_descriptor, struct ll_cu_array *array)
{
	SIM_ENTER();
	(void)ret_descriptor;
	(void)array;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuArray3DCreate(struct ll_cu_array **ret_array, const struct ll_cu_array3d_descriptor_v1 *descriptor)
{
	SIM_ENTER();
	(void)ret_array;
	(void)descriptor;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuArray3DGetDescriptor(struct ll_cu_array3d_descriptor_v1 *ret_descriptor, struct ll_cu_array *array)
{
	SIM_ENTER();
	(void)ret_descriptor;
	(void)array;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuCtxCreate_v3(struct ll_cu_context **ret_context, struct ll_cu_exec_affinity_param *params,
			    int param_count, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	if (!params != !param_count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	return params ? LL_CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuCtxDestroy(struct ll_cu_context *context)
{
	SIM_ENTER();
	return cuCtxDestroy_v2(context);
}

ll_cu_result cuDevicePrimaryCtxRelease(ll_cu_device device)
{
	SIM_ENTER();
	return cuDevicePrimaryCtxRelease_v2(device);
}

ll_cu_result cuDevicePrimaryCtxReset(ll_cu_device device)
{
	SIM_ENTER();
	return cuDevicePrimaryCtxReset_v2(device);
}

ll_cu_result cuDevicePrimaryCtxSetFlags(ll_cu_device device, unsigned int flags)
{
	SIM_ENTER();
	return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

ll_cu_result cuStreamDestroy(struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return cuStreamDestroy_v2(stream);
}
