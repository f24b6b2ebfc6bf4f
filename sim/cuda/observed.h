/*
 * observed.h - the library's own side of activity.h. Within the local lock; nothing is done while nobody observes.
 */
#ifndef LOADLINE_SIM_CUDA_OBSERVED_H
#define LOADLINE_SIM_CUDA_OBSERVED_H

#include "cuda/activity.h"
#include "cuda/local.h"

/* What the next operation queued is. */
void sim_activity_note_kernel(const struct ll_cu_kernel_params *kernel);

/* An account of an operation that is being queued, for free(3) with its action; NULL: nobody wants to know. */
struct sim_activity *sim_activity_begin(const struct ll_cu_stream *stream, const struct sim_op *op,
					const struct sim_action *action);
void sim_activity_end(struct sim_activity *activity, const struct sim_op *op);

void sim_activity_memory(const struct sim_memory *memory, bool is_freed);

#endif
