#include "shim/hook.h"

LL_HOOK_EXPORT ll_cu_result cuLaunchKernel(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
					   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
					   unsigned int block_z, unsigned int shared_bytes, struct ll_cu_stream *stream,
					   void **params, void **extra)
{
	return ll_real()->cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
					 stream, params, extra);
}

LL_HOOK_EXPORT ll_cu_result cuLaunchKernel_ptsz(struct ll_cu_function *function, unsigned int grid_x,
						unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
						unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
						struct ll_cu_stream *stream, void **params, void **extra)
{
	return ll_real()->cuLaunchKernel_ptsz(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
					      stream, params, extra);
}
