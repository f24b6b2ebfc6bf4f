/*
 * events.h - times a program's launches on the card, by a timing event before each launch and one after it.
 *
 * The times are relative to an anchor (anchor.h), whose time on CLOCK_MONOTONIC is known. A launch seems some 5 us
 * longer than its kernel, because the events take time themselves (doc/facts.md). A graph's launch is one row. The
 * caller must not time a launch into a stream that is being captured.
 *
 * The context must be current in begin and end. A launch calls the driver twice, to record its events. A thread
 * harvests the launches that have ended every 2 to 20 ms: it calls the driver twice for each, and writes a record.
 * Events are reused. One lock guards the lists. It is held during calls of the driver only to make events and contexts.
 */
#ifndef LOADLINE_TRACE_PRELOAD_EVENTS_H
#define LOADLINE_TRACE_PRELOAD_EVENTS_H

#include <stdbool.h>

#include "shim/interpose/stream.h"
#include "shim/interpose/work.h"
#include "trace/writer.h"

struct ll_trace_launch;

/* Starts the thread. -errno: it cannot be started. */
int ll_trace_events_start(struct ll_trace_writer *writer);

/* Call them before and after a launch. NULL: the launch is not timed, because there is no context or no room.
 * is_launched: the driver accepted the launch. */
struct ll_trace_launch *ll_trace_events_begin(struct ll_cu_context *context, struct ll_timing_stream stream,
					      const struct ll_work *work);
void ll_trace_events_end(struct ll_trace_launch *launch, bool is_launched);

/* Call them before a context is destroyed, or before the primary context of a device may be. They wait for the
 * context's work, 1 s at most. */
void ll_trace_events_forget(struct ll_cu_context *context);
void ll_trace_events_forget_device(ll_cu_device device);

/* Call it before a stream is destroyed, because another stream may get its handle. */
void ll_trace_events_forget_stream(struct ll_timing_stream name);

/* Ends the timing at the end of the process: waits for the work of all contexts. No launch is timed afterwards. */
void ll_trace_events_finish(void);

/* Forgets everything in a forked child. It frees nothing, because a thread of the parent may have held the lock. */
void ll_trace_events_reset(void);

/* Finds the number of a context in records, and its device. False: it cannot be timed. */
bool ll_trace_events_place(struct ll_cu_context *context, uint32_t *ret_number, uint32_t *ret_device);

#endif
