/*
 * cuda_prototypes.h - prototypes of the driver's own symbols, for who defines functions of these names.
 *
 * One for every row of the lists of functions, so that a definition whose signature differs from its row does not
 * compile; and symbol_answer, the type that it returns. Whoever only calls the driver goes through pointers and does
 * not include this.
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
