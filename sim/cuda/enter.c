/*
 * The checks at the beginning of every call, and the library's exports in addition to the driver's names.
 */
#include "cuda/enter.h"

#include "base/clock.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/library.h"
#include "cuda/local/capture.h"

#define STOPPED_LOOK_NS (1 * LL_NS_PER_MS)

const char *loadline_sim_world(void)
{
	return sim_world_folder();
}

const char *loadline_sim_trouble(const char **ret_hint)
{
	return sim_world_trouble(ret_hint);
}

/* Waits while another process has stopped this one (checkpoint.c). */
static void wait_while_stopped(const struct sim_world *world)
{
	uint32_t proc = __atomic_load_n(&sim_cuda.proc, __ATOMIC_RELAXED); /* the process may end meanwhile */
	while (proc != SIM_NONE && __atomic_load_n(&world->procs[proc].stop, __ATOMIC_ACQUIRE))
		ll_sleep_until_ns(ll_now_ns() + STOPPED_LOOK_NS);
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
	wait_while_stopped(world);
	return sim_capture_check_call(function);
}
