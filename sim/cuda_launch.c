/*
 * Kernels: launched, asked about. They are not executed; README.md says what each does instead.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cuda_local.h"
#include "engine.h"
#include "population.h"

#define DEFAULT_LENGTH_NS (100 * LL_NS_PER_US)

enum { MAX_BLOCK_THREADS = 1024, SM_THREADS = 2048, SM_BLOCKS = 32, SM_SHARED_BYTES = 233472 };

struct grid {
	unsigned x, y, z;
	unsigned block_x, block_y, block_z;
	unsigned shared_bytes;
};

/* Parameter i as an unsigned number, from either form of arguments. */
static bool read_param(const struct sim_ptx_entry *entry, unsigned i, void **params, const char *buffer, uint64_t *ret)
{
	uint64_t value = 0;
	if (i >= entry->param_count || entry->params[i].size > sizeof value || (!params && !buffer))
		return false;
	memcpy(&value, params ? params[i] : buffer + entry->params[i].offset, entry->params[i].size);
	*ret = value;
	return true;
}

static ll_cu_result find_buffer(void **extra, const struct sim_ptx_entry *entry, const char **ret_buffer)
{
	const char *buffer = NULL;
	size_t size = 0;
	for (; extra && *extra != LL_CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == LL_CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == LL_CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(size_t *)extra[1];
		else
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	if (!buffer || size < entry->param_bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_buffer = buffer;
	return LL_CUDA_SUCCESS;
}

static bool has_five_u64(const struct sim_ptx_entry *entry)
{
	for (unsigned i = 0; i < entry->param_count; i++) {
		if (entry->params[i].size != 8)
			return false;
	}
	return entry->param_count == 5;
}

/* Gives op the behaviour that its kernel's name and parameters ask for. */
static ll_cu_result set_behaviour(const struct ll_cu_function *function, void **params, const char *buffer,
				  struct sim_op *op, struct sim_action *action)
{
	const struct sim_ptx_entry *entry = function->entry;
	const char *name = entry->name;
	bool is_spin = sim_name_matches("spin_ns", name) || sim_name_matches("spin_ns_*", name);
	bool is_work = sim_name_matches("work_ns", name) || sim_name_matches("work_ns_*", name);
	bool has_record = has_five_u64(entry) && (is_spin || strstr(name, "fma"));
	uint64_t value;
	op->is_fma = strstr(name, "fma") != NULL;
	op->is_timed = is_spin || has_record;
	if ((is_spin || is_work || has_record) && read_param(entry, 0, params, buffer, &value))
		op->length_ns = value;
	else
		op->length_ns = sim_kernel_length_ns(sim_cuda.world, name, DEFAULT_LENGTH_NS);
	if (!has_record)
		return LL_CUDA_SUCCESS;
	uint64_t record = 0, epoch_and_sequence = 0;
	read_param(entry, 1, params, buffer, &record);
	read_param(entry, 2, params, buffer, &op->late_after_ns);
	read_param(entry, 3, params, buffer, &op->gap_limit_ns);
	read_param(entry, 4, params, buffer, &epoch_and_sequence);
	op->epoch = (uint32_t)(epoch_and_sequence >> 32);
	action->kind = SIM_ACTION_RECORD;
	action->sequence = (uint32_t)epoch_and_sequence;
	action->to = sim_memory_at(record, 32);
	action->card = function->module->context->card;
	return action->to ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

static bool is_valid_grid(const struct grid *grid)
{
	uint64_t threads = (uint64_t)grid->block_x * grid->block_y * grid->block_z;
	return grid->x && grid->y && grid->z && grid->y <= 65535 && grid->z <= 65535 && threads &&
	       threads <= MAX_BLOCK_THREADS && grid->block_z <= 64 && grid->shared_bytes <= SM_SHARED_BYTES;
}

/* A kernel that writes where there is no memory: the real card reports Xid 31 and the context is lost. */
static void lose_context(const struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	sim_advance_to_now(w);
	sim_report_fault(w, context->slot, 31, LL_CUDA_ERROR_ILLEGAL_ADDRESS);
	sim_unlock(w);
	sim_cuda_pump();
}

static ll_cu_result launch(const struct ll_cu_function *function, const struct grid *grid, struct ll_cu_stream *handle,
			   void **params, void **extra)
{
	struct ll_cu_stream *stream;
	const char *buffer = NULL;
	ll_cu_result status = sim_stream_of(handle, &stream);
	if (status)
		return status;
	if (stream->context != function->module->context)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (function->entry->param_count && !params) {
		status = find_buffer(extra, function->entry, &buffer);
		if (status)
			return status;
	}
	uint64_t blocks = (uint64_t)grid->x * grid->y * grid->z;
	struct sim_op op = {
	    .kind = SIM_OP_KERNEL,
	    .module = function->module->slot,
	    .blocks = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks,
	    .threads = grid->block_x * grid->block_y * grid->block_z,
	};
	struct sim_action action = {.kind = SIM_ACTION_NONE};
	uint64_t address;
	for (unsigned i = 0; i < function->entry->param_count; i++) {
		if (function->entry->params[i].size == 8 && read_param(function->entry, i, params, buffer, &address))
			sim_managed_touch(address);
	}
	status = set_behaviour(function, params, buffer, &op, &action);
	if (status == LL_CUDA_ERROR_ILLEGAL_ADDRESS) {
		/* As on a real card, the launch itself succeeds and later calls learn of it. */
		lose_context(stream->context);
		return LL_CUDA_SUCCESS;
	}
	return status ? status : sim_queue(stream, &op, &action, NULL);
}

static ll_cu_result enter_and_launch(const struct ll_cu_function *function, const struct grid *grid,
				     struct ll_cu_stream *stream, void **params, void **extra)
{
	if (!function || function->magic != SIM_MAGIC_FUNCTION)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (!is_valid_grid(grid) || (params && extra))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = launch(function, grid, stream, params, extra);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuLaunchKernel(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
			    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
			    unsigned int shared_bytes, struct ll_cu_stream *stream, void **params, void **extra)
{
	SIM_ENTER();
	struct grid grid = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes};
	return enter_and_launch(function, &grid, stream, params, extra);
}

ll_cu_result cuLaunchKernelEx(const struct ll_cu_launch_config *config, struct ll_cu_function *function, void **params,
			      void **extra)
{
	SIM_ENTER();
	if (!config)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct grid grid = {config->grid_x,  config->grid_y,  config->grid_z,      config->block_x,
			    config->block_y, config->block_z, config->shared_bytes};
	return enter_and_launch(function, &grid, config->stream, params, extra);
}

static bool is_function(const struct ll_cu_function *function)
{
	return function && function->magic == SIM_MAGIC_FUNCTION;
}

ll_cu_result cuFuncGetAttribute(int *ret_value, enum ll_cu_function_attribute attribute,
				struct ll_cu_function *function)
{
	SIM_ENTER();
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	const struct sim_card *card = &sim_cuda.world->cards[function->module->context->card];
	switch (attribute) {
	case LL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret_value = MAX_BLOCK_THREADS;
		break;
	case LL_CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret_value = 32;
		break;
	case LL_CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*ret_value = (int)function->module->ptx.target;
		break;
	case LL_CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret_value = (int)(card->capability_major * 10 + card->capability_minor);
		break;
	case LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret_value = function->max_dynamic_shared_bytes ? function->max_dynamic_shared_bytes : 48 * 1024;
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

ll_cu_result cuFuncSetAttribute(struct ll_cu_function *function, enum ll_cu_function_attribute attribute, int value)
{
	SIM_ENTER();
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (attribute != LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    attribute != LL_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (attribute == LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		if (value < 0 || value > SM_SHARED_BYTES)
			return LL_CUDA_ERROR_INVALID_VALUE;
		sim_cuda_lock();
		function->max_dynamic_shared_bytes = value;
		sim_cuda_unlock();
	}
	return LL_CUDA_SUCCESS;
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

/* By threads, blocks and shared memory; registers are taken to be few. */
ll_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks, struct ll_cu_function *function,
							 int block_size, size_t shared_bytes)
{
	SIM_ENTER();
	if (!ret_blocks || block_size <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	int warps = (block_size + 31) / 32;
	int blocks = SM_THREADS / 32 / warps;
	if (shared_bytes && (size_t)blocks > SM_SHARED_BYTES / shared_bytes)
		blocks = (int)(SM_SHARED_BYTES / shared_bytes);
	if (block_size > MAX_BLOCK_THREADS)
		blocks = 0;
	*ret_blocks = blocks < SM_BLOCKS ? blocks : SM_BLOCKS;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuOccupancyMaxPotentialBlockSize(int *ret_grid, int *ret_block, struct ll_cu_function *function,
					      ll_cu_occupancy_shared shared, size_t shared_bytes, int block_limit)
{
	SIM_ENTER();
	if (!ret_grid || !ret_block || block_limit < 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_function(function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	int limit = block_limit && block_limit < MAX_BLOCK_THREADS ? block_limit : MAX_BLOCK_THREADS;
	int best_threads = 0;
	const struct sim_card *card = &sim_cuda.world->cards[function->module->context->card];
	for (int size = 32; size <= limit; size += 32) {
		int blocks = 0;
		size_t bytes = shared ? shared(size) : shared_bytes;
		cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, size, bytes);
		if (blocks * size < best_threads || blocks == 0)
			continue;
		best_threads = blocks * size;
		*ret_block = size;
		*ret_grid = blocks * (int)card->sm_count;
	}
	return best_threads ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}
