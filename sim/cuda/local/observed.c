#include "cuda/local/observed.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static sim_observer observer;
static struct sim_activity noted; /* the kernel that will be queued next; kind 0: none */
static uint32_t last_correlation;

void loadline_sim_observe(sim_observer fn)
{
	pthread_mutex_lock(&sim_cuda.lock);
	observer = fn;
	pthread_mutex_unlock(&sim_cuda.lock);
}

void sim_activity_note_kernel(const struct ll_cu_kernel_params *kernel)
{
	noted = (struct sim_activity){
	    .kind = SIM_ACTIVITY_KERNEL,
	    .grid = {kernel->grid_x, kernel->grid_y, kernel->grid_z},
	    .block = {kernel->block_x, kernel->block_y, kernel->block_z},
	    .dynamic_shared_bytes = kernel->shared_bytes,
	};
	snprintf(noted.name, sizeof noted.name, "%s", kernel->function->entry->name);
}

static uint64_t bytes_of(const struct sim_action *action)
{
	uint64_t rows = action->rows.height ? action->rows.height : 1;
	uint64_t slices = action->rows.depth ? action->rows.depth : 1;
	return action->bytes * rows * slices;
}

struct sim_activity *sim_activity_begin(const struct ll_cu_stream *stream, const struct sim_op *op,
					const struct sim_action *action)
{
	bool is_copy = action && action->kind == SIM_ACTION_COPY, is_fill = action && action->kind == SIM_ACTION_FILL;
	bool is_kernel = op->kind == SIM_OP_KERNEL && !is_copy && !is_fill && noted.kind;
	struct sim_activity *activity = observer && (is_copy || is_fill || is_kernel) ? malloc(sizeof *activity) : NULL;
	if (activity) {
		*activity = is_kernel ? noted : (struct sim_activity){.bytes = bytes_of(action)};
		activity->kind = is_kernel ? SIM_ACTIVITY_KERNEL : is_copy ? SIM_ACTIVITY_COPY : SIM_ACTIVITY_MEMSET;
		activity->device = (uint32_t)stream->context->device;
		activity->context = (uint32_t)stream->context->id;
		activity->stream = stream->slot;
		activity->correlation = ++last_correlation;
		activity->is_from_card = op->kind == SIM_OP_KERNEL || op->direction == 1;
		activity->is_to_card = op->kind == SIM_OP_KERNEL || op->direction == 0;
	}
	noted.kind = 0;
	return activity;
}

void sim_activity_end(struct sim_activity *activity, const struct sim_op *op)
{
	activity->start_ns = op->start_ns;
	activity->end_ns = op->end_ns;
	if (observer && op->state == SIM_OP_DONE)
		observer(activity);
}

void sim_activity_memory(const struct sim_memory *memory, bool is_freed)
{
	if (!observer || !memory->context || memory->origin != SIM_ORIGIN_PLAIN)
		return;
	uint64_t now_ns = ll_now_ns();
	struct sim_activity activity = {
	    .kind = is_freed ? SIM_ACTIVITY_FREE : SIM_ACTIVITY_ALLOCATE,
	    .device = (uint32_t)memory->context->device,
	    .context = (uint32_t)memory->context->id,
	    .correlation = ++last_correlation,
	    .start_ns = now_ns,
	    .end_ns = now_ns,
	    .bytes = memory->bytes,
	    .address = memory->address,
	};
	observer(&activity);
}
