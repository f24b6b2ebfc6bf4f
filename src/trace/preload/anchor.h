/*
 * anchor.h - converts the times of a context's timing events to CLOCK_MONOTONIC.
 *
 * An anchor is an event whose time is known. A thread records it in a stream of its own and waits for it, so the card
 * reached it between two readings of the host's clock. These two times are the anchor's bracket. The time that the
 * driver gives between this anchor and the one before narrows the bracket. So a long wait does no harm, and the
 * conversion follows the card's clock, which drifts by some us per second (doc/facts.md).
 *
 * An event's time is that of its anchor, plus the time that the driver gives between the two. The anchor is the newest
 * one when the event is recorded. The driver gives a single-precision number of ms, exact to 8 ns up to 100 ms.
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

/* Makes the stream and the first anchors, and waits for them. The context must be current. False: an error of the
 * driver. */
bool ll_trace_anchors_init(struct ll_trace_anchors *anchors);

/* Destroys the stream and the anchors' events. Call it with the lock held. Anchors that are still joined must not be
 * used afterwards. */
void ll_trace_anchors_fini(struct ll_trace_anchors *anchors);

/* Makes a new anchor if the newest is 100 ms old. The context must be current. lock guards join and leave; the function
 * takes it, but not while it waits. */
void ll_trace_anchors_renew(struct ll_trace_anchors *anchors, pthread_mutex_t *lock);

/* Returns the newest anchor for an event that is recorded now. The anchor stays valid until leave. Call both with the
 * lock held. */
struct ll_trace_anchor *ll_trace_anchor_join(struct ll_trace_anchors *anchors);
void ll_trace_anchor_leave(struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor);

/* *ret_ns: when the card reached the event. LL_CUDA_ERROR_NOT_READY: not yet. Otherwise the driver's error. It calls
 * the driver once. */
ll_cu_result ll_trace_anchor_time(const struct ll_trace_anchor *anchor, struct ll_cu_event *event, uint64_t *ret_ns);

#endif
