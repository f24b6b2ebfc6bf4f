/*
 * launch.h - what a launch call does.
 */
#ifndef LOADLINE_SIM_CUDA_LAUNCH_H
#define LOADLINE_SIM_CUDA_LAUNCH_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

/* Checks a launch, and queues it in the stream that a handle means in the current context, or captures it. It takes the
 * local lock itself. Returns what the checks (local/kernel.h) and the stream say. */
ll_cu_result sim_kernel_launch(const struct ll_cu_kernel_params *given, bool is_cooperative,
			       struct ll_cu_stream *handle);

#endif
