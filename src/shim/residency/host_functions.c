#include "shim/residency/host_functions.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"

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

bool ll_host_functions_stand_since(uint64_t since_ns)
{
	return atomic_load(&running) && atomic_load(&changed_ns) <= since_ns;
}
