/*
 * timing.h - how long the card worked for this program, told by timing events between its own launches.
 *
 * One object per context. Launches of a stream are gathered in batches of so much work (ll_timing_set_every); a batch
 * ends with a timing event, and one that begins on an idle stream with what is not known also begins with one. What the
 * card did for it follows from the two and from what launches of these kinds take (control/batch.h,
 * kernel_estimates.h). A timing event costs the host 1 us and the card 2 (doc/facts.md), so most launches are only
 * counted: no call of the driver, some 30 ns.
 *
 * A timing event takes a place in the stream's queue in the driver, and where that is full recording one waits until
 * the card has worked something off. So the lock is let go while one is recorded (timing_lock.h), and few timing events
 * are in flight at once: behind LL_TIMING_EVENTS_FREE of them each gathers as many launches as all before it together,
 * so that a stream that waits for something still takes about as many launches as it would without timing events.
 *
 * Busy time is the union over the context's streams. Nothing else here waits. The caller holds the lock around every
 * call, has the context current where timing events are recorded (begin, end, close_tails), keeps the object until they
 * are back, and never times a stream that is being captured.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_H
#define LOADLINE_SHIM_TIME_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "control/busy.h"

/* Work in a batch, so long as nothing else is said. */
#define LL_TIMING_EVERY_NS UINT64_C(200000)

/* Timing events in flight in a stream that are made as the work wants them: more than a bounded queue has (flow.h). */
enum { LL_TIMING_EVENTS_FREE = 12 };

/* And behind which a launch is timed by itself, with two of them. */
enum { LL_TIMING_EVENTS_BEHIND = 4 };

/* A launch of so long goes on beyond a visit for long enough to count. */
#define LL_TIMING_LONG_NS UINT64_C(1000000)

struct ll_timing;
struct ll_timing_lock;

/* A stream as launches name it: the handle, and for the per-thread default stream the thread too. */
struct ll_timing_stream {
	struct ll_cu_stream *handle;
	uint64_t thread; /* 0 but for LL_CU_STREAM_PER_THREAD */
};

static inline bool ll_timing_stream_is(struct ll_timing_stream one, struct ll_timing_stream other)
{
	return one.handle == other.handle && one.thread == other.thread;
}

/* Launches, and estimated work that they are. */
struct ll_timing_queue {
	uint64_t ns, launches;
};

/* A stretch of time, CLOCK_MONOTONIC, in which the card had work of this program. */
struct ll_timing_stretch {
	uint64_t start_ns, end_ns;
	uint64_t fresh_ns; /* of it, what other streams have not told before */
	bool is_ours;      /* the card worked for this program all that time; else others' slices may lie in it */
};

/* Told of each stretch; from within begin and harvest. */
typedef void ll_timing_charge_fn(void *of, const struct ll_timing_stretch *stretch);

/* NULL: no memory. The lock stays the caller's; it is NULL where there is one thread. */
struct ll_timing *ll_timing_new(struct ll_timing_lock *lock, ll_timing_charge_fn *charge, void *of);

/* Frees the object; with destroys_events also its events, which needs the context to be alive. NULL is fine. */
void ll_timing_free(struct ll_timing *timing, bool destroys_events);

/* How much work a batch gathers: the more, the fewer timing events there are and the later work is charged. */
void ll_timing_set_every(struct ll_timing *timing, uint64_t every_ns);

/* How long a tail is left alone beyond what is known of it (ll_timing_close_tails): whoever launches again meanwhile is
 * not held up by its timing event. 0 at first. */
void ll_timing_set_patience(struct ll_timing *timing, uint64_t patience_ns);

/*
 * Whether others' work is on the card too: then nothing is learned of what launches take, but what is not known at all.
 * sliced_by: so many others share it by the hardware's time slices, or did just now. Then a batch takes what its
 * launches are known to take, as its events have others' slices between them.
 */
void ll_timing_set_shared(struct ll_timing *timing, bool is_shared, unsigned sliced_by);

/*
 * Before a launch that comes after a number of launches behind an open gate, of which nobody saw the kinds: what such a
 * launch takes is what they take in the mean. For time slices only: elsewhere the events tell that.
 */
void ll_timing_note_typical(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name);

/* Whether each launch that never ends must be found (ll_timing_longest): then there is a timing event behind each that
 * nobody else can time later. */
void ll_timing_set_watched(struct ll_timing *timing, bool is_watched);

/*
 * Takes note of launches of one kind, at most so many, into the open batch, as far as they need no timing event: then
 * there is nothing to do before or after them. The first is about to be made (now_ns, CLOCK_MONOTONIC). What was noted;
 * 0: none. Calls no function of the driver.
 */
struct ll_timing_queue ll_timing_count(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name,
				       uint64_t now_ns, uint32_t most);

/* The last so many of them did not come, as far as their batch is still open. */
void ll_timing_uncount(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name, uint32_t count);

/*
 * Before and after a launch that was not just counted. launched_ns: CLOCK_MONOTONIC when the driver's call returned, 0
 * if it failed. An error of the driver in here makes the timing events blind: nothing more is recorded, and time is no
 * longer told.
 */
void ll_timing_begin(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name);
void ll_timing_end(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name, uint64_t launched_ns);

/*
 * Waits of a stream for the gate on the card (card_gate.h): what the gate's word was at the last one (0: there was
 * none), and the estimated work that was launched since. A note of one: the batch that it comes into tells nothing of
 * what its launches take.
 */
struct ll_timing_wait {
	uint64_t unheld_ns; /* UINT64_MAX: nothing is known of the stream */
	uint32_t word;
};
struct ll_timing_wait ll_timing_last_wait(struct ll_timing *timing, struct ll_timing_stream name);
/* Before the first one: ends the open batch, so that it shows when the work before that wait is done. The context is
 * current. */
void ll_timing_end_unheld(struct ll_timing *timing, struct ll_timing_stream name);
void ll_timing_note_wait(struct ll_timing *timing, struct ll_timing_stream name, uint32_t word);
void ll_timing_forget_waits(struct ll_timing *timing); /* nobody has to wait any more */

/* So many launches were made there since the last call about this stream, without a timing event. */
void ll_timing_add_untimed(struct ll_timing *timing, struct ll_timing_stream name, uint32_t launches);

/*
 * Ends what was launched last and left without a timing event, in streams that have nothing else in flight; not in a
 * thread's own default stream, which only that thread can name, and not in the legacy stream where other streams work
 * too, which its timing events would hold back. The context is current, and no capture begins meanwhile (ll_flow_hold).
 *
 * Left alone, unless it shall be at_once, is what cannot have ended yet by what is known of it: a timing event costs
 * the card, and who launches and waits in turn launches again before that.
 *
 * Whoever does this did not launch, and must not wait for room: a stream that has not come to those launches yet, or
 * that has many of them left, may be full, and is timed when it has got on. Until then it is seen to be at work.
 */
bool ll_timing_has_tails(const struct ll_timing *timing, bool at_once);
void ll_timing_close_tails(struct ll_timing *timing, bool at_once);

/*
 * What has had no timing event for 20 ms since it was launched, because nobody could make one (a thread's own stream, a
 * capture, a context that is current elsewhere), is no longer taken to be at work: else the program would seem to work
 * for ever. It is charged when its stream is timed next.
 */
void ll_timing_leave_tails(struct ll_timing *timing);

/* The stream is about to be destroyed; what it still runs is accounted for as it ends, what was launched last only if
 * it can be timed. */
void ll_timing_forget_stream(struct ll_timing *timing, struct ll_timing_stream name, bool can_record);

/* Finds what has ended, and charges it. */
void ll_timing_harvest(struct ll_timing *timing);

/* What the card still has. Both 0: all that is known of has ended. */
struct ll_timing_queue ll_timing_queued(const struct ll_timing *timing);

/* Whether the card has work, as far as is known at now_ns (CLOCK_MONOTONIC): a batch that has a timing event behind it
 * has not ended, or what was launched since then should not be done yet. */
bool ll_timing_has_work(const struct ll_timing *timing, uint64_t now_ns);

/* Whether the card has work that no gate holds back any more: what was launched before the first wait, or a launch of
 * LL_TIMING_LONG_NS or more that has begun. */
bool ll_timing_is_let_through(struct ll_timing *timing);

/* What a launch takes, of the stream that has the longest ones; 0: not known. */
uint64_t ll_timing_mean_ns(const struct ll_timing *timing);

/*
 * The launches that the card has been at for the longest time: all that is known of them is that they have begun and
 * that not all have ended, so the longest kernel among them lasts ns / launches at least. Both 0: nothing runs. A
 * stream that waits for something else is left out where that can be told. now_ns: CLOCK_MONOTONIC; times are as fine
 * as the calls.
 */
struct ll_timing_running {
	uint64_t ns;
	uint32_t launches;
};
void ll_timing_longest(struct ll_timing *timing, uint64_t now_ns, struct ll_timing_running *ret_running);

bool ll_timing_is_idle(const struct ll_timing *timing);
bool ll_timing_is_blind(const struct ll_timing *timing);

/* While blind, with the context current: whether a stream that was timed has work, as the driver says. A thread's own
 * default stream is not asked: only that thread could. The lock is let go meanwhile. */
bool ll_timing_has_work_unseen(struct ll_timing *timing);

/* Forgets all that was timed, and what it was timed with: the next launch is timed by new events. False: a thread is
 * in the driver with one of the old ones. The context is current. */
bool ll_timing_begin_anew(struct ll_timing *timing);

#endif
