/*
 * launch.h - what a hook that makes the card work does before and after the driver's call, to have it timed (events.h).
 *
 * The context is the stream's, which need not be the thread's current one. If it cannot be made current, the launch is
 * not timed; nor is one into a stream that is being captured, which is no work yet.
 */
#ifndef LOADLINE_TRACE_PRELOAD_LAUNCH_H
#define LOADLINE_TRACE_PRELOAD_LAUNCH_H

#include "shim/interpose/reentry.h"
#include "shim/interpose/stream.h"
#include "shim/interpose/work.h"

struct ll_trace_launch;

struct ll_traced_launch {
	struct ll_trace_launch *timed; /* NULL: it is not */
	struct ll_cu_context *context;
	bool is_elsewhere; /* the context is not the thread's current one */
	int errno_before;
	ll_cu_result status; /* the driver's; LL_TRACED_LAUNCH_LOST while it has not come back */
};

/* The thread was cancelled, or thrown through, in the driver's call. */
#define LL_TRACED_LAUNCH_LOST ((ll_cu_result)-1)

/* stream as the driver takes it; in a variant for per-thread default streams ll_stream_per_thread of it. */
struct ll_traced_launch ll_traced_launch_begin(struct ll_cu_stream *stream, struct ll_work work);
void ll_traced_launch_end(struct ll_traced_launch *launch);

/* A launch that ends with its scope, whichever way that is left. */
#define LL_TRACED_LAUNCH_SCOPE(launch, stream, work)                                                                   \
	struct ll_traced_launch launch __attribute__((cleanup(ll_traced_launch_end))) =                                \
	    ll_traced_launch_begin(stream, work)

#endif
