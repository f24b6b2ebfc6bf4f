/*
 * captures.h - a list of the streams of a card that are being captured. A stream leaves the list when the library sees
 * that its capture has ended.
 *
 * While one stream is being captured, any other stream can join the capture at any moment by waiting for an event of
 * it. So during a capture no thread records an event in a stream that another thread uses. The library has no hook for
 * the end of a capture. It asks the driver whether a stream is being captured (0.06 us). Only a thread itself can ask
 * about its per-thread default stream, so that stream counts as captured for one second after the capture began. The
 * caller holds the flow's lock.
 */
#ifndef LOADLINE_SHIM_TIME_CAPTURES_H
#define LOADLINE_SHIM_TIME_CAPTURES_H

#include <stdbool.h>

#include "shim/time/timing.h"

enum { LL_CAPTURES = 8 }; /* captures at the same time; the library does not track more than these */

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

/* Returns whether any capture of the list is in progress. Asks the driver. Removes captures that have ended. */
bool ll_captures_go_on(struct ll_captures *captures);

/* Remove a stream, or all streams of a context, from the list. Call them before the stream or context is destroyed. */
void ll_captures_forget_stream(struct ll_captures *captures, struct ll_timing_stream stream);
void ll_captures_forget_context(struct ll_captures *captures, struct ll_cu_context *context);

#endif
