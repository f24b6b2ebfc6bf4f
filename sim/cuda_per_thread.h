/*
 * cuda_per_thread.h - prototypes of the per-thread variants (names ending in _ptsz and _ptds).
 */
#ifndef LOADLINE_SIM_CUDA_PER_THREAD_H
#define LOADLINE_SIM_CUDA_PER_THREAD_H

#include "cuda_local.h"

#define SIM_PER_THREAD(symbol, suffix, params, args) SIM_EXPORT ll_cu_result symbol##suffix params;
#include "cuda_per_thread.def"

#endif
