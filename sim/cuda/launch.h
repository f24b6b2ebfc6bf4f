/*
 * launch.h - kernels on their way to a stream. Within the local lock, apart from sim_kernel_launch.
 */
#ifndef LOADLINE_SIM_CUDA_LAUNCH_H
#define LOADLINE_SIM_CUDA_LAUNCH_H

#include "abi/cuda_graph.h"
#include "cuda/local.h"

/* Is it a function (or a library's kernel), and are its grid and its block possible? */
ll_cu_result sim_kernel_check(const struct ll_cu_kernel_params *kernel);
/* COOPERATIVE_LAUNCH_TOO_LARGE: its blocks do not fit on the card together. The function must be a context's. */
ll_cu_result sim_kernel_check_cooperative(const struct ll_cu_kernel_params *kernel);
/* The buffer that `extra` names; NULL where `params` gives the arguments, or there are none. */
ll_cu_result sim_kernel_arguments(const struct ll_cu_kernel_params *kernel, const char **ret_buffer);
/* Queues it, its function resolved. */
ll_cu_result sim_kernel_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel);

/* What a launch call does: all of the above, or capture. Takes the local lock. */
ll_cu_result sim_kernel_launch(const struct ll_cu_kernel_params *given, bool is_cooperative,
			       struct ll_cu_stream *handle);

/* Parameter i of a launch as an unsigned number, from either form of arguments; false where there is none. */
bool sim_kernel_param(const struct sim_ptx_entry *entry, unsigned i, void **params, const char *buffer, uint64_t *ret);

#endif
