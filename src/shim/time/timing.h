/*
 * timing.h - measures how long the card worked for this program, by timing events between the program's launches.
 *
 * There is one object per context. The launches of a stream are grouped into batches. When a batch has enough work
 * (ll_timing_set_every), a timing event is recorded behind it. An event is also recorded before a batch if its first
 * launch needs a sample of its kernel. The card's work for a batch is computed from the time between the events and
 * from the estimates of its launches (rules/share/batch.h, kernel_estimates.h). A timing event costs 1 us on the host
 * and 2 us on the card (doc/facts.md). So most launches are only counted. Counting takes about 30 ns and no call of the
 * driver.
 *
 * A timing event takes one entry of the stream's queue in the driver. If the queue is full, the call that records an
 * event waits until the card has done some of the queued work. So the lock is released while an event is recorded
 * (timing_clock.h), and few events are in flight at once. If LL_TIMING_EVENTS_FREE events are in flight, each further
 * batch has as many launches as all batches in flight together (or a part of them, ll_timing_set_parts). So a stream
 * that waits for something still takes about as many launches as it would without timing events.
 *
 * Busy time is the union over the context's streams. No other function here waits. The caller holds the lock during
 * every call. ll_timing_begin, ll_timing_end and ll_timing_close_tails record events, so the caller makes the context
 * current and keeps the object until they return. The caller never times a stream that is being captured.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_H
#define LOADLINE_SHIM_TIME_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "rules/share/busy.h"
#include "shim/interpose/stream.h"

/* The work of a batch, unless ll_timing_set_every sets another value. */
#define LL_TIMING_EVERY_NS UINT64_C(200000)

/* Batches of a stream grow when this number of timing events is in flight there. It is more than a bounded queue has
 * (flow.h). */
enum { LL_TIMING_EVENTS_FREE = 12 };

/* A launch is timed singly, with two events, only if fewer batches than this are in flight in its stream. */
enum { LL_TIMING_EVENTS_BEHIND = 4 };

/* A launch of at least this duration may run on after the end of its visit for a time that matters. */
#define LL_TIMING_LONG_NS UINT64_C(1000000)

struct ll_timing;
struct ll_timing_lock;

/* A number of launches, and their estimated work. */
struct ll_timing_queue {
	uint64_t ns, launches;
};

/* A stretch of time, CLOCK_MONOTONIC, in which the card had work of this program. */
struct ll_timing_stretch {
	uint64_t start_ns, end_ns;
	uint64_t fresh_ns; /* the part of the stretch that no other stream has reported before */
	bool is_ours;      /* the card worked for this program during the whole stretch; false: it may contain other
			      programs' time slices */
	/* For the accounts: how long the card worked, up to end_ns, and the part that no other stream has reported. Of
	 * a stretch that is_ours it is closer than the stretch, by kernels' shortest samples */
	uint64_t accounted_ns, fresh_accounted_ns;
	bool is_short; /* the kernels are shorter than a time slice: their samples are whole kernels */
	/* From the time at which the card could begin with the work to end_ns, whoever had the card: for who knows the
	 * times of others (shim/slices/stays.h). And the part that no other stream has reported. */
	uint64_t span_ns, fresh_span_ns;
};

/* A callback that is called for each stretch, by the functions that find ended batches (ll_timing_begin,
 * ll_timing_harvest). */
typedef void ll_timing_charge_fn(void *of, const struct ll_timing_stretch *stretch);

/* Makes the timing of one context. Returns NULL if there is no memory. The caller keeps the lock. lock may be NULL if
 * there is only one thread. */
struct ll_timing *ll_timing_new(struct ll_timing_lock *lock, ll_timing_charge_fn *charge, void *of);

/* Frees the object. If destroys_events is true, also destroys its events; then the context must exist. timing may be
 * NULL. */
void ll_timing_free(struct ll_timing *timing, bool destroys_events);

/* Sets how much work a batch has. With a larger value there are fewer timing events, and work is charged later. */
void ll_timing_set_every(struct ll_timing *timing, uint64_t every_ns);

/* Sets into how many parts timing events divide a long queue. The position of the card in the queue is known to one
 * part. The default is 1. With 20 parts, a queue of a thousand launches contains about fifty events. */
void ll_timing_set_parts(struct ll_timing *timing, unsigned parts);

/* Sets how long after its estimated end a tail gets no timing event (ll_timing_close_tails). A program that launches
 * again within this time is not delayed by an event. The default is 0. */
void ll_timing_set_patience(struct ll_timing *timing, uint64_t patience_ns);

/*
 * is_shared: other programs' work is on the card too. Then samples are used only for kernels that have none yet.
 * sliced_by: the number of other programs that share the card by time slices, or shared it a moment ago. If it is not
 * 0, a batch is charged the estimates of its launches, because the time between its events contains other programs'
 * slices.
 * is_sampled: kernels are noted by ll_timing_note_typical, and the mean of them counts.
 */
void ll_timing_set_shared(struct ll_timing *timing, bool is_shared, unsigned sliced_by, bool is_sampled);

/*
 * Used while programs share by time slices, and while streams have gaps (ll_timing_note_gap). The library does not know
 * the kernels of launches that pass an open gate. After a number of such launches one launch is timed, and its kernel
 * is noted here. The noted launches are a sample: each launch that passed the gate is charged the mean of their
 * estimates.
 */
void ll_timing_note_typical(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key);

/* is_watched: ll_timing_longest must find each launch that never ends. Then a timing event follows each launch that no
 * other thread can time later. */
void ll_timing_set_watched(struct ll_timing *timing, bool is_watched);

/*
 * Adds launches of one kernel to the open batch: as many as need no timing event, at most `most`. These launches need
 * no ll_timing_begin and ll_timing_end. The first of them is made at now_ns (CLOCK_MONOTONIC). Returns the number and
 * the estimated work of the launches that were added, or 0. Does not call the driver.
 */
struct ll_timing_queue ll_timing_count(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key,
				       uint64_t now_ns, uint32_t most);

/* Removes the last `count` counted launches, because they were not made. Does nothing if their batch is no longer open.
 */
void ll_timing_uncount(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint32_t count);

/*
 * Call these before and after a launch that ll_timing_count did not count. launched_ns: CLOCK_MONOTONIC when the
 * driver's call returned; 0: the call failed. If the driver fails to record or read an event, the object becomes blind:
 * it records no more events and reports no time.
 */
void ll_timing_begin(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key);
void ll_timing_end(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint64_t launched_ns);

/*
 * These functions handle a stream's waits for the gate on the card (flow_state.h). ll_timing_last_wait returns the
 * gate's word at the stream's last wait (0: there was no wait) and the estimated work that was launched since.
 * ll_timing_note_wait notes a new wait. The batch that contains the wait gives no sample.
 */
struct ll_timing_wait {
	uint64_t unheld_ns; /* UINT64_MAX: the stream is not known */
	uint32_t word;
};
struct ll_timing_wait ll_timing_last_wait(struct ll_timing *timing, struct ll_timing_stream name);
/* Call it before the stream's first wait. Ends the open batch with an event, so that the library sees when the work
 * before the wait has ended. The context is current. */
void ll_timing_end_unheld(struct ll_timing *timing, struct ll_timing_stream name);
void ll_timing_note_wait(struct ll_timing *timing, struct ll_timing_stream name, uint32_t word);
void ll_timing_forget_waits(struct ll_timing *timing); /* for use when tenants no longer share the card by visits */

/*
 * The stream gets an operation that is no kernel, and may take long: a wait, a host function, a copy with the host. The
 * card is free meanwhile, so the batch that contains it gives no sample, and counts as the estimates of its launches.
 */
void ll_timing_note_gap(struct ll_timing *timing, struct ll_timing_stream name);
void ll_timing_note_gap_anywhere(struct ll_timing *timing); /* it is not known in which stream */

/* Adds launches that were made in the stream, without a timing event, since the last call for this stream. */
void ll_timing_add_untimed(struct ll_timing *timing, struct ll_timing_stream name, uint32_t launches);

/*
 * A tail is the last launches of a stream, if no timing event follows them and no batch before them is in flight.
 * ll_timing_close_tails records an event behind each tail. It skips a thread's own default stream, because only that
 * thread can use it. It skips the legacy stream while other streams work, because the event would delay them. The
 * context is current, and no capture begins meanwhile (ll_flow_hold).
 *
 * If at_once is false, tails that cannot have ended yet according to their estimates get no event. An event costs time
 * on the card, and a program that waits after each launch launches again before the estimated end.
 *
 * The calling thread did not make the launch, so it must not wait for room in the stream's queue. A stream's queue may
 * be full if the card has not reached the tail yet, or if the tail has many launches. Such a tail gets its event later,
 * when the card has done more of it. Until then the stream counts as working.
 */
bool ll_timing_has_tails(const struct ll_timing *timing, bool at_once);
void ll_timing_close_tails(struct ll_timing *timing, bool at_once);

/*
 * Some tails cannot be timed: those in a thread's own stream, in a capture, or in a context that is current elsewhere.
 * LL_VISIT_DRAIN_NS after its last launch such a tail no longer counts as working. Otherwise the program would appear
 * to work for ever. The tail is charged when its stream is timed next.
 */
void ll_timing_leave_tails(struct ll_timing *timing);

/* Call it before the stream is destroyed. Work in flight is charged when it ends. The stream's tail is charged only if
 * an event can be recorded behind it now. */
void ll_timing_forget_stream(struct ll_timing *timing, struct ll_timing_stream name, bool can_record);

/* Finds batches that have ended, and charges them. */
void ll_timing_harvest(struct ll_timing *timing);

/* Returns the work that the card has not finished yet. If both members are 0, all known launches have ended. */
struct ll_timing_queue ll_timing_queued(const struct ll_timing *timing);

/* Returns whether the card has work at now_ns (CLOCK_MONOTONIC): a batch with a timing event behind it has not ended,
 * or the estimated end of the later launches is in the future. */
bool ll_timing_has_work(const struct ll_timing *timing, uint64_t now_ns);

/* Returns whether the card has work that does not wait for the gate: work that was launched before the stream's first
 * wait, or a launch of at least LL_TIMING_LONG_NS that has begun. */
bool ll_timing_has_passed_gate(struct ll_timing *timing);

/* Returns the mean duration of a launch in the stream with the longest launches; 0: not known. */
uint64_t ll_timing_mean_ns(const struct ll_timing *timing);

/*
 * Finds the batch on which the card has worked for the longest time. The batch has begun and has not ended, so its
 * longest kernel lasts at least ns / launches. If both members are 0, no batch runs. A stream that is seen to wait for
 * something else does not count. now_ns: CLOCK_MONOTONIC. The times are only as exact as the time between two calls.
 */
struct ll_timing_running {
	uint64_t ns;
	uint32_t launches;
};
void ll_timing_longest(struct ll_timing *timing, uint64_t now_ns, struct ll_timing_running *ret_running);

bool ll_timing_is_idle(const struct ll_timing *timing);
bool ll_timing_is_blind(const struct ll_timing *timing);

/* For use while the object is blind, with the context current. Asks the driver about each stream that was timed, and
 * returns whether any has work. Skips a thread's own default stream, because only that thread can ask about it. The
 * lock is released meanwhile. */
bool ll_timing_has_work_unseen(struct ll_timing *timing);

/* Removes all batches and destroys all events. The next launch is timed by new events. Returns false, and changes
 * nothing, if a thread is in the driver with an old event. The context is current. */
bool ll_timing_begin_anew(struct ll_timing *timing);

#endif
