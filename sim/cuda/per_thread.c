/*
 * The variants in which a NULL stream means this thread's default stream. Each calls the function itself, which reads
 * sim_null_is_per_thread.
 */
#include "cuda/per_thread.h"

#define LL_CUDA_PER_THREAD(symbol, suffix, params, args)                                                               \
	ll_cu_result symbol##suffix params                                                                             \
	{                                                                                                              \
		sim_null_is_per_thread = true;                                                                         \
		ll_cu_result status = symbol args;                                                                     \
		sim_null_is_per_thread = false;                                                                        \
		return status;                                                                                         \
	}
#include "abi/cuda_per_thread.def"
