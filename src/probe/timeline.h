/*
 * timeline.h - who was on the card when: each party's time on the card as spans, and what follows from them.
 *
 * A party queues kernels on its own: it is a stream, a thread or a process. A span is time in which one of its kernels
 * was on the card without interruption. Kernels that follow each other at once are one span. Pure: accounts of kernels
 * in, numbers out.
 */
#ifndef LOADLINE_PROBE_TIMELINE_H
#define LOADLINE_PROBE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/spread.h"
#include "probe/trace.h"

enum {
	LL_PROBE_PARTIES = 16,
	LL_PROBE_LAUNCHES = 128, /* of all parties in one run */
};

struct ll_span {
	uint64_t from_ns, to_ns;
	bool is_cut; /* it ended because blocks were interrupted, which went on later */
};

/* The spans of one party, in order. No two of them touch. */
struct ll_lane {
	struct ll_span *spans;
	size_t count;
};

struct ll_timeline {
	struct ll_lane lanes[LL_PROBE_PARTIES];
	size_t lane_count;
};

/* Makes the timeline of kernels, which may be in any order. -EINVAL: a kernel's party is not below lane_count. -ENOMEM.
 * */
int ll_timeline_make(const struct ll_probe_kernel *kernels, size_t count, size_t lane_count,
		     struct ll_timeline *ret_timeline);
void ll_timeline_fini(struct ll_timeline *timeline);

/* Returns the time from the first start to the last end; 0: there are no spans. */
uint64_t ll_timeline_window_ns(const struct ll_timeline *timeline);

/* Returns the time in which at least one party was on the card. */
uint64_t ll_timeline_busy_ns(const struct ll_timeline *timeline);

/* Returns the longest time within the window in which no party was on the card. If it is much longer than a switch,
 * another program had the card, or the host was slow to launch. */
uint64_t ll_timeline_idle_ns(const struct ll_timeline *timeline);

/*
 * Returns how much of the time that could overlap did overlap, 0 to 1. That is the sum of all parties' times on the
 * card less the time in which any was on it, divided by the same sum less the longest party's time. For two parties it
 * is the part of the shorter one's time in which the other was there too. 0 for one party alone.
 */
double ll_timeline_overlap(const struct ll_timeline *timeline);

/* Returns a party's part, 0 to 1, of all parties' time on the card while all of them wanted it: from the first start of
 * any until the first has finished. */
double ll_timeline_share(const struct ll_timeline *timeline, size_t lane);

/* How parties take turns. It has no meaning for parties that overlap. */
struct ll_turns {
	size_t cuts;      /* blocks interrupted while another party got the card */
	size_t handovers; /* from one party to another */
	struct ll_samples
	    slices_ns; /* lengths of spans between two switches, if the second switch cut the span short */
	struct ll_samples switches_ns; /* from the end of one party's span to the start of another's */
};

/* Adds the turns of this timeline to the samples and counts. */
void ll_turns_add(struct ll_turns *turns, const struct ll_timeline *timeline);
void ll_turns_fini(struct ll_turns *turns);

#endif
