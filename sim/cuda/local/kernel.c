/*
 * Kernels are not executed. README.md lists what each does instead.
 */
#include "cuda/local/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "card/engine.h"
#include "card/xid.h"
#include "cuda/local/allocations.h"
#include "cuda/local/capture.h"
#include "cuda/local/managed.h"
#include "cuda/local/module.h"
#include "cuda/local/mps.h"
#include "cuda/local/observed.h"
#include "cuda/local/pump.h"
#include "cuda/local/timeline.h"

#define DEFAULT_LENGTH_NS (100 * LL_NS_PER_US)

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

static bool has_u64(const struct sim_ptx_entry *entry, unsigned count)
{
	for (unsigned i = 0; i < entry->param_count; i++) {
		if (entry->params[i].size != 8)
			return false;
	}
	return entry->param_count == count;
}

/* Whether the buffer that the kernel reads is memory that the card can access. */
static bool reads_memory(const struct sim_ptx_entry *entry, void **params, const char *buffer)
{
	uint64_t address = 0, bytes = 0;
	sim_ptx_argument(entry, 5, params, buffer, &address);
	sim_ptx_argument(entry, 6, params, buffer, &bytes);
	return bytes && sim_memory_at(address, bytes);
}

/* Gives op the behaviour of its kernel's name and parameters. */
static ll_cu_result set_behaviour(const struct ll_cu_function *function, void **params, const char *buffer,
				  struct sim_op *op, struct sim_action *action)
{
	const struct sim_ptx_entry *entry = function->entry;
	const char *name = entry->name;
	bool is_spin = sim_name_matches("spin_ns", name) || sim_name_matches("spin_ns_*", name);
	bool is_work = sim_name_matches("work_ns", name) || sim_name_matches("work_ns_*", name);
	bool meets = sim_name_matches("meet_ns", name);
	bool is_dram = strstr(name, "dram") && has_u64(entry, 7);
	bool has_record = (has_u64(entry, 5) && (is_spin || strstr(name, "fma"))) || (is_spin && is_dram);
	uint64_t value;
	op->is_fma = strstr(name, "fma") != NULL;
	op->is_tensor = strstr(name, "tensor") != NULL;
	op->is_dram = is_dram;
	op->is_timed = is_spin || has_record;
	if (meets)
		sim_ptx_argument(entry, 1, params, buffer, &op->meeting);
	if ((is_spin || is_work || meets || has_record) && sim_ptx_argument(entry, 0, params, buffer, &value))
		op->length_ns = value;
	else
		op->length_ns = sim_kernel_length_ns(sim_cuda.world, name, DEFAULT_LENGTH_NS);
	if (!has_record)
		return LL_CUDA_SUCCESS;
	uint64_t record = 0, epoch_and_sequence = 0;
	sim_ptx_argument(entry, 1, params, buffer, &record);
	sim_ptx_argument(entry, 2, params, buffer, &op->late_after_ns);
	sim_ptx_argument(entry, 3, params, buffer, &op->gap_limit_ns);
	sim_ptx_argument(entry, 4, params, buffer, &epoch_and_sequence);
	op->epoch = (uint32_t)(epoch_and_sequence >> 32);
	action->kind = SIM_ACTION_RECORD;
	action->sequence = (uint32_t)epoch_and_sequence;
	action->to = sim_memory_at(record, 32);
	action->card = function->module->context->card;
	bool is_sound = action->to && (!is_dram || reads_memory(entry, params, buffer));
	return is_sound ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_ILLEGAL_ADDRESS;
}

static bool is_valid_grid(const struct ll_cu_kernel_params *k)
{
	uint64_t threads = (uint64_t)k->block_x * k->block_y * k->block_z;
	return k->grid_x && k->grid_y && k->grid_z && k->grid_y <= 65535 && k->grid_z <= 65535 && threads &&
	       threads <= SIM_BLOCK_THREADS && k->block_z <= 64 && k->shared_bytes <= SIM_SM_SHARED_BYTES;
}

ll_cu_result sim_kernel_check(const struct ll_cu_kernel_params *kernel)
{
	if (!sim_is_function(kernel->function))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return is_valid_grid(kernel) && !(kernel->params && kernel->extra) ? LL_CUDA_SUCCESS
									   : LL_CUDA_ERROR_INVALID_VALUE;
}

/* Loses the context of a kernel that writes outside of memory: the real card reports Xid 31. */
static void lose_context(const struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	sim_advance_to_now(w);
	sim_report_fault(w, context->slot, 31, LL_CUDA_ERROR_ILLEGAL_ADDRESS);
	sim_unlock(w);
	sim_cuda_pump();
}

ll_cu_result sim_kernel_arguments(const struct ll_cu_kernel_params *kernel, const char **ret_buffer)
{
	*ret_buffer = NULL;
	const struct sim_ptx_entry *entry = kernel->function->entry;
	return entry->param_count && !kernel->params ? find_buffer(kernel->extra, entry, ret_buffer) : LL_CUDA_SUCCESS;
}

ll_cu_result sim_kernel_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel)
{
	const struct ll_cu_function *function = kernel->function;
	const char *buffer;
	if (stream->context != function->module->context)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	ll_cu_result status = sim_kernel_arguments(kernel, &buffer);
	if (status)
		return status;
	uint64_t blocks = (uint64_t)kernel->grid_x * kernel->grid_y * kernel->grid_z;
	struct sim_op op = {
	    .kind = SIM_OP_KERNEL,
	    .module = function->module->slot,
	    .blocks = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks,
	    .threads = kernel->block_x * kernel->block_y * kernel->block_z,
	};
	struct sim_action action = {.kind = SIM_ACTION_NONE};
	uint64_t address;
	for (unsigned i = 0; i < function->entry->param_count; i++) {
		if (function->entry->params[i].size == 8 &&
		    sim_ptx_argument(function->entry, i, kernel->params, buffer, &address))
			sim_managed_touch(address);
	}
	bool is_probe = sim_timeline_is(function->entry);
	status = is_probe ? sim_timeline_prepare(stream->context, kernel, buffer, &op, &action)
			  : set_behaviour(function, kernel->params, buffer, &op, &action);
	if (status == LL_CUDA_ERROR_ILLEGAL_ADDRESS) {
		/* As on a real card, the launch itself succeeds, and later calls return the error. */
		lose_context(stream->context);
		return LL_CUDA_SUCCESS;
	}
	if (status)
		return status;
	if (!is_probe)
		sim_activity_note_kernel(kernel);
	return sim_queue(stream, &op, &action, NULL);
}

/* All blocks of a cooperative kernel are on the card at once. */
ll_cu_result sim_kernel_check_cooperative(const struct ll_cu_kernel_params *kernel)
{
	uint32_t card = kernel->function->module->context->card;
	int threads = (int)(kernel->block_x * kernel->block_y * kernel->block_z);
	uint64_t blocks = (uint64_t)kernel->grid_x * kernel->grid_y * kernel->grid_z;
	uint64_t room = (uint64_t)sim_blocks_per_sm(threads, kernel->shared_bytes) * sim_cuda_sms(card);
	return blocks <= room ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

enum { SM_THREADS = 2048, SM_BLOCKS = 32 };

/* Registers are assumed to be few. */
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
