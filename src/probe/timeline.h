/*
 * timeline.h - who was on the card when: each party's time on the card as spans, and what follows from them.
 *
 * A party is whatever queues kernels on its own: a stream, a thread or a process. A span is time in which a kernel of
 * it was on the card without interruption; kernels that follow each other at once are one span. Pure: accounts of
 * kernels in, numbers out.
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
	bool is_cut; /* it ended with blocks that were interrupted, and went on later */
};

/* One party's. In order, none touches the next. */
struct ll_lane {
	struct ll_span *spans;
	size_t count;
};

struct ll_timeline {
	struct ll_lane lanes[LL_PROBE_PARTIES];
	size_t lane_count;
};

/* Kernels in any order; -EINVAL: a kernel's party is not below lane_count. -ENOMEM. */
int ll_timeline_make(const struct ll_probe_kernel *kernels, size_t count, size_t lane_count,
		     struct ll_timeline *ret_timeline);
void ll_timeline_fini(struct ll_timeline *timeline);

/* From the first start to the last end; 0 for nothing. */
uint64_t ll_timeline_window_ns(const struct ll_timeline *timeline);

/* Time in which at least one party was on the card. */
uint64_t ll_timeline_busy_ns(const struct ll_timeline *timeline);

/* The longest time within the window in which none was: much more than a switch means that somebody else had the card,
 * or that the host was slow to launch. */
uint64_t ll_timeline_idle_ns(const struct ll_timeline *timeline);

/*
 * How much of what could run at once did, 0 to 1: time on the card of all, less the time in which any was on it, of the
 * same less the longest party's. Two parties: the part of the shorter one's time in which the other was there, too.
 * 0 for a party alone.
 */
double ll_timeline_overlap(const struct ll_timeline *timeline);

/* A party's part of all parties' time on the card while all of them wanted it: from the first start of any until the
 * first is through. 0 to 1. */
double ll_timeline_share(const struct ll_timeline *timeline, size_t lane);

/* What the parties' taking turns looks like. Meaningless for parties that overlap. */
struct ll_turns {
	size_t cuts;                   /* blocks interrupted while another party got the card */
	size_t handovers;              /* from one party to another */
	struct ll_samples slices_ns;   /* lengths of spans between two switches, the second of which cut it short */
	struct ll_samples switches_ns; /* from the end of one party's span to the start of another's */
};

/* Adds to the samples and counts that are there. */
void ll_turns_add(struct ll_turns *turns, const struct ll_timeline *timeline);
void ll_turns_fini(struct ll_turns *turns);

#endif
