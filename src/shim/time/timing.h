/*
 * timing.h - measures how long the card worked for this program, by timing events between the program's launches.
 *
 * There is one object per context. The launches of a stream are gathered in batches. A batch ends with a timing event
 * after some work (ll_timing_set_every). A batch also begins with one if its stream is idle and its launches are of a
 * kernel whose duration is not known. The time between the events, and the estimates of its launches (control/batch.h,
 * kernel_estimates.h), tell what the card did for a batch. A timing event costs the host 1 us and the card 2
 * (doc/facts.md). So most launches are only counted: that takes some 30 ns and no call of the driver.
 *
 * A timing event takes a place in the stream's queue in the driver. If the queue is full, the call that records one
 * waits until the card has done some of the queued work. So the lock is let go while an event is recorded
 * (timing_lock.h), and few events are in flight at once. Behind LL_TIMING_EVENTS_FREE of them each further batch
 * gathers as many launches as all before it together (or a part, ll_timing_set_parts). So a stream that waits for
 * something still takes about as many launches as it would without timing events.
 *
 * Busy time is the union over the context's streams. Nothing else here waits. The caller holds the lock during every
 * call. It has the context current in begin, end and close_tails, which record events, and keeps the object until they
 * return. It never times a stream that is being captured.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_H
#define LOADLINE_SHIM_TIME_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "control/busy.h"
#include "shim/interpose/stream.h"

/* The work in a batch, if ll_timing_set_every was not called. */
#define LL_TIMING_EVERY_NS UINT64_C(200000)

/* So many timing events may be in flight in a stream before batches grow: more than a bounded queue has (flow.h). */
enum { LL_TIMING_EVENTS_FREE = 12 };

/* A launch is timed by itself, with two events, only behind no more events than these. */
enum { LL_TIMING_EVENTS_BEHIND = 4 };

/* A launch that lasts at least so long may go on beyond its visit for long enough to count. */
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
	uint64_t fresh_ns; /* the part of it that no other stream has reported before */
	bool is_ours; /* the card worked for this program all that time; else other programs' slices may lie in it */
};

/* Called for each stretch, from within begin and harvest. */
typedef void ll_timing_charge_fn(void *of, const struct ll_timing_stretch *stretch);

/* Makes the timing of one context; NULL: no memory. The lock stays the caller's. It is NULL if there is only one
 * thread. */
struct ll_timing *ll_timing_new(struct ll_timing_lock *lock, ll_timing_charge_fn *charge, void *of);

/* Frees the object; with destroys_events also its events, which needs the context to be alive. NULL is fine. */
void ll_timing_free(struct ll_timing *timing, bool destroys_events);

/* Sets how much work a batch gathers. With more work there are fewer timing events, and work is charged later. */
void ll_timing_set_every(struct ll_timing *timing, uint64_t every_ns);

/* How many of a long queue are done is known to so many parts of it. 1 at first. With 20 a queue of a thousand launches
 * holds some fifty events. */
void ll_timing_set_parts(struct ll_timing *timing, unsigned parts);

/* Sets how long a tail is left alone beyond its estimate (ll_timing_close_tails). A program that launches again
 * meanwhile is not held up by a timing event. 0 at first. */
void ll_timing_set_patience(struct ll_timing *timing, uint64_t patience_ns);

/*
 * is_shared: other programs' work is on the card too. Then estimates are only learned for kernels that have none.
 * sliced_by: the number of other programs that share the card by time slices, or did so just now. Then a batch is
 * charged the estimates of its launches, because other programs' slices lie between its events.
 */
void ll_timing_set_shared(struct ll_timing *timing, bool is_shared, unsigned sliced_by);

/*
 * For time slices. Called before a launch that comes after a number of launches through an open gate, whose kernels
 * are not known. Launches noted so are a sample: the mean of their estimates is charged for each of the others.
 */
void ll_timing_note_typical(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key);

/* is_watched: each launch that never ends must be found (ll_timing_longest). Then a timing event follows each launch
 * that no other thread can time later. */
void ll_timing_set_watched(struct ll_timing *timing, bool is_watched);

/*
 * Counts launches of one kernel into the open batch, `most` at most, as far as they need no timing event. Nothing else
 * has to be done before or after them. The first is made now (now_ns, CLOCK_MONOTONIC). Returns what was counted; 0:
 * none. Does not call the driver.
 */
struct ll_timing_queue ll_timing_count(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key,
				       uint64_t now_ns, uint32_t most);

/* Takes back the last `count` launches, which were not made, as far as their batch is still open. */
void ll_timing_uncount(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint32_t count);

/*
 * Before and after a launch that was not just counted. launched_ns: CLOCK_MONOTONIC when the driver's call returned; 0:
 * the call failed. An error of the driver in here makes the object blind: it records nothing more, and reports no time.
 */
void ll_timing_begin(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key);
void ll_timing_end(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint64_t launched_ns);

/*
 * Waits of a stream for the gate on the card (card_gate.h). last_wait returns the gate's word at the stream's last wait
 * (0: there was none), and the estimated work that was launched since. note_wait: the stream waits now; nothing is
 * learned from the batch in which it does.
 */
struct ll_timing_wait {
	uint64_t unheld_ns; /* UINT64_MAX: nothing is known of the stream */
	uint32_t word;
};
struct ll_timing_wait ll_timing_last_wait(struct ll_timing *timing, struct ll_timing_stream name);
/* Before the first wait. Ends the open batch, so that the end of the work before the wait is seen. The context is
 * current. */
void ll_timing_end_unheld(struct ll_timing *timing, struct ll_timing_stream name);
void ll_timing_note_wait(struct ll_timing *timing, struct ll_timing_stream name, uint32_t word);
void ll_timing_forget_waits(struct ll_timing *timing); /* the gate has opened for good */

/* Adds so many launches that were made in the stream since the last call about it, without a timing event. */
void ll_timing_add_untimed(struct ll_timing *timing, struct ll_timing_stream name, uint32_t launches);

/*
 * A tail is what a stream launched last and no timing event follows, with nothing else in flight. close_tails records
 * an event behind each tail. It leaves out a thread's own default stream, which only that thread can name. It leaves
 * out the legacy stream while other streams work, because the event would hold these back. The context is current, and
 * no capture begins meanwhile (ll_flow_hold).
 *
 * Without at_once, tails are left alone that by their estimates cannot have ended yet. A timing event costs the card,
 * and a program that launches and waits in turn launches again before that.
 *
 * The calling thread did not launch, and must not wait for room. A stream that has not come to its tail yet, or that
 * has many launches of the tail left, may be full. It is timed later, when the card has done more of it. Until then it
 * counts as working.
 */
bool ll_timing_has_tails(const struct ll_timing *timing, bool at_once);
void ll_timing_close_tails(struct ll_timing *timing, bool at_once);

/*
 * Some tails cannot be timed: in a thread's own stream, in a capture, in a context that is current elsewhere. 20 ms
 * after its launch such a tail does not count as working any more. Otherwise the program would seem to work for ever.
 * It is charged when its stream is timed next.
 */
void ll_timing_leave_tails(struct ll_timing *timing);

/* The stream is about to be destroyed. What it still runs is charged when it ends; its tail is charged only if it can
 * be timed now. */
void ll_timing_forget_stream(struct ll_timing *timing, struct ll_timing_stream name, bool can_record);

/* Finds batches that have ended, and charges them. */
void ll_timing_harvest(struct ll_timing *timing);

/* Returns what the card still has. Both 0: all known launches have ended. */
struct ll_timing_queue ll_timing_queued(const struct ll_timing *timing);

/* Whether the card has work, as far as is known at now_ns (CLOCK_MONOTONIC): a batch that has a timing event behind it
 * has not ended, or what was launched since then should not be done yet. */
bool ll_timing_has_work(const struct ll_timing *timing, uint64_t now_ns);

/* Whether the card has work that no gate holds back any more: what was launched before the first wait, or a launch of
 * LL_TIMING_LONG_NS or more that has begun. */
bool ll_timing_has_passed_gate(struct ll_timing *timing);

/* Returns the mean duration of a launch, of the stream with the longest ones; 0: not known. */
uint64_t ll_timing_mean_ns(const struct ll_timing *timing);

/*
 * Gives the batch that the card has worked on for the longest time. It has begun and not ended, so its longest kernel
 * lasts ns / launches at least. Both 0: nothing runs. A stream that waits for something else is left out, as far as
 * that can be seen. now_ns: CLOCK_MONOTONIC. The times are as fine as the calls are frequent.
 */
struct ll_timing_running {
	uint64_t ns;
	uint32_t launches;
};
void ll_timing_longest(struct ll_timing *timing, uint64_t now_ns, struct ll_timing_running *ret_running);

bool ll_timing_is_idle(const struct ll_timing *timing);
bool ll_timing_is_blind(const struct ll_timing *timing);

/* While blind, with the context current: whether a stream that was timed has work, by the driver's answer. A thread's
 * own default stream is not asked, because only that thread can. The lock is let go meanwhile. */
bool ll_timing_has_work_unseen(struct ll_timing *timing);

/* Forgets all that was timed, and the events: the next launch is timed by new ones. False: a thread is in the driver
 * with an old one. The context is current. */
bool ll_timing_begin_anew(struct ll_timing *timing);

#endif
