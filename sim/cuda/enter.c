/*
 * What every call passes first, and what the library exports beside the driver's names.
 */
#include "cuda/enter.h"

#include "card/attach.h"
#include "card/engine.h"
#include "card/library.h"
#include "cuda/local/capture.h"

const char *loadline_sim_world(void)
{
	return sim_world_folder();
}

ll_cu_result sim_cuda_enter(const char *function)
{
	struct sim_world *world = __atomic_load_n(&sim_cuda.world, __ATOMIC_ACQUIRE);
	if (world) {
		uint32_t status = sim_fault_check(world, function);
		if (status)
			return (ll_cu_result)status;
	}
	if (__atomic_load_n(&sim_cuda.is_dead, __ATOMIC_RELAXED))
		return LL_CUDA_ERROR_NOT_INITIALIZED;
	if (!__atomic_load_n(&sim_cuda.is_initialised, __ATOMIC_ACQUIRE))
		return LL_CUDA_ERROR_NOT_INITIALIZED;
	return sim_capture_check_call(function);
}
