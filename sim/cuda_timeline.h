/*
 * cuda_timeline.h - the kernels of `loadline probe`, by name and parameters (src/probe/kernels): what they would have
 * written had they run as the model says.
 *
 * probe_timeline (length, trace, blocks, away; all u64): every block needs its length on the card. Blocks that do not
 * fit at once follow in rounds. At its end each block's start, end and SM stand in `blocks` (24 bytes each), and the
 * interruptions that were longer than `away` in `trace`.
 *
 * write_index (out; u64): at its end, every thread has written its number, 32 bits, at that place of out.
 */
#ifndef LOADLINE_SIM_CUDA_TIMELINE_H
#define LOADLINE_SIM_CUDA_TIMELINE_H

#include "cuda_local.h"

/* Is it one of these? */
bool sim_timeline_is(const struct sim_ptx_entry *entry);

/* Gives op, whose grid is known, and its action this behaviour. CUDA_ERROR_ILLEGAL_ADDRESS: it would write where there
 * is no memory. */
ll_cu_result sim_timeline_set(const struct ll_cu_function *function, void **params, const char *buffer,
			      struct sim_op *op, struct sim_action *action);

/* op is done: writes. */
void sim_timeline_act(const struct sim_action *action, const struct sim_op *op);

#endif
