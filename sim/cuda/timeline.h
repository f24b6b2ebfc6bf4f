/*
 * timeline.h - the kernels of `loadline probe`, by name and parameters (src/probe/kernels): what they would have
 * written had they run as the model says.
 *
 * probe_timeline (length, traces, blocks, away, round; all u64): every block needs its length on the card, and blocks
 * that do not fit at once follow in waves. At its end each block's start, end and SM stand in `blocks` (24 bytes each),
 * and in `traces`, for each `round` blocks, the interruptions of the first of them that were longer than `away`.
 *
 * write_index (out; u64): at its end, every thread has written its number, 32 bits, at that place of out.
 */
#ifndef LOADLINE_SIM_CUDA_TIMELINE_H
#define LOADLINE_SIM_CUDA_TIMELINE_H

#include "cuda/launch.h"

/* Is it one of these? */
bool sim_timeline_is(const struct sim_ptx_entry *entry);

/* Queues one. launched has its grid and what every kernel has. CUDA_ERROR_ILLEGAL_ADDRESS: it would write where there
 * is no memory; nothing is queued. */
ll_cu_result sim_timeline_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel,
				const char *buffer, const struct sim_op *launched);

/* op is done: writes. */
void sim_timeline_act(const struct sim_action *action, const struct sim_op *op);

#endif
