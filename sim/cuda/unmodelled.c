#include "abi/cuda.h"

/* Callers come with whatever arguments the real function takes; none is looked at. */
#define SIM_UNMODELLED(symbol)                                                                                         \
	__attribute__((visibility("default"))) ll_cu_result symbol(void);                                              \
	ll_cu_result symbol(void)                                                                                      \
	{                                                                                                              \
		return LL_CUDA_ERROR_NOT_SUPPORTED;                                                                    \
	}
#include "cuda/unmodelled.def"
