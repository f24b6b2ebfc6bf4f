/*
 * observed.h - the library's own side of activity.h. Nothing is done while nobody observes.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_OBSERVED_H
#define LOADLINE_SIM_CUDA_LOCAL_OBSERVED_H

#include "cuda/local/activity.h"
#include "cuda/local/state.h"

/* Notes which kernel the next operation queued is. */
void sim_activity_note_kernel(const struct ll_cu_kernel_params *kernel);

/* Makes an account of an operation that is being queued. The caller frees it with free(3). NULL: nobody observes. */
struct sim_activity *sim_activity_begin(const struct ll_cu_stream *stream, const struct sim_op *op,
					const struct sim_action *action);

/* Completes the account of an operation that is done, and hands it to the observer. */
void sim_activity_end(struct sim_activity *activity, const struct sim_op *op);

/* Tells the observer that memory has been allocated or freed. */
void sim_activity_memory(const struct sim_memory *memory, bool is_freed);

#endif
