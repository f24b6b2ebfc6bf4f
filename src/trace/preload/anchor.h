/*
 * anchor.h - where a context's timing events lie on CLOCK_MONOTONIC.
 *
 * An anchor is an event whose time is known: it is recorded in a stream of its own and waited for, and was reached
 * between the two looks at the clock. What the events say of the time since the anchor before is taken, moved into that
 * interval where it lies outside: so the clock of the card, which drifts by some us a second (doc/facts.md), is
 * followed, and a look that took long does no harm. An event's time is that of the anchor that was the newest when it
 * was recorded, plus what the driver says lies between: a single-precision number of ms, exact to 8 ns up to 100 ms.
 */
#ifndef LOADLINE_TRACE_PRELOAD_ANCHOR_H
#define LOADLINE_TRACE_PRELOAD_ANCHOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

struct ll_trace_anchor;

struct ll_trace_anchors {
	struct ll_cu_stream *stream;
	struct ll_trace_anchor *newest;
	struct ll_trace_anchor *spare;
	uint64_t made_ns;
};

/* With the context current. False: an error of the driver. The first anchor is waited for. */
bool ll_trace_anchors_init(struct ll_trace_anchors *anchors);

/* Its stream and events are destroyed; those that are still joined lose theirs. Under the lock. */
void ll_trace_anchors_fini(struct ll_trace_anchors *anchors);

/* Makes a new one when the newest is old. The context is current; lock, which guards join and leave, is taken where it
 * is needed and not while waiting. */
void ll_trace_anchors_renew(struct ll_trace_anchors *anchors, pthread_mutex_t *lock);

/* The newest one, for an event that is recorded now, until leave. Under the lock. */
struct ll_trace_anchor *ll_trace_anchor_join(struct ll_trace_anchors *anchors);
void ll_trace_anchor_leave(struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor);

/* When an event was reached. LL_CUDA_ERROR_NOT_READY: it has not been; else the driver's error. One call of it. */
ll_cu_result ll_trace_anchor_time(const struct ll_trace_anchor *anchor, struct ll_cu_event *event, uint64_t *ret_ns);

#endif
