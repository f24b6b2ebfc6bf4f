/*
 * The variants in which a NULL stream means this thread's default stream. Each calls the function itself, which reads
 * sim_null_is_per_thread.
 */
#include "cuda/per_thread.h"

#define PER_THREAD(variant, symbol, params, args)                                                                      \
	ll_cu_result variant params                                                                                    \
	{                                                                                                              \
		sim_null_is_per_thread = true;                                                                         \
		ll_cu_result status = symbol args;                                                                     \
		sim_null_is_per_thread = false;                                                                        \
		return status;                                                                                         \
	}

#define LL_CUDA_FUNCTION_PER_THREAD(ret, name, symbol, need, suffix, params, args)                                     \
	PER_THREAD(symbol##suffix, symbol, params, args)
#include "abi/cuda_functions.def"
#define LL_CUDA_FUNCTION_PER_THREAD(ret, name, symbol, need, suffix, params, args)                                     \
	PER_THREAD(symbol##suffix, symbol, params, args)
#include "abi/cuda_governed.def"
