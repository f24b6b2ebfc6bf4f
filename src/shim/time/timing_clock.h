/*
 * timing_clock.h - timing events of one context, and when the card reached them.
 *
 * Card time has an origin of its own and never jumps: it is counted from a base event, which is replaced by a newer one
 * before a difference in milliseconds, as the driver tells it, becomes too coarse. How long an event waited in the
 * queue is its card time minus when it was recorded; the clocks' offset is that of the events that waited least
 * (control/clock_fit.h).
 *
 * What a timing event costs the card depends on the machine, so it is measured: before the first timing event of all,
 * and before a few later ones if that did not tell, stands a row of events (control/event_gauge.h).
 *
 * An error of the driver makes the clock blind: then nothing more is recorded. Nothing here waits but a record, without
 * the lock (timing_lock.h).
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

enum { LL_TIMING_SPARE_EVENTS = 256 };

struct ll_timing_event {
	struct ll_cu_event *handle; /* NULL: none */
	uint64_t host_ns;           /* CLOCK_MONOTONIC, just before it was recorded */
	uint64_t call_ns;           /* what recording took: sometime in it the event came to the queue */
};

/* An event comes to the queue no earlier than this in the call that records it. */
#define LL_TIMING_CALL_NS UINT64_C(1000)

/* Events that tell what one takes. */
struct ll_timing_row {
	struct ll_cu_event *events[LL_EVENT_ROW]; /* NULL: there is none on its way */
	uint64_t host_ns[LL_EVENT_ROW];           /* CLOCK_MONOTONIC, after each was recorded */
	uint64_t begun_ns;                        /* the same, before the first of the last row */
	bool is_recorded;                         /* all of it is in the queue */
};

/* What the card says of an event that it has reached. */
struct ll_timing_stamp {
	uint64_t card_ns;
	uint64_t wait_ns; /* it was in the queue for at least as long; 0 on an idle stream */
};

struct ll_timing_clock {
	struct ll_timing_lock *lock; /* NULL: there is one thread */
	struct ll_cu_event *spare[LL_TIMING_SPARE_EVENTS];
	size_t spare_count;
	struct ll_cu_event *base;
	uint64_t base_ns;      /* its card time */
	uint64_t base_host_ns; /* of the first one: CLOCK_MONOTONIC, just before it was recorded */
	bool has_base_ended;
	bool is_basing; /* the first base is being recorded */
	struct ll_timing_row row;
	struct ll_event_gauge gauge;
	uint64_t event_ns; /* what an event between two kernels takes; control/batch.h until it was measured */
	struct ll_clock_fit fit;
	bool is_blind;
};

/* The lock stays the caller's. */
void ll_timing_clock_init(struct ll_timing_clock *clock, struct ll_timing_lock *lock);

/* With destroys_events the context must be alive and current. */
void ll_timing_clock_fini(struct ll_timing_clock *clock, bool destroys_events);

/* Whether one can be recorded: the clock is not blind, and no other thread is about to make the base. */
bool ll_timing_can_record(const struct ll_timing_clock *clock);

/* If so records an event in the stream; false: it could not, and the clock is blind. The first one makes the base, too.
 * The lock is let go: other threads may come in meanwhile. */
bool ll_timing_record(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_timing_event *ret_event);

/* Whether the card has reached it. */
bool ll_timing_has_ended(struct ll_timing_clock *clock, struct ll_cu_event *event);

/* Whether card times can be told: the base has been reached. */
bool ll_timing_clock_runs(struct ll_timing_clock *clock);

/* Of an event that has ended, while the clock runs. */
struct ll_timing_stamp ll_timing_read(struct ll_timing_clock *clock, const struct ll_timing_event *event);

/* The host's time, CLOCK_MONOTONIC, of a card time; once an event was read. Early by the time that a call takes to the
 * card. */
uint64_t ll_timing_host_ns(const struct ll_timing_clock *clock, uint64_t card_time_ns);

/* The reverse: when an event that was recorded then is reached at the earliest. */
uint64_t ll_timing_card_ns(const struct ll_timing_clock *clock, uint64_t host_ns);

/* Gives the event back; one that has ended, with its card time, may become the new base. NULL is fine. */
void ll_timing_drop(struct ll_timing_clock *clock, struct ll_cu_event *event);
void ll_timing_drop_ended(struct ll_timing_clock *clock, struct ll_cu_event *event, uint64_t event_ns);

#endif
