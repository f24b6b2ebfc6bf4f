/*
 * copy_pitched.h - handles a copy call of any shape.
 */
#ifndef LOADLINE_SIM_CUDA_COPY_PITCHED_H
#define LOADLINE_SIM_CUDA_COPY_PITCHED_H

#include "cuda/local/state.h"

/* Checks a block's copy, and queues it in the handle's stream of the current context, or captures it. It takes the
 * local lock itself. Returns the status of sim_copy_check or of the stream. */
ll_cu_result sim_copy_block(const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *handle, bool is_async);

#endif
