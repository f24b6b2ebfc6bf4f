/*
 * nvml_prototypes.h - prototypes of NVML's own symbols, for files that define functions with these names (see
 * cuda_prototypes.h).
 */
#ifndef LOADLINE_ABI_NVML_PROTOTYPES_H
#define LOADLINE_ABI_NVML_PROTOTYPES_H

#include "abi/nvml.h"

#define LL_NVML_PROTOTYPE(ret, symbol, params)                                                                         \
	ret symbol params;                                                                                             \
	typedef ret symbol##_answer;

#define LL_NVML_FUNCTION(ret, name, symbol, need, params) LL_NVML_PROTOTYPE(ret, symbol, params)
#include "abi/nvml_functions.def"

#define LL_NVML_FUNCTION(ret, name, symbol, need, params) LL_NVML_PROTOTYPE(ret, symbol, params)
#include "abi/nvml_governed.def"

#endif
