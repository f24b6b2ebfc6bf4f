#include "shim/residency/residency.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"
#include "shim/residency/move.h"
#include "shim/time/driver_calls.h"
#include "shim/time/flow.h"

/* ---- host functions that run now ---- */

static _Atomic uint32_t running;
static _Atomic uint64_t changed_ns; /* when one last began or ended */

struct ll_host_function *ll_host_function_new(struct ll_cu_stream *stream, struct ll_host_function function)
{
	/* In a graph it would run more than once. */
	LL_REENTRY_SCOPE();
	const struct ll_run_settings *settings = ll_device_state_settings();
	if (!settings || !settings->is_evictable || (!function.function && !function.callback) ||
	    ll_stream_is_captured(stream))
		return NULL;
	struct ll_host_function *copy = malloc(sizeof *copy);
	if (copy)
		*copy = function;
	return copy;
}

/* Takes the copy's contents, and frees it: the function may not return. */
static struct ll_host_function begin_run(struct ll_host_function *copy)
{
	struct ll_host_function function = *copy;
	free(copy);
	atomic_store(&changed_ns, ll_now_ns());
	atomic_fetch_add(&running, 1);
	return function;
}

static void end_run(void)
{
	atomic_store(&changed_ns, ll_now_ns());
	atomic_fetch_sub(&running, 1);
}

void ll_host_function_run(void *function)
{
	struct ll_host_function own = begin_run(function);
	own.function(own.user);
	end_run();
}

void ll_host_callback_run(struct ll_cu_stream *stream, ll_cu_result status, void *function)
{
	struct ll_host_function own = begin_run(function);
	own.callback(stream, status, own.user);
	end_run();
}

/* Whether host functions run, and none has begun or ended since that moment (CLOCK_MONOTONIC). */
static bool host_functions_stand_since(uint64_t since_ns)
{
	return atomic_load(&running) && atomic_load(&changed_ns) <= since_ns;
}

/* ---- stopping the program ---- */

#define QUIET_LOOK_NS (200 * LL_NS_PER_US)
#define THREADS_LOOK_NS (5 * LL_NS_PER_MS)
#define CAPTURE_LOOK_NS (1 * LL_NS_PER_MS)

/*
 * How long a host function may run while threads stand before calls that are shut: 20 ms at the first attempt, then
 * twice as long, at most 160 ms. Then it may need one of these threads, so the program goes on for as long, and is
 * stopped at another moment. What it needs is held in a part of the time, as a lock around launches, so one of a few
 * attempts meets it free.
 */
#define STAND_NS (20 * LL_NS_PER_MS)
enum { DOUBLINGS = 3, ATTEMPTS = 8 };

/* A thread that waits for the card, because the call of the driver cannot be cancelled. */
struct ll_quiet_wait {
	struct ll_device_state *dev;
	_Atomic int state; /* 0: it waits; 1: the card has no work; negative: the error. Written last by the thread */
};

/* A try to stop the program. */
struct attempt {
	uint64_t begun_ns, deadline_ns;
	uint64_t patience_ns; /* with a host function that stands */
};

static bool needs_a_thread(const struct attempt *attempt)
{
	uint64_t now_ns = ll_now_ns(), since_ns = now_ns - attempt->patience_ns;
	return since_ns >= attempt->begun_ns && ll_driver_calls_count_waiting() && host_functions_stand_since(since_ns);
}

static void *wait_main(void *arg)
{
	struct ll_quiet_wait *wait = arg;
	struct ll_extent context = {.kind = LL_EXTENT_CONTEXT};
	ll_cu_result status = LL_CUDA_SUCCESS;
	ll_reentry_depth = 1;
	ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	while (status == LL_CUDA_SUCCESS && ll_extents_next(&context) && context.kind == LL_EXTENT_CONTEXT) {
		struct ll_cu_context *popped;
		if (context.dev != wait->dev ||
		    ll_real()->cuCtxPushCurrent_v2((struct ll_cu_context *)(uintptr_t)context.address))
			continue;
		status = ll_real()->cuCtxSynchronize();
		ll_real()->cuCtxPopCurrent_v2(&popped);
	}
	atomic_store(&wait->state, status == LL_CUDA_SUCCESS ? 1 : -(int)status);
	return NULL;
}

static int start_wait(struct ll_quiet *quiet, struct ll_device_state *dev, char *why, size_t why_size)
{
	struct ll_quiet_wait *wait = calloc(1, sizeof *wait);
	if (wait)
		wait->dev = dev;
	if (wait && ll_guest_thread_start(0, wait_main, wait, NULL) == 0) {
		quiet->wait = wait;
		return 0;
	}
	free(wait);
	snprintf(why, why_size, "the program can start no thread");
	return -EBUSY;
}

/* Returns the result of the thread; 0: it still waits at the end of the attempt, and goes on without being waited for.
 */
static int await_card(struct ll_quiet *quiet, const struct attempt *attempt)
{
	int state;
	uint64_t now_ns;
	while (!(state = atomic_load(&quiet->wait->state)) && (now_ns = ll_now_ns()) < attempt->deadline_ns &&
	       !needs_a_thread(attempt))
		ll_sleep_until_ns(now_ns + QUIET_LOOK_NS);
	if (state) {
		free(quiet->wait);
		quiet->wait = NULL;
	}
	return state;
}

/*
 * Waits until the card has no work of the program. -EBUSY: it still has some at the deadline, or the card is lost.
 * -EAGAIN: a host function may need a thread that is stopped. The
 * thread of an earlier attempt waits for older work only, so at most one such thread exists.
 */
static int wait_for_card(struct ll_quiet *quiet, struct ll_device_state *dev, const struct attempt *attempt, char *why,
			 size_t why_size)
{
	int state = quiet->wait ? await_card(quiet, attempt) : 1;
	if (state) {
		if (start_wait(quiet, dev, why, why_size))
			return -EBUSY;
		state = await_card(quiet, attempt);
	}
	if (!state && ll_now_ns() < attempt->deadline_ns) /* a host function stood */
		return -EAGAIN;
	if (!state)
		snprintf(why, why_size, "%s", ll_obstacles_of_work());
	else if (state < 0)
		snprintf(why, why_size, "the driver cannot wait for its work (CUDA error %d)", -state);
	return state > 0 ? 0 : -EBUSY;
}

/* -EAGAIN: as wait_for_card. */
static int wait_for_threads(const struct attempt *attempt, char *why, size_t why_size)
{
	struct ll_driver_calls_inside inside;
	uint64_t until_ns;
	do {
		until_ns = ll_now_ns() + THREADS_LOOK_NS;
		until_ns = until_ns < attempt->deadline_ns ? until_ns : attempt->deadline_ns;
		if (ll_driver_calls_wait(until_ns, &inside) < 0) {
			snprintf(why, why_size, "it is not known which of its threads use the card");
			return -EBUSY;
		}
		if (!inside.count)
			return 0;
		if (needs_a_thread(attempt))
			return -EAGAIN;
	} while (until_ns < attempt->deadline_ns);
	snprintf(why, why_size, "its thread %d is inside %s", inside.named[0].thread, inside.named[0].function);
	return -EBUSY;
}

/*
 * No thread is inside the driver, none can enter, and no stream is being captured: waiting for the card would spoil the
 * capture. A capture ends in the program's calls. So they are opened again and again until there is none.
 */
static int shut_calls(const struct ll_device_state *dev, const struct attempt *attempt, char *why, size_t why_size)
{
	for (;;) {
		int rc = ll_driver_calls_shut();
		if (rc)
			snprintf(why, why_size, "the kernel refuses to tell which threads use the card");
		else
			rc = wait_for_threads(attempt, why, why_size);
		if (!rc && (!dev->flow || !ll_flow_is_capturing(dev->flow)))
			return 0;
		ll_driver_calls_open();
		if (rc)
			return rc;
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= attempt->deadline_ns) {
			snprintf(why, why_size, "it is capturing a stream");
			return -EBUSY;
		}
		ll_sleep_until_ns(now_ns + CAPTURE_LOOK_NS);
	}
}

int ll_quiet_reach(struct ll_quiet *quiet, struct ll_device_state *dev, uint64_t deadline_ns, char *why,
		   size_t why_size)
{
	for (unsigned i = 0;; i++) {
		struct attempt attempt = {.begun_ns = ll_now_ns(),
					  .deadline_ns = deadline_ns,
					  .patience_ns = STAND_NS << (i < DOUBLINGS ? i : DOUBLINGS)};
		int rc = shut_calls(dev, &attempt, why, why_size);
		if (!rc) {
			rc = wait_for_card(quiet, dev, &attempt, why, why_size);
			if (rc)
				ll_driver_calls_open();
		}
		if (rc != -EAGAIN)
			return rc;
		if (i + 1 == ATTEMPTS || ll_now_ns() >= deadline_ns) {
			snprintf(why, why_size,
				 "a host function of its streams does not end while its threads are stopped");
			return -EBUSY;
		}
		/* Lets the program go on until its host functions do, or for as long as it was stopped. */
		uint64_t since_ns = ll_now_ns(), now_ns;
		while ((now_ns = ll_now_ns()) < since_ns + attempt.patience_ns && host_functions_stand_since(since_ns))
			ll_sleep_until_ns(now_ns + QUIET_LOOK_NS);
		ll_sleep_until_ns(now_ns + CAPTURE_LOOK_NS);
	}
}
