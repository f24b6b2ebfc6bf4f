/*
 * kernel.h - prepares kernels for a stream: their arguments and their effects. README.md lists the effects.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_KERNEL_H
#define LOADLINE_SIM_CUDA_LOCAL_KERNEL_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

/* Checks whether a launch is possible. INVALID_HANDLE: it has no function and no library's kernel. INVALID_VALUE: its
 * grid, its block or its arguments are impossible. It needs no lock. */
ll_cu_result sim_kernel_check(const struct ll_cu_kernel_params *kernel);

/* Returns COOPERATIVE_LAUNCH_TOO_LARGE if the blocks do not fit on the card together. The function must belong to a
 * context. */
ll_cu_result sim_kernel_check_cooperative(const struct ll_cu_kernel_params *kernel);

/* Finds the buffer in `extra`. NULL: `params` has the arguments, or there are none. INVALID_VALUE: `extra` is wrong, or
 * the buffer is too short. */
ll_cu_result sim_kernel_arguments(const struct ll_cu_kernel_params *kernel, const char **ret_buffer);

/* Queues a kernel whose function belongs to a context. If a kernel writes outside of memory, its context is lost; the
 * launch still succeeds, as on a card. INVALID_HANDLE: the function belongs to another context. */
ll_cu_result sim_kernel_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel);

/* Returns how many blocks of a kernel fit on an SM, by their threads and their shared memory. It needs no lock. */
int sim_blocks_per_sm(int block_threads, size_t shared_bytes);

#endif
