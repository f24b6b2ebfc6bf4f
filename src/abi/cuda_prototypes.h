/*
 * cuda_prototypes.h - prototypes of the driver's own symbols, for files that define functions with these names.
 *
 * There is a prototype for every row of the lists of functions. So a definition with another signature than its row
 * does not compile. Files that only call the driver use pointers, and do not include this header.
 */
#ifndef LOADLINE_ABI_CUDA_PROTOTYPES_H
#define LOADLINE_ABI_CUDA_PROTOTYPES_H

#include "abi/cuda.h"
#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"

#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result symbol params;
#include "abi/cuda.def"

#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) __typeof__(symbol) symbol##suffix;
#include "abi/cuda_per_thread.def"

#endif
