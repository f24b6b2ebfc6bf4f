#include "abi/cuda.h"

/* Callers pass the arguments of the real function; the arguments are ignored. */
#define SIM_UNMODELLED(symbol)                                                                                         \
	__attribute__((visibility("default"))) ll_cu_result symbol(void);                                              \
	ll_cu_result symbol(void)                                                                                      \
	{                                                                                                              \
		return LL_CUDA_ERROR_NOT_SUPPORTED;                                                                    \
	}
#include "cuda/unmodelled.def"
