/*
 * Occupancy, by threads, blocks and shared memory; registers are taken to be few.
 */
#include "cuda/local.h"
#include "cuda/mps.h"

enum { SM_THREADS = 2048, SM_BLOCKS = 32, BLOCK_RESERVED_BYTES = 1024 };

int sim_blocks_per_sm(int block_threads, size_t shared_bytes)
{
	int warps = (block_threads + 31) / 32;
	int blocks = SM_THREADS / 32 / warps;
	if (shared_bytes && (size_t)blocks > SIM_SM_SHARED_BYTES / shared_bytes)
		blocks = (int)(SIM_SM_SHARED_BYTES / shared_bytes);
	if (block_threads > SIM_BLOCK_THREADS)
		blocks = 0;
	return blocks < SM_BLOCKS ? blocks : SM_BLOCKS;
}

ll_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks, struct ll_cu_function *function,
							 int block_size, size_t shared_bytes)
{
	SIM_ENTER();
	if (!ret_blocks || block_size <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_blocks = sim_blocks_per_sm(block_size, shared_bytes);
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *ret_blocks, struct ll_cu_function *function,
								  int block_size, size_t shared_bytes,
								  unsigned int flags)
{
	SIM_ENTER();
	if (flags > LL_CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return LL_CUDA_ERROR_INVALID_VALUE;
	return cuOccupancyMaxActiveBlocksPerMultiprocessor(ret_blocks, function, block_size, shared_bytes);
}

static ll_cu_result card_of(struct ll_cu_function *function, uint32_t *ret_card)
{
	struct ll_cu_context *context;
	if (function->magic == SIM_MAGIC_FUNCTION) {
		*ret_card = function->module->context->card;
		return LL_CUDA_SUCCESS;
	}
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		*ret_card = context->card;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuOccupancyMaxPotentialBlockSize(int *ret_grid, int *ret_block, struct ll_cu_function *function,
					      ll_cu_occupancy_shared shared, size_t shared_bytes, int block_limit)
{
	SIM_ENTER();
	if (!ret_grid || !ret_block || block_limit < 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	int limit = block_limit && block_limit < SIM_BLOCK_THREADS ? block_limit : SIM_BLOCK_THREADS;
	int best_threads = 0;
	uint32_t card;
	ll_cu_result status = card_of(function, &card);
	if (status)
		return status;
	for (int size = 32; size <= limit; size += 32) {
		int blocks = sim_blocks_per_sm(size, shared ? shared(size) : shared_bytes);
		if (blocks * size < best_threads || blocks == 0)
			continue;
		best_threads = blocks * size;
		*ret_block = size;
		*ret_grid = blocks * (int)sim_cuda_sms(card);
	}
	return best_threads ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuOccupancyMaxPotentialBlockSizeWithFlags(int *ret_grid, int *ret_block, struct ll_cu_function *function,
						       ll_cu_occupancy_shared shared, size_t shared_bytes,
						       int block_limit, unsigned int flags)
{
	SIM_ENTER();
	if (flags > LL_CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return LL_CUDA_ERROR_INVALID_VALUE;
	return cuOccupancyMaxPotentialBlockSize(ret_grid, ret_block, function, shared, shared_bytes, block_limit);
}

ll_cu_result cuOccupancyAvailableDynamicSMemPerBlock(size_t *ret_bytes, struct ll_cu_function *function, int blocks,
						     int block_size)
{
	SIM_ENTER();
	if (!ret_bytes || blocks <= 0 || block_size <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (blocks > sim_blocks_per_sm(block_size, 0))
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t share = SIM_SM_SHARED_BYTES / (size_t)blocks;
	*ret_bytes = share > BLOCK_RESERVED_BYTES ? share - BLOCK_RESERVED_BYTES : 0;
	return LL_CUDA_SUCCESS;
}
