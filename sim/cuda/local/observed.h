/*
 * observed.h - the library's side of activity.h. Without an observer the functions do nothing.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_OBSERVED_H
#define LOADLINE_SIM_CUDA_LOCAL_OBSERVED_H

#include "cuda/local/activity.h"
#include "cuda/local/state.h"

/* Stores the kernel of the next queued operation. */
void sim_activity_note_kernel(const struct ll_cu_kernel_params *kernel);

/* Makes the record of an operation that is being queued. The caller frees it with free(3). NULL: there is no
 * observer. */
struct sim_activity *sim_activity_begin(const struct ll_cu_stream *stream, const struct sim_op *op,
					const struct sim_action *action);

/* Completes the record of an operation that is done, and passes it to the observer. */
void sim_activity_end(struct sim_activity *activity, const struct sim_op *op);

/* Tells the observer that memory has been allocated or freed. */
void sim_activity_memory(const struct sim_memory *memory, bool is_freed);

#endif
