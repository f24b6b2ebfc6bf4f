/*
 * Launch functions of CUDA 3, which drivers still export: a function keeps its block's shape and its arguments between
 * calls.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/enter.h"
#include "cuda/launch.h"

/* Locks, and returns the function's arguments, which the first use makes. NULL: not locked; ret_status has the
 * reason. */
static struct sim_old_arguments *lock_function(struct ll_cu_function *function, ll_cu_result *ret_status)
{
	if (!function || function->magic != SIM_MAGIC_FUNCTION) {
		*ret_status = LL_CUDA_ERROR_INVALID_HANDLE;
		return NULL;
	}
	sim_cuda_lock();
	if (!function->old_arguments) {
		function->old_arguments = calloc(1, sizeof *function->old_arguments);
		if (function->old_arguments)
			*function->old_arguments = (struct sim_old_arguments){.block_x = 1, .block_y = 1, .block_z = 1};
	}
	*ret_status = LL_CUDA_SUCCESS;
	if (!function->old_arguments) {
		*ret_status = LL_CUDA_ERROR_OUT_OF_MEMORY;
		sim_cuda_unlock();
	}
	return function->old_arguments;
}

ll_cu_result cuFuncSetBlockShape(struct ll_cu_function *function, int x, int y, int z)
{
	SIM_ENTER();
	ll_cu_result status;
	if (x <= 0 || y <= 0 || z <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_old_arguments *old = lock_function(function, &status);
	if (!old)
		return status;
	old->block_x = (unsigned)x;
	old->block_y = (unsigned)y;
	old->block_z = (unsigned)z;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncSetSharedSize(struct ll_cu_function *function, unsigned int bytes)
{
	SIM_ENTER();
	ll_cu_result status;
	struct sim_old_arguments *old = lock_function(function, &status);
	if (!old)
		return status;
	old->shared_bytes = bytes;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuParamSetSize(struct ll_cu_function *function, unsigned int bytes)
{
	SIM_ENTER();
	ll_cu_result status;
	if (bytes > sizeof function->old_arguments->bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_old_arguments *old = lock_function(function, &status);
	if (!old)
		return status;
	old->size = bytes;
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

static ll_cu_result set_param(struct ll_cu_function *function, int offset, const void *bytes, size_t count)
{
	ll_cu_result status;
	size_t room = sizeof function->old_arguments->bytes;
	if (!bytes || offset < 0 || count > room || (size_t)offset > room - count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_old_arguments *old = lock_function(function, &status);
	if (!old)
		return status;
	memcpy(old->bytes + offset, bytes, count);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuParamSeti(struct ll_cu_function *function, int offset, unsigned int value)
{
	SIM_ENTER();
	return set_param(function, offset, &value, sizeof value);
}

ll_cu_result cuParamSetf(struct ll_cu_function *function, int offset, float value)
{
	SIM_ENTER();
	return set_param(function, offset, &value, sizeof value);
}

ll_cu_result cuParamSetv(struct ll_cu_function *function, int offset, void *bytes, unsigned int count)
{
	SIM_ENTER();
	return set_param(function, offset, bytes, count);
}

static ll_cu_result launch_old(struct ll_cu_function *function, int grid_x, int grid_y, struct ll_cu_stream *stream)
{
	ll_cu_result status;
	if (grid_x <= 0 || grid_y <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_old_arguments *old = lock_function(function, &status);
	if (!old)
		return status;
	struct sim_old_arguments now = *old;
	sim_cuda_unlock();
	void *extra[] = {LL_CU_LAUNCH_PARAM_BUFFER_POINTER, now.bytes, LL_CU_LAUNCH_PARAM_BUFFER_SIZE, &now.size,
			 LL_CU_LAUNCH_PARAM_END};
	struct ll_cu_kernel_params kernel = {
	    .function = function,
	    .grid_x = (unsigned)grid_x,
	    .grid_y = (unsigned)grid_y,
	    .grid_z = 1,
	    .block_x = now.block_x,
	    .block_y = now.block_y,
	    .block_z = now.block_z,
	    .shared_bytes = now.shared_bytes,
	    .extra = extra,
	};
	return sim_kernel_launch(&kernel, false, stream);
}

ll_cu_result cuLaunch(struct ll_cu_function *function)
{
	SIM_ENTER();
	return launch_old(function, 1, 1, NULL);
}

ll_cu_result cuLaunchGrid(struct ll_cu_function *function, int grid_x, int grid_y)
{
	SIM_ENTER();
	return launch_old(function, grid_x, grid_y, NULL);
}

ll_cu_result cuLaunchGridAsync(struct ll_cu_function *function, int grid_x, int grid_y, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return launch_old(function, grid_x, grid_y, stream);
}
