/*
 * timeline.h - the kernels of `loadline probe`, by name and parameters (src/probe/kernels): what they would have
 * written had they run as the model says.
 *
 * probe_timeline (length, traces, blocks, away, round; all u64): every block needs its length on the card, and blocks
 * that do not fit at once follow in waves. At its end each block's start, end and SM are in `blocks` (24 bytes each).
 * For each `round` blocks, `traces` has the interruptions of the first of them that were longer than `away`.
 *
 * write_index (out; u64): at its end, every thread has written its number, 32 bits, at that place of out.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_TIMELINE_H
#define LOADLINE_SIM_CUDA_LOCAL_TIMELINE_H

#include "cuda/local/state.h"

/* Returns whether a kernel is one of these. It needs no lock. */
bool sim_timeline_is(const struct sim_ptx_entry *entry);

/* Gives an operation and its action the behaviour of such a kernel. op has the grid and what every kernel has. buffer:
 * the arguments, if kernel->params does not give them. ILLEGAL_ADDRESS: it would write where there is no memory. */
ll_cu_result sim_timeline_prepare(const struct ll_cu_context *context, const struct ll_cu_kernel_params *kernel,
				  const char *buffer, struct sim_op *op, struct sim_action *action);

/* Writes what such a kernel writes, once op is done. */
void sim_timeline_act(const struct sim_action *action, const struct sim_op *op);

#endif
