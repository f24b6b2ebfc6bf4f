/*
 * captures.h - the streams of a card whose capture has begun, until their captures are seen to have ended.
 *
 * While a capture goes on, any other stream may join it at any moment by waiting for it. So no thread then records an
 * event in a stream that is not its own. The end of a capture has no hook: the driver tells whether a stream is being
 * captured (0.06 us). Only a thread itself can ask about its per-thread default stream, so that stream counts as
 * captured for a second. The caller holds the flow's lock.
 */
#ifndef LOADLINE_SHIM_TIME_CAPTURES_H
#define LOADLINE_SHIM_TIME_CAPTURES_H

#include <stdbool.h>

#include "shim/time/timing.h"

enum { LL_CAPTURES = 8 }; /* captures at the same time; the library does not see further ones */

struct ll_capture {
	struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t begun_ns; /* CLOCK_MONOTONIC */
};

/* All zero at first. */
struct ll_captures {
	struct ll_capture begun[LL_CAPTURES];
	unsigned count;
};

/* Adds a capture that the driver has begun. */
void ll_captures_add(struct ll_captures *captures, struct ll_cu_context *context, struct ll_timing_stream stream);

/* Whether any capture goes on. Asks the driver about those that were added. */
bool ll_captures_go_on(struct ll_captures *captures);

/* A stream, or a context with all its streams, is about to be destroyed. */
void ll_captures_forget_stream(struct ll_captures *captures, struct ll_timing_stream stream);
void ll_captures_forget_context(struct ll_captures *captures, struct ll_cu_context *context);

#endif
