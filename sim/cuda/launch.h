/*
 * launch.h - handles a launch call.
 */
#ifndef LOADLINE_SIM_CUDA_LAUNCH_H
#define LOADLINE_SIM_CUDA_LAUNCH_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

/* Checks a launch, and queues it in the handle's stream of the current context, or captures it. It takes the local lock
 * itself. Returns the status of the checks (local/kernel.h) or of the stream. */
ll_cu_result sim_kernel_launch(const struct ll_cu_kernel_params *given, bool is_cooperative,
			       struct ll_cu_stream *handle);

#endif
