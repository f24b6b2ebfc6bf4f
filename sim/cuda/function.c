/*
 * Functions of modules: their attributes and parameters.
 */
#include "cuda/function.h"

#include "cuda/enter.h"

#include "cuda/local/current.h"
#include "cuda/local/kernel.h"
#include "cuda/local/module.h"
#include "cuda/local/mps.h"

static bool is_function(const struct ll_cu_function *function)
{
	return function && function->magic == SIM_MAGIC_FUNCTION;
}

ll_cu_result sim_function_attribute(uint32_t card_index, const struct sim_ptx *ptx, int max_dynamic,
				    enum ll_cu_function_attribute attribute, int *ret_value)
{
	const struct sim_card *card = &sim_cuda.world->cards[card_index];
	switch (attribute) {
	case LL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret_value = SIM_BLOCK_THREADS;
		break;
	case LL_CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret_value = 32;
		break;
	case LL_CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*ret_value = (int)ptx->target;
		break;
	case LL_CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret_value = (int)(card->capability_major * 10 + card->capability_minor);
		break;
	case LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret_value = max_dynamic ? max_dynamic : 48 * 1024;
		break;
	case LL_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
	case LL_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case LL_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
	case LL_CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case LL_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret_value = 0;
		break;
	default:
		return LL_CUDA_ERROR_INVALID_VALUE;
	}
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncGetAttribute(int *ret_value, enum ll_cu_function_attribute attribute,
				struct ll_cu_function *function)
{
	SIM_ENTER();
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return sim_function_attribute(function->module->context->card, &function->module->ptx,
				      function->max_dynamic_shared_bytes, attribute, ret_value);
}

ll_cu_result sim_function_set_attribute(enum ll_cu_function_attribute attribute, int value, int *max_dynamic)
{
	if (attribute != LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    attribute != LL_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (attribute == LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		if (value < 0 || value > SIM_SM_SHARED_BYTES)
			return LL_CUDA_ERROR_INVALID_VALUE;
		sim_cuda_lock();
		*max_dynamic = value;
		sim_cuda_unlock();
	}
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncSetAttribute(struct ll_cu_function *function, enum ll_cu_function_attribute attribute, int value)
{
	SIM_ENTER();
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return sim_function_set_attribute(attribute, value, &function->max_dynamic_shared_bytes);
}

ll_cu_result cuFuncSetCacheConfig(struct ll_cu_function *function, enum ll_cu_func_cache config)
{
	SIM_ENTER();
	(void)config;
	return is_function(function) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}

ll_cu_result cuFuncGetName(const char **ret_name, struct ll_cu_function *function)
{
	SIM_ENTER();
	if (!ret_name)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_name = function->entry->name;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncGetModule(struct ll_cu_module **ret_module, struct ll_cu_function *function)
{
	SIM_ENTER();
	if (!ret_module)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_module = function->module;
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_function_param(const struct sim_ptx_entry *entry, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	if (!ret_offset || index >= entry->param_count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_offset = entry->params[index].offset;
	if (ret_bytes)
		*ret_bytes = entry->params[index].size;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncGetParamInfo(struct ll_cu_function *function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	SIM_ENTER();
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return sim_function_param(function->entry, index, ret_offset, ret_bytes);
}

ll_cu_result cuFuncIsLoaded(enum ll_cu_function_loading_state *ret_state, struct ll_cu_function *function)
{
	SIM_ENTER();
	if (!ret_state)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_state = LL_CU_FUNCTION_LOADING_STATE_LOADED;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuFuncLoad(struct ll_cu_function *function)
{
	SIM_ENTER();
	return is_function(function) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}

/* ---- occupancy ---- */

/*
 * Occupancy by threads, blocks and shared memory; registers are assumed to be few.
 */

enum { BLOCK_RESERVED_BYTES = 1024 };

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
