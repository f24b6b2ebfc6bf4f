/*
 * The start of libcuda.so.1 in a process, and its handlers for fork and exit.
 */
#include <string.h>

#include "base/clock.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/hide.h"
#include "card/process.h"
#include "cuda/local/state.h"
#include "cuda/local/versions.h"

static void init_conditions(void)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sim_cuda.reaped, &attr);
	pthread_cond_init(&sim_cuda.queued, &attr);
	pthread_cond_init(&sim_cuda.host, &attr);
	pthread_condattr_destroy(&attr);
}

static void before_fork(void)
{
	pthread_mutex_lock(&sim_cuda.lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&sim_cuda.lock);
}

/* As with the real driver, a child cannot use its parent's objects. It may initialise CUDA if its parent had not. */
static void after_fork_in_child(void)
{
	pthread_mutex_unlock(&sim_cuda.lock);
	init_conditions();
	if (sim_cuda.is_initialised)
		__atomic_store_n(&sim_cuda.is_dead, true, __ATOMIC_RELAXED);
	sim_cuda.proc = SIM_NONE;
	sim_cuda.has_worker = false;
	sim_cuda.has_host_thread = false;
	sim_cuda.contexts = NULL;
	memset(sim_cuda.primaries, 0, sizeof sim_cuda.primaries);
}

__attribute__((constructor)) static void on_load(void)
{
	init_conditions();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	/* cuInit reports an error that happens here. */
	if (sim_world_attach(&sim_cuda.world, NULL) == 0)
		sim_hide_symbols(sim_cuda.world, sim_version_is_newer);
}

/* A signal handler may have called exit within a function of this library, so nothing waits long here. What is not
 * cleaned up is removed as after a kill. */
__attribute__((destructor)) static void on_exit_of_process(void)
{
	const uint64_t patience_ns = 200 * LL_NS_PER_MS;
	uint64_t at_ns = ll_wall_ns() + patience_ns;
	struct timespec deadline = {
	    .tv_sec = (time_t)(at_ns / LL_NS_PER_S),
	    .tv_nsec = (long)(at_ns % LL_NS_PER_S),
	};
	if (pthread_mutex_timedlock(&sim_cuda.lock, &deadline) != 0)
		return;
	__atomic_store_n(&sim_cuda.is_dead, true, __ATOMIC_RELAXED);
	if (sim_cuda.proc != SIM_NONE && sim_lock_until(sim_cuda.world, &deadline)) {
		sim_advance_to_now(sim_cuda.world);
		sim_proc_leave(sim_cuda.world, sim_cuda.proc);
		sim_unlock(sim_cuda.world);
		__atomic_store_n(&sim_cuda.proc, SIM_NONE, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&sim_cuda.lock);
}
