/*
 * cuda_prototypes.h - prototypes of the driver's own symbols, for files that define functions with these names.
 *
 * There is a prototype for every row of the lists of functions. So a definition with another signature than its row
 * does not compile. There is also symbol_answer, the type that a function returns. Files that only call the driver use
 * pointers, and do not include this header.
 */
#ifndef LOADLINE_ABI_CUDA_PROTOTYPES_H
#define LOADLINE_ABI_CUDA_PROTOTYPES_H

#include "abi/cuda.h"
#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"

#define LL_CUDA_PROTOTYPE(ret, symbol, params)                                                                         \
	ret symbol params;                                                                                             \
	typedef ret symbol##_answer;

#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) LL_CUDA_PROTOTYPE(ret, symbol, params)
#include "abi/cuda_functions.def"

#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) LL_CUDA_PROTOTYPE(ret, symbol, params)
#include "abi/cuda_governed.def"

#define LL_CUDA_PER_THREAD(symbol, suffix)                                                                             \
	__typeof__(symbol) symbol##suffix;                                                                             \
	typedef symbol##_answer symbol##suffix##_answer;
#include "abi/cuda_per_thread.def"

#endif
