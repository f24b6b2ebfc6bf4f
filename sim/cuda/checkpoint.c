/*
 * Stops another process, takes its memory off the cards, and restores it (cuCheckpointProcess...). A stopped process
 * waits at the beginning of its calls (enter.c).
 */
#include "card/checkpoint.h"

#include <errno.h>

#include "base/clock.h"
#include "card/engine.h"
#include "cuda/enter.h"

#define LOOK_NS (1 * LL_NS_PER_MS)

/* Finds the process, which must be in the state that the call needs, with the world locked. */
static ll_cu_result find_in_state(int pid, enum sim_stop stop, uint32_t *ret_proc)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	sim_advance_to_now(w);
	*ret_proc = sim_checkpoint_find(w, pid);
	ll_cu_result status = *ret_proc == SIM_NONE              ? LL_CUDA_ERROR_INVALID_VALUE
			      : w->procs[*ret_proc].stop != stop ? LL_CUDA_ERROR_ILLEGAL_STATE
								 : LL_CUDA_SUCCESS;
	if (status)
		sim_unlock(w);
	return status;
}

/* Waits until no card has work of the process. False: it still has some at the deadline. */
static bool wait_until_quiet(uint32_t proc, uint64_t deadline_ns)
{
	struct sim_world *w = sim_cuda.world;
	for (;;) {
		sim_lock(w);
		sim_advance_to_now(w);
		bool is_busy = sim_checkpoint_is_busy(w, proc);
		sim_unlock(w);
		uint64_t now_ns = ll_now_ns();
		if (!is_busy || now_ns >= deadline_ns)
			return !is_busy;
		ll_sleep_until_ns(now_ns + LOOK_NS);
	}
}

static void set_state(uint32_t proc, enum sim_stop stop)
{
	sim_lock(sim_cuda.world);
	sim_checkpoint_set(sim_cuda.world, proc, stop);
	sim_unlock(sim_cuda.world);
}

ll_cu_result cuCheckpointProcessLock(int pid, struct ll_cu_checkpoint_lock_args *args)
{
	SIM_ENTER();
	uint32_t proc;
	ll_cu_result status = find_in_state(pid, SIM_STOP_NONE, &proc);
	if (status)
		return status;
	sim_checkpoint_set(sim_cuda.world, proc, SIM_STOP_LOCKED);
	sim_unlock(sim_cuda.world);
	uint64_t deadline_ns = args && args->timeout_ms ? ll_now_ns() + args->timeout_ms * LL_NS_PER_MS : SIM_NEVER;
	if (wait_until_quiet(proc, deadline_ns))
		return LL_CUDA_SUCCESS;
	set_state(proc, SIM_STOP_NONE);
	return LL_CUDA_ERROR_NOT_READY;
}

static ll_cu_result change_state(int pid, enum sim_stop from, enum sim_stop to)
{
	uint32_t proc;
	ll_cu_result status = find_in_state(pid, from, &proc);
	if (status)
		return status;
	sim_checkpoint_set(sim_cuda.world, proc, to);
	sim_unlock(sim_cuda.world);
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCheckpointProcessCheckpoint(int pid, struct ll_cu_checkpoint_args *args)
{
	SIM_ENTER();
	(void)args;
	return change_state(pid, SIM_STOP_LOCKED, SIM_STOP_CHECKPOINTED);
}

ll_cu_result cuCheckpointProcessRestore(int pid, struct ll_cu_restore_args *args)
{
	SIM_ENTER();
	uint32_t proc;
	(void)args;
	ll_cu_result status = find_in_state(pid, SIM_STOP_CHECKPOINTED, &proc);
	if (status)
		return status;
	status = sim_checkpoint_restore(sim_cuda.world, proc) < 0 ? LL_CUDA_ERROR_OUT_OF_MEMORY : LL_CUDA_SUCCESS;
	sim_unlock(sim_cuda.world);
	return status;
}

ll_cu_result cuCheckpointProcessUnlock(int pid, struct ll_cu_unlock_args *args)
{
	SIM_ENTER();
	(void)args;
	return change_state(pid, SIM_STOP_LOCKED, SIM_STOP_NONE);
}

ll_cu_result cuCheckpointProcessGetState(int pid, enum ll_cu_process_state *ret_state)
{
	SIM_ENTER();
	struct sim_world *w = sim_cuda.world;
	if (!ret_state)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t proc = sim_checkpoint_find(w, pid);
	if (proc != SIM_NONE)
		*ret_state = (enum ll_cu_process_state)w->procs[proc].stop;
	sim_unlock(w);
	return proc == SIM_NONE ? LL_CUDA_ERROR_INVALID_VALUE : LL_CUDA_SUCCESS;
}
