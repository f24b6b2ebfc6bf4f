/*
 * enter.h - the beginning of every exported function of libcuda.so.1, and their prototypes.
 *
 * The files of this folder are the driver's functions. They check the program's arguments, take the local lock, and
 * call functions of cuda/local.
 */
#ifndef LOADLINE_SIM_CUDA_ENTER_H
#define LOADLINE_SIM_CUDA_ENTER_H

#include "cuda/local/pump.h"
#include "cuda/local/state.h"

/* Decides whether a call may continue: injected faults, then whether CUDA is usable, then the rules of stream capture.
 * Returns the status to return at once; success: continue. It is called without the local lock. */
ll_cu_result sim_cuda_enter(const char *function);

/* Returns from an exported function that may not continue. */
#define SIM_ENTER()                                                                                                    \
	do {                                                                                                           \
		ll_cu_result entered_ = sim_cuda_enter(__func__);                                                      \
		if (entered_)                                                                                          \
			return entered_;                                                                               \
	} while (0)

/* The prototypes of everything exported. */
#define SIM_EXPORT __attribute__((visibility("default")))
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) SIM_EXPORT ll_cu_result symbol params;
#include "abi/cuda.def"

#endif
