/*
 * Contexts: make, destroy, set current, wait, limits; and the cards' primary contexts.
 */
#include "cuda/local/context.h"
#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/current.h"
#include "cuda/local/pool.h"

ll_cu_result cuCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	if (!ret_context || flags & ~(unsigned)LL_CU_CTX_FLAGS_MASK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_context_make(device, flags, &context);
	if (status == LL_CUDA_SUCCESS) {
		*ret_context = context;
		status = sim_current_push(context);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxCreate_v4(struct ll_cu_context **ret_context, struct ll_cu_ctx_create_params *params,
			    unsigned int flags, ll_cu_device device)
{
	return params ? LL_CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuGLCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device)
{
	SIM_ENTER();
	return cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuVDPAUCtxCreate_v2(struct ll_cu_context **ret_context, unsigned int flags, ll_cu_device device,
				 ll_vdp_device vdp_device, ll_vdp_get_proc_address *vdp_get_proc_address)
{
	SIM_ENTER();
	(void)vdp_device;
	(void)vdp_get_proc_address;
	return cuCtxCreate_v2(ret_context, flags, device);
}

ll_cu_result cuCtxDestroy_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!sim_context_is_known(context) || context->is_primary)
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	else
		sim_context_destroy(context);
	sim_current_drop_forgotten();
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxAttach(struct ll_cu_context **ret_context, unsigned int flags)
{
	SIM_ENTER();
	struct ll_cu_context *context = sim_current_top();
	if (!ret_context || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_lock();
	context->attaches++;
	*ret_context = context;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

/* Only the thread's current context can be detached. */
ll_cu_result cuCtxDetach(struct ll_cu_context *context)
{
	SIM_ENTER();
	if (!context || sim_current_top() != context)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_lock();
	bool is_last = !context->attaches;
	context->attaches -= !is_last;
	sim_cuda_unlock();
	return is_last ? cuCtxDestroy_v2(context) : LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxPushCurrent_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status =
	    sim_context_may_be_current(context) ? sim_current_push(context) : LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxPopCurrent_v2(struct ll_cu_context **ret_context)
{
	SIM_ENTER();
	if (sim_current_is_empty())
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_lock();
	struct ll_cu_context *context = sim_current_pop();
	sim_cuda_unlock();
	if (ret_context)
		*ret_context = context;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxSetCurrent(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (context)
		status =
		    sim_context_may_be_current(context) ? sim_current_replace(context) : LL_CUDA_ERROR_INVALID_CONTEXT;
	else if (!sim_current_is_empty())
		sim_current_pop();
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetCurrent(struct ll_cu_context **ret_context)
{
	SIM_ENTER();
	if (!ret_context)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_context = sim_current_top();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxGetDevice(ll_cu_device *ret_device)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_device ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_device = context->device;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetFlags(unsigned int *ret_flags)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_flags ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS)
		*ret_flags = context->flags;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSetFlags(unsigned int flags)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status =
	    flags & ~(unsigned)LL_CU_CTX_FLAGS_MASK ? LL_CUDA_ERROR_INVALID_VALUE : sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		context->flags = flags;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetApiVersion(struct ll_cu_context *context, unsigned int *ret_version)
{
	SIM_ENTER();
	if (!ret_version)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status =
	    !context || sim_context_is_known(context) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_CONTEXT;
	sim_cuda_unlock();
	if (status == LL_CUDA_SUCCESS)
		*ret_version = 3020;
	return status;
}

ll_cu_result cuCtxGetId(struct ll_cu_context *context, unsigned long long *ret_id)
{
	SIM_ENTER();
	if (!ret_id)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (!context)
		status = sim_current(&context);
	else if (!sim_context_is_known(context))
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (status == LL_CUDA_SUCCESS)
		*ret_id = context->id;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSynchronize(void)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_capture_refuse_context(context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_wait_context(context);
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(NULL);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSynchronize_v2(struct ll_cu_context *context)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = context ? LL_CUDA_SUCCESS : sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_context_is_known(context) ? sim_wait_context(context) : LL_CUDA_ERROR_INVALID_CONTEXT;
	if (status == LL_CUDA_SUCCESS)
		sim_pools_synchronised(NULL);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxSetLimit(enum ll_cu_limit limit, size_t value)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS) {
		switch (limit) {
		case LL_CU_LIMIT_STACK_SIZE:
			status = sim_context_set_stack(context, value);
			break;
		case LL_CU_LIMIT_PRINTF_FIFO_SIZE:
			context->printf_bytes = value;
			break;
		case LL_CU_LIMIT_MALLOC_HEAP_SIZE:
			context->heap_bytes = value;
			break;
		default:
			status = LL_CUDA_ERROR_UNSUPPORTED_LIMIT;
		}
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetLimit(size_t *ret_value, enum ll_cu_limit limit)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = ret_value ? sim_current(&context) : LL_CUDA_ERROR_INVALID_VALUE;
	if (status == LL_CUDA_SUCCESS) {
		switch (limit) {
		case LL_CU_LIMIT_STACK_SIZE:
			sim_lock(sim_cuda.world);
			*ret_value = sim_cuda.world->contexts[context->slot].stack_bytes;
			sim_unlock(sim_cuda.world);
			break;
		case LL_CU_LIMIT_PRINTF_FIFO_SIZE:
			*ret_value = context->printf_bytes;
			break;
		case LL_CU_LIMIT_MALLOC_HEAP_SIZE:
			*ret_value = context->heap_bytes;
			break;
		default:
			status = LL_CUDA_ERROR_UNSUPPORTED_LIMIT;
		}
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	SIM_ENTER();
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = -5;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDevicePrimaryCtxRetain(struct ll_cu_context **ret_context, ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_retain(ret_context, device);
}

ll_cu_result cuDevicePrimaryCtxRelease_v2(ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_drop(device, false);
}

ll_cu_result cuDevicePrimaryCtxReset_v2(ll_cu_device device)
{
	SIM_ENTER();
	return sim_primary_drop(device, true);
}

ll_cu_result cuDevicePrimaryCtxSetFlags_v2(ll_cu_device device, unsigned int flags)
{
	SIM_ENTER();
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)LL_CU_CTX_FLAGS_MASK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	sim_cuda.primary_flags[device] = flags;
	if (sim_cuda.primaries[device])
		sim_cuda.primaries[device]->flags = flags;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDevicePrimaryCtxGetState(ll_cu_device device, unsigned int *ret_flags, int *ret_active)
{
	SIM_ENTER();
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (!ret_flags || !ret_active)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	*ret_flags = sim_cuda.primary_flags[device];
	*ret_active = sim_cuda.primaries[device] != NULL;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}
