/*
 * captures.h - the streams of a card whose capture has begun, until their captures are seen to have ended.
 *
 * While a capture goes on, any other stream may join it at any moment, by waiting for it. So no thread records an event
 * in a stream that is not its own then. The end of a capture needs no hook: the driver tells whether a stream is being
 * captured (0.06 us). A per-thread default stream can be asked about by its own thread alone: it counts as captured for
 * a second. The caller locks.
 */
#ifndef LOADLINE_SHIM_TIME_CAPTURES_H
#define LOADLINE_SHIM_TIME_CAPTURES_H

#include <stdbool.h>

#include "shim/time/timing.h"

enum { LL_CAPTURES = 8 }; /* at a time; those beyond are not known of */

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

/* The driver has begun it. */
void ll_captures_add(struct ll_captures *captures, struct ll_cu_context *context, struct ll_timing_stream stream);

/* Whether any goes on; asks the driver if one was added. */
bool ll_captures_go_on(struct ll_captures *captures);

/* The stream, or the context with all its streams, is about to be destroyed. */
void ll_captures_forget_stream(struct ll_captures *captures, struct ll_timing_stream stream);
void ll_captures_forget_context(struct ll_captures *captures, struct ll_cu_context *context);

#endif
