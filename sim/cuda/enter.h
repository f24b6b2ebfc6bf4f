/*
 * enter.h - what every exported function of libcuda.so.1 begins with, and the prototypes of them all.
 *
 * The files of this folder are the driver's functions. They check what a program gives them, take the local lock, and
 * call what is in cuda/local.
 */
#ifndef LOADLINE_SIM_CUDA_ENTER_H
#define LOADLINE_SIM_CUDA_ENTER_H

#include "cuda/local/pump.h"
#include "cuda/local/state.h"

/* Decides whether a call may go on: injected faults, then whether CUDA is usable, then what stream capture forbids.
 * Returns the status to answer at once; success: go on. It is called without the local lock. */
ll_cu_result sim_cuda_enter(const char *function);

/* Returns from an exported function that may not go on. */
#define SIM_ENTER()                                                                                                    \
	do {                                                                                                           \
		ll_cu_result entered_ = sim_cuda_enter(__func__);                                                      \
		if (entered_)                                                                                          \
			return entered_;                                                                               \
	} while (0)

/* The prototypes of everything exported. */
#define SIM_EXPORT __attribute__((visibility("default")))
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) SIM_EXPORT ret symbol params;
#include "abi/cuda_functions.def"
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) SIM_EXPORT ret symbol params;
#include "abi/cuda_governed.def"

#endif
