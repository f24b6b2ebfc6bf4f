/*
 * timing_clock.h - timing events of one context, and when the card reached them.
 *
 * Card time has an origin of its own and never jumps. It is counted from a base event. The driver tells differences in
 * milliseconds, which become too coarse far from the base, so a newer event then replaces the base. The time that an
 * event waited in the queue is its card time minus the time when it was recorded. The offset of the two clocks is taken
 * from the events that waited least (control/clock_fit.h).
 *
 * The cost of a timing event for the card depends on the machine, so it is measured: before the first timing event of
 * all a row of events is recorded. If that does not tell the cost, further rows are recorded before later ones
 * (control/event_gauge.h).
 *
 * After an error of the driver the clock is blind: nothing more is recorded. Only recording may wait here, without the
 * lock (timing_lock.h).
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_CLOCK_H
#define LOADLINE_SHIM_TIME_TIMING_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "control/clock_fit.h"
#include "control/event_gauge.h"
#include "shim/time/timing_lock.h"

enum { LL_TIMING_FREE_EVENTS = 256 };

struct ll_timing_event {
	struct ll_cu_event *handle; /* NULL: none */
	uint64_t host_ns;           /* CLOCK_MONOTONIC, just before it was recorded */
	uint64_t call_ns;           /* how long the call took; the event came to the queue sometime in it */
};

/* An event comes to the queue so long after the begin of the call that records it, at the earliest. */
#define LL_TIMING_CALL_NS UINT64_C(1000)

/* A row of events, which tells what one event takes. */
struct ll_timing_row {
	struct ll_cu_event *events[LL_EVENT_ROW]; /* NULL: there is no row */
	uint64_t host_ns[LL_EVENT_ROW];           /* CLOCK_MONOTONIC, after each was recorded */
	uint64_t begun_ns; /* CLOCK_MONOTONIC, before the first event of the last row was recorded */
	bool is_recorded;  /* all of it is in the queue */
};

/* What the card says of an event that it has reached. */
struct ll_timing_stamp {
	uint64_t card_ns;
	uint64_t wait_ns; /* time in the queue, at least; 0 on an idle stream */
};

struct ll_timing_clock {
	struct ll_timing_lock *lock; /* NULL: there is one thread */
	struct ll_cu_event *free_events[LL_TIMING_FREE_EVENTS];
	size_t free_count;
	struct ll_cu_event *base;
	uint64_t base_ns;      /* card time of the base */
	uint64_t base_host_ns; /* CLOCK_MONOTONIC, just before the first base was recorded */
	bool has_base_ended;
	bool is_basing; /* the first base is being recorded */
	struct ll_timing_row row;
	struct ll_event_gauge gauge;
	uint64_t event_ns; /* what an event between two kernels takes; LL_BATCH_EVENT_NS until it was measured */
	struct ll_clock_fit fit;
	bool is_blind;
};

/* Starts a clock without events. The lock stays the caller's. */
void ll_timing_clock_init(struct ll_timing_clock *clock, struct ll_timing_lock *lock);

/* Ends the clock. With destroys_events it destroys its events, which needs the context to be alive and current. */
void ll_timing_clock_fini(struct ll_timing_clock *clock, bool destroys_events);

/* Whether an event can be recorded: the clock is not blind, and no other thread is making the base. */
bool ll_timing_can_record(const struct ll_timing_clock *clock);

/* Records an event in the stream, if ll_timing_can_record. The first one also makes the base. False: it failed, and the
 * clock is blind. The lock is let go meanwhile, so other threads may change the object. */
bool ll_timing_record(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_timing_event *ret_event);

/* Whether the card has reached the event. */
bool ll_timing_has_ended(struct ll_timing_clock *clock, struct ll_cu_event *event);

/* Whether card times are known: the card has reached the base. */
bool ll_timing_clock_runs(struct ll_timing_clock *clock);

/* Reads when the card reached an event that has ended. The clock must run. */
struct ll_timing_stamp ll_timing_read(struct ll_timing_clock *clock, const struct ll_timing_event *event);

/* Returns the host's time (CLOCK_MONOTONIC) of a card time. An event must have been read before. The result is early by
 * the time that a call takes to the card. */
uint64_t ll_timing_host_ns(const struct ll_timing_clock *clock, uint64_t card_time_ns);

/* Returns the earliest card time at which an event that was recorded at host_ns is reached. */
uint64_t ll_timing_card_ns(const struct ll_timing_clock *clock, uint64_t host_ns);

/* Give the event back for later use; NULL is fine. drop_ended: the event has ended at that card time, and may become
 * the new base. */
void ll_timing_drop(struct ll_timing_clock *clock, struct ll_cu_event *event);
void ll_timing_drop_ended(struct ll_timing_clock *clock, struct ll_cu_event *event, uint64_t event_ns);

#endif
