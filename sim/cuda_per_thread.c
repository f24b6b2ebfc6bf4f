#include "cuda_per_thread.h"

#define SIM_PER_THREAD(symbol, suffix, params, args)                                                                   \
	ll_cu_result symbol##suffix params                                                                             \
	{                                                                                                              \
		sim_null_is_per_thread = true;                                                                         \
		ll_cu_result status = symbol args;                                                                     \
		sim_null_is_per_thread = false;                                                                        \
		return status;                                                                                         \
	}
#include "cuda_per_thread.def"
