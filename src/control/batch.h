/*
 * batch.h - how long a card worked on a batch of launches of one stream.
 *
 * A batch lies between two events that the card stamps. If its stream ran empty in between, the work is shorter than
 * that. Whether it did cannot be asked afterwards, but five things are known:
 *
 *   span        between the two events: the work is no longer;
 *   start wait  what the first event waited in the queue for certain, from when it was recorded to when the card
 *               reached it. If the host had launched the whole batch by then, the stream never ran empty, and the work
 *               is the span;
 *   end wait    the same of the last event. All that time the card worked: the work is no shorter, and the stream was
 *               not empty when that event was recorded;
 *   seen        where the last event came late: the time over which the stream was seen at work on the batch. The
 *               work is no shorter;
 *   guess       what such launches took before, when that could be told. Where it is far too short, and each launch is
 *               longer than all the time in which nobody saw the stream, they worked in that time, too.
 *
 * A single launch between two events of its own, on an empty stream, is late by what the launch call takes the host and
 * by the end of the call that recorded the first event. Both are measured, so such a batch is a sample of what the
 * launch takes, unless the host was interrupted: a call that took long may have reached the card at any time in it.
 * Pure arithmetic.
 */
#ifndef LOADLINE_CONTROL_BATCH_H
#define LOADLINE_CONTROL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* What an event takes the card between two kernels of a queue, at least: 2.1 us, on other machines 2.9 (doc/facts.md).
 */
#define LL_BATCH_EVENT_NS UINT64_C(2100)
/*
 * Of a launch between two events on an idle stream, two things are not work, in the sense of GPM. So much of the call
 * that records the first event comes after the card has it: the percentage holds for calls of 1 to 5 us, on all
 * machines of doc/facts.md and for kernels of 2 to 50 us. And an event takes what it takes, but for so much, in which
 * the card counts as busy.
 */
#define LL_BATCH_RECORD_PERCENT 27
#define LL_BATCH_EVENT_BUSY_NS UINT64_C(2450)
/* A kernel that comes to an idle card keeps it busy for so much longer than one directly behind another, in the sense
 * of GPM: 0.3 to 0.5 us, whatever it does (doc/facts.md). */
#define LL_BATCH_IDLE_NS UINT64_C(420)
/* No launch keeps an idle card busy for less: a memset of 4 bytes, which in a queue hides in an event (doc/facts.md).
 */
#define LL_BATCH_LEAST_NS UINT64_C(1000)
/* A kernel that waits for an event follows it after so much: it fits products whose first event waited (doc/facts.md).
 */
#define LL_BATCH_FOLLOW_NS UINT64_C(2180)
/* A last event that was recorded later than this behind the last launch may have found the stream empty. */
#define LL_BATCH_TAIL_NS UINT64_C(5000)
/* A call that records an event takes 1 to 4 us (doc/facts.md): one that takes longer was interrupted. */
#define LL_BATCH_CALL_NS UINT64_C(5000)
/* The same of a launch: 2 to 8 us. */
#define LL_BATCH_LAUNCH_NS UINT64_C(20000)

/*
 * A sample is sure if the last event waited for the launch; or if the launch is so long that what the host took does
 * not matter. Others may be too long: the last event came to an idle card.
 */
#define LL_BATCH_SURE_WAIT_NS UINT64_C(300)
#define LL_BATCH_LONG_NS UINT64_C(50000)

struct ll_batch {
	uint64_t span_ns;
	uint64_t start_wait_ns, end_wait_ns;
	uint64_t host_ns;       /* from before the first event's record to after the last launch */
	uint64_t start_call_ns; /* has_start: what recording the first event took */
	uint64_t launch_ns;     /* has_start: from after that to after the last launch */
	uint64_t tail_ns;       /* from after the last launch to before the last event's record */
	uint64_t end_call_ns;   /* what recording that took */
	uint64_t seen_ns;       /* 0: nobody looked */
	uint64_t event_ns;      /* what an event takes this card between two kernels */
	uint64_t guess_ns;
	uint32_t launches;
	bool has_start; /* the first event is its own; else it is the end of the batch before */
	bool is_behind; /* has_start: other launches were known to be in the stream before it */
};

enum ll_batch_lesson {
	LL_BATCH_UNTOLD, /* nothing to learn */
	LL_BATCH_SAMPLE, /* one launch, timed by itself */
	LL_BATCH_ROUGH,  /* one launch by a slow host, up to a us too long; or in a queue in which others may have been,
			  * or that may have run empty */
	LL_BATCH_QUEUED, /* the stream never ran empty: on an idle card each would take LL_BATCH_IDLE_NS more */
	LL_BATCH_LONGER, /* the guess was far too short; busy_ns is a lower bound, or what the launches must have taken
			  */
};

struct ll_batch_verdict {
	uint64_t busy_ns; /* never more than the span */
	enum ll_batch_lesson lesson;
};

struct ll_batch_verdict ll_batch_judge(const struct ll_batch *batch);

/* What each of its launches would take on an idle card, by the verdict: guesses are for programs whose host is the
 * slower one. At least one launch. */
uint64_t ll_batch_each_ns(struct ll_batch_verdict verdict, uint32_t launches);

#endif
