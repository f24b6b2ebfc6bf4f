/*
 * events.h - when the card did what a program launched, told by a timing event before each launch and one after.
 *
 * The events say how long after an anchor something was: an event that a thread of ours records now and then in a
 * stream of its own, and waits for, so that its time is known on CLOCK_MONOTONIC too, to within what it waited. A
 * launch looks longer than its kernel by what the events themselves take, some 5 us (doc/facts.md). A graph's launch is
 * one row. Nothing is recorded in a stream that is being captured: the caller looks.
 *
 * The context is current in begin and end. Of the driver a launch takes two calls, to record its events; what those say
 * costs two more, of the thread that harvests what has ended and writes it, every 2 to 20 ms. Events are used again.
 * One lock, which is not held while the driver is called, but for new events and contexts.
 */
#ifndef LOADLINE_TRACE_PRELOAD_EVENTS_H
#define LOADLINE_TRACE_PRELOAD_EVENTS_H

#include <stdbool.h>

#include "shim/interpose/stream.h"
#include "shim/interpose/work.h"
#include "trace/writer.h"

struct ll_trace_launch;

/* The thread runs from here on. -errno. */
int ll_trace_events_start(struct ll_trace_writer *writer);

/* Around a launch. NULL: it is not timed, for there is no context, or no room. */
struct ll_trace_launch *ll_trace_events_begin(struct ll_cu_context *context, struct ll_timing_stream stream,
					      const struct ll_work *work);
void ll_trace_events_end(struct ll_trace_launch *launch, bool is_launched);

/* Before a context is destroyed, or a device's primary context may be: waits for what runs in it, 1 s at most. */
void ll_trace_events_forget(struct ll_cu_context *context);
void ll_trace_events_forget_device(ll_cu_device device);

/* Before a stream is destroyed: its handle may be another one's afterwards. */
void ll_trace_events_forget_stream(struct ll_timing_stream name);

/* At the end of the process: the same for all, and nothing is timed any more. */
void ll_trace_events_finish(void);

/* In a forked child: all is forgotten and nothing freed, for the parent's threads may have held the lock. */
void ll_trace_events_reset(void);

/* The number that stands for a context, and its device. */
bool ll_trace_events_place(struct ll_cu_context *context, uint32_t *ret_number, uint32_t *ret_device);

#endif
