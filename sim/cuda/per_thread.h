/*
 * per_thread.h - prototypes of the per-thread variants (names ending in _ptsz and _ptds).
 */
#ifndef LOADLINE_SIM_CUDA_PER_THREAD_H
#define LOADLINE_SIM_CUDA_PER_THREAD_H

#include "cuda/enter.h"

#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) SIM_EXPORT __typeof__(symbol) symbol##suffix;
#include "abi/cuda_per_thread.def"

#endif
