/*
 * launch.h - times a launch for a hook, which calls it before and after the driver (events.h).
 *
 * The launch's context is that of its stream, which need not be the thread's current one. If it cannot be made current,
 * the launch is not timed. A launch into a stream that is being captured is not timed, because the card does not run it
 * yet.
 */
#ifndef LOADLINE_TRACE_PRELOAD_LAUNCH_H
#define LOADLINE_TRACE_PRELOAD_LAUNCH_H

#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"
#include "shim/interpose/work.h"

struct ll_trace_launch;

struct ll_traced_launch {
	struct ll_trace_launch *timed; /* NULL: the launch is not timed */
	struct ll_cu_context *context;
	bool is_elsewhere; /* the context is not the thread's current one */
	int errno_before;
	ll_cu_result status; /* the driver's result; LL_TRACED_LAUNCH_LOST until the driver returns */
};

/* The thread was cancelled, or an exception passed, in the driver's call. */
#define LL_TRACED_LAUNCH_LOST ((ll_cu_result)-1)

/* stream: as the driver gets it; for a variant with per-thread default streams, ll_stream_per_thread of it. */
struct ll_traced_launch ll_traced_launch_begin(struct ll_cu_stream *stream, struct ll_work work);
void ll_traced_launch_end(struct ll_traced_launch *launch);

/* Declares a launch that ends when its scope is left, in whatever way. */
#define LL_TRACED_LAUNCH_SCOPE(launch, stream, work)                                                                   \
	struct ll_traced_launch launch __attribute__((cleanup(ll_traced_launch_end))) =                                \
	    ll_traced_launch_begin(stream, work)

#endif
