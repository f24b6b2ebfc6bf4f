/*
 * copy_pitched.h - what a copy call of any shape does.
 */
#ifndef LOADLINE_SIM_CUDA_COPY_PITCHED_H
#define LOADLINE_SIM_CUDA_COPY_PITCHED_H

#include "cuda/local/state.h"

/* Checks a block's copy, and queues it in the stream that a handle means in the current context, or captures it. It
 * takes the local lock itself. Returns what sim_copy_check and the stream say. */
ll_cu_result sim_copy_block(const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *handle, bool is_async);

#endif
