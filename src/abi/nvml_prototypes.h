/*
 * nvml_prototypes.h - prototypes of NVML's own symbols, for files that define functions with these names (see
 * cuda_prototypes.h).
 */
#ifndef LOADLINE_ABI_NVML_PROTOTYPES_H
#define LOADLINE_ABI_NVML_PROTOTYPES_H

#include "abi/nvml.h"

/* symbol_answer is the type that the function returns. */
#define LL_NVML(ret, name, symbol, need, hook, params)                                                                 \
	ret symbol params;                                                                                             \
	typedef ret symbol##_answer;
#include "abi/nvml.def"

#endif
