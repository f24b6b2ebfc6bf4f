/*
 * kernel.h - kernels on their way to a stream: their arguments, and what each does. README.md says what.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_KERNEL_H
#define LOADLINE_SIM_CUDA_LOCAL_KERNEL_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

/* Returns whether a launch is possible. INVALID_HANDLE: it has no function and no library's kernel. INVALID_VALUE: its
 * grid, its block or its arguments cannot be. It needs no lock. */
ll_cu_result sim_kernel_check(const struct ll_cu_kernel_params *kernel);

/* Returns COOPERATIVE_LAUNCH_TOO_LARGE if the blocks do not fit on the card together. The function must be a context's.
 */
ll_cu_result sim_kernel_check_cooperative(const struct ll_cu_kernel_params *kernel);

/* Finds the buffer that `extra` names. NULL: `params` gives the arguments, or there are none. INVALID_VALUE: `extra` is
 * wrong, or the buffer too short. */
ll_cu_result sim_kernel_arguments(const struct ll_cu_kernel_params *kernel, const char **ret_buffer);

/* Queues a kernel whose function is a context's. A kernel that writes where there is no memory loses its context; the
 * launch succeeds all the same, as on a card. INVALID_HANDLE: the function is another context's. */
ll_cu_result sim_kernel_queue(struct ll_cu_stream *stream, const struct ll_cu_kernel_params *kernel);

/* Returns how many blocks of a kernel fit on an SM, by their threads and their shared memory. It needs no lock. */
int sim_blocks_per_sm(int block_threads, size_t shared_bytes);

#endif
