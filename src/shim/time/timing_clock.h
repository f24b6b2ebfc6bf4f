/*
 * timing_clock.h - records timing events in one context, and reads when the card reached them; the lock that is
 * released meanwhile.
 *
 * Card time has its own origin and never jumps. It is the time since a base event. The driver reports the time between
 * two events as a float of milliseconds. This is too coarse for events far from the base, so a newer event then becomes
 * the base. The time that an event waited in the queue is its card time minus the time when it was recorded. The offset
 * between the two clocks is computed from the events that waited the shortest time (rules/share/clock_fit.h).
 *
 * The cost of a timing event on the card depends on the machine, so the clock measures it. It records a row of events
 * before the first timing event. If that row does not give the cost, it records further rows before later timing events
 * (rules/share/event_gauge.h).
 *
 * After an error of the driver the clock is blind: it records no more events. Only the recording functions may wait,
 * and they release the lock first.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_CLOCK_H
#define LOADLINE_SHIM_TIME_TIMING_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "rules/share/clock_fit.h"
#include "rules/share/event_gauge.h"

/* ---- the lock of a flow ---- */

/*
 * A thread releases the lock while it records an event by the driver, and while it asks the driver whether a stream has
 * work.
 *
 * A stream's queue in the driver has room for about a thousand operations (doc/facts.md). If the queue is full, the
 * call that records an event waits until the card has done some of them. The card's progress may depend on another
 * thread's launch. A thread that asks the driver about such a stream waits too. So no other thread may have to wait for
 * a thread in such a call.
 */

/* A thread waits this long for another thread that records an event. Recording takes some µs. A call that takes longer
 * waits for room in the queue. */
#define LL_TIMING_LOCK_WAIT_NS UINT64_C(20000000)

struct ll_timing_lock {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	unsigned recording; /* threads that have released the lock for a call of the driver */
};

void ll_timing_lock_init(struct ll_timing_lock *lock);
void ll_timing_lock_fini(struct ll_timing_lock *lock);

/* ll_timing_lock_let_go releases the lock before a call of the driver. ll_timing_lock_take_back acquires it after the
 * call. lock NULL: there is only one thread. */
void ll_timing_lock_let_go(struct ll_timing_lock *lock);
void ll_timing_lock_take_back(struct ll_timing_lock *lock);

/* Waits until a thread acquires the lock after its call of the driver. Returns false if until_ns (CLOCK_MONOTONIC) is
 * reached first. The caller holds the lock, which is released meanwhile. */
bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns);

/* Waits until no thread is in such a call, at most LL_TIMING_LOCK_WAIT_NS, because the caller's next step must not run
 * beside one. The caller holds the lock, which is released meanwhile. */
void ll_timing_lock_settle(struct ll_timing_lock *lock);

/* ---- the clock ---- */

enum { LL_TIMING_FREE_EVENTS = 256 };

struct ll_timing_event {
	struct ll_cu_event *handle; /* NULL: none */
	uint64_t host_ns;           /* CLOCK_MONOTONIC just before the event was recorded */
	uint64_t call_ns;           /* duration of the call; the event entered the queue at some time during the call */
};

/* The shortest time from the begin of the call that records an event until the event is in the queue. */
#define LL_TIMING_CALL_NS UINT64_C(1000)

/* A row of events. The cost of one event is measured with it. */
struct ll_timing_row {
	struct ll_cu_event *events[LL_EVENT_ROW]; /* NULL: there is no row */
	uint64_t host_ns[LL_EVENT_ROW];           /* CLOCK_MONOTONIC after each event was recorded */
	uint64_t begun_ns; /* CLOCK_MONOTONIC, before the first event of the last row was recorded */
	bool is_recorded;  /* all events of the row are in the queue */
};

/* The times of an event that the card has reached. */
struct ll_timing_stamp {
	uint64_t card_ns;
	uint64_t wait_ns; /* lower bound of the event's time in the queue; 0 on an idle stream */
};

struct ll_timing_clock {
	struct ll_timing_lock *lock; /* NULL: there is one thread */
	struct ll_cu_event *free_events[LL_TIMING_FREE_EVENTS];
	size_t free_count;
	struct ll_cu_event *base;
	uint64_t base_ns;      /* card time of the base */
	uint64_t base_host_ns; /* CLOCK_MONOTONIC just before the first base was recorded */
	bool has_base_ended;
	bool is_basing; /* the first base is being recorded */
	struct ll_timing_row row;
	struct ll_event_gauge gauge;
	uint64_t event_ns; /* cost of an event between two kernels; LL_BATCH_EVENT_NS until measured */
	struct ll_clock_fit fit;
	bool is_blind;
};

/* Initializes a clock without events. The caller keeps the lock. */
void ll_timing_clock_init(struct ll_timing_clock *clock, struct ll_timing_lock *lock);

/* Resets the clock. If destroys_events is true, destroys its events; then the context must exist and be current. */
void ll_timing_clock_fini(struct ll_timing_clock *clock, bool destroys_events);

/* Returns whether an event can be recorded: the clock is not blind, and no other thread is recording the base. */
bool ll_timing_can_record(const struct ll_timing_clock *clock);

/* Records an event in the stream. Call it only if ll_timing_can_record returns true. The first call also records the
 * base. Returns false if the driver failed; then the clock is blind. The lock is released meanwhile, so other threads
 * may change the object. */
bool ll_timing_record(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_timing_event *ret_event);

/* Returns whether the card has reached the event. */
bool ll_timing_has_ended(struct ll_timing_clock *clock, struct ll_cu_event *event);

/* Returns whether card times are known, that is, whether the card has reached the base. */
bool ll_timing_clock_runs(struct ll_timing_clock *clock);

/* Reads when the card reached an event that has ended. ll_timing_clock_runs must have returned true. */
struct ll_timing_stamp ll_timing_read(struct ll_timing_clock *clock, const struct ll_timing_event *event);

/* Converts a card time into the host's time (CLOCK_MONOTONIC). An event must have been read before. The result is too
 * early by the time that a call takes to reach the card. */
uint64_t ll_timing_host_ns(const struct ll_timing_clock *clock, uint64_t card_time_ns);

/* Returns the earliest card time at which the card can reach an event that was recorded at host_ns. */
uint64_t ll_timing_card_ns(const struct ll_timing_clock *clock, uint64_t host_ns);

/* Return the event for later use. event may be NULL. ll_timing_drop_ended is for an event that has ended at card time
 * event_ns. It may make the event the new base. */
void ll_timing_drop(struct ll_timing_clock *clock, struct ll_cu_event *event);
void ll_timing_drop_ended(struct ll_timing_clock *clock, struct ll_cu_event *event, uint64_t event_ns);

#endif
