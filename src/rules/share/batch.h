/*
 * batch.h - how long a card worked on a batch of launches of one stream.
 *
 * A batch lies between two timing events, which the card stamps. If its stream ran empty in between, the work is
 * shorter than the time between the events. The driver cannot say afterwards whether the stream ran empty. Five times
 * are known:
 *
 *   span        from the first to the last event. The work is no longer than this.
 *   start wait  how long the first event waited in the queue at least, from its record to when the card reached it. If
 *               the host launched the whole batch in this time, the stream never ran empty, and the work is the span.
 *   end wait    the same of the last event. The card worked all that time, so the work is no shorter than this, and the
 *               stream was not empty when the last event was recorded.
 *   seen        if the last event was recorded late: the time over which the stream was seen at work on the batch. The
 *               work is no shorter than this.
 *   guess       what such launches took earlier. If the guess is far too short, and each launch is longer than all the
 *               time in which nobody looked at the stream, the stream worked in that time too.
 *
 * A single launch between two events of its own, on an empty stream, starts late: by the launch call, and by the end of
 * the call that recorded the first event. Both are measured. So such a batch is a sample of the launch's duration,
 * unless the host was interrupted: a call that took long may have reached the card at any time in it.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_SHARE_BATCH_H
#define LOADLINE_RULES_SHARE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* How long an event keeps the card between two kernels of a queue, at least: 2.1 us, on other machines 2.9
 * (doc/facts.md). */
#define LL_BATCH_EVENT_NS UINT64_C(2100)
/*
 * A launch between two events on an idle stream: two parts of the span are not work, as GPM counts it. One is the part
 * of the call that records the first event, after the card has that event. This percentage holds for calls of 1 to 5 us
 * and kernels of 2 to 50 us, on all machines of doc/facts.md. The other is the time that an event takes, without
 * LL_BATCH_EVENT_BUSY_NS, in which the card counts as busy.
 */
#define LL_BATCH_RECORD_PERCENT 27
#define LL_BATCH_EVENT_BUSY_NS UINT64_C(2450)
/* A kernel on an idle card keeps it busy for this much longer, as GPM counts it, than one directly behind another: 0.3
 * to 0.5 us, whatever the kernel does (doc/facts.md). */
#define LL_BATCH_IDLE_NS UINT64_C(420)
/* The shortest time for which a launch keeps an idle card busy: that of a memset of 4 bytes (doc/facts.md). */
#define LL_BATCH_LEAST_NS UINT64_C(1000)
/* A kernel that waits for an event starts this long after it. Fitted to matrix products whose first event waited
 * (doc/facts.md). */
#define LL_BATCH_FOLLOW_NS UINT64_C(2180)
/* If the last event is recorded later than this after the last launch, the stream may have been empty by then. */
#define LL_BATCH_TAIL_NS UINT64_C(5000)
/* A call that records an event takes 1 to 4 us (doc/facts.md). A longer one was interrupted. */
#define LL_BATCH_CALL_NS UINT64_C(5000)
/* A launch call takes 2 to 8 us. A longer one was interrupted. */
#define LL_BATCH_LAUNCH_NS UINT64_C(20000)

/*
 * A sample is certain if the last event waited for the launch, or if the launch is so long that the host's time does
 * not matter. Other samples may be too long, because the last event may have reached an idle card.
 */
#define LL_BATCH_SURE_WAIT_NS UINT64_C(300)
#define LL_BATCH_LONG_NS UINT64_C(50000)

struct ll_batch {
	uint64_t span_ns;
	uint64_t start_wait_ns, end_wait_ns;
	uint64_t host_ns;       /* from before the first event's record to after the last launch */
	uint64_t start_call_ns; /* has_start: duration of the call that recorded the first event */
	uint64_t launch_ns;     /* has_start: from after that call to after the last launch */
	uint64_t tail_ns;       /* from after the last launch to before the last event's record */
	uint64_t end_call_ns;   /* duration of the call that recorded the last event */
	uint64_t seen_ns;       /* 0: nobody looked */
	uint64_t event_ns;      /* how long an event keeps this card between two kernels */
	uint64_t guess_ns;
	uint32_t launches;
	bool has_start; /* the first event is its own; false: it is the last event of the batch before */
	bool is_behind; /* has_start: other launches were known to be in the stream before it */
};

enum ll_batch_lesson {
	LL_BATCH_UNTOLD, /* nothing to learn */
	LL_BATCH_SAMPLE, /* one launch, timed by itself */
	LL_BATCH_ROUGH,  /* one launch by a slow host, up to 1 us too long; or one in a queue that may have had other
			  * launches, or may have run empty */
	LL_BATCH_QUEUED, /* the stream never ran empty. On an idle card each launch takes LL_BATCH_IDLE_NS more. */
	LL_BATCH_LONGER, /* the guess was far too short. busy_ns is a lower bound, or what the launches must have taken.
			  */
};

struct ll_batch_verdict {
	uint64_t busy_ns; /* how long the card worked; never more than the span */
	enum ll_batch_lesson lesson;
};

/* Judges one batch. */
struct ll_batch_verdict ll_batch_judge(const struct ll_batch *batch);

/* Returns how long each launch of the batch would take on an idle card, by the verdict. launches: at least 1. */
uint64_t ll_batch_each_ns(struct ll_batch_verdict verdict, uint32_t launches);

#endif
