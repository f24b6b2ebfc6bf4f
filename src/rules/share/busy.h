/*
 * busy.h - how long a card worked for one program: the union of intervals over streams, not their sum.
 *
 * Intervals are added as completions are found. A long interval of one stream may be added after many later ones of
 * another stream that lie within it. So the last LL_BUSY_SPANS intervals are kept. If there are more, the oldest ones
 * are joined in pairs, and only their sum is known. An interval that is added later over such a pair counts as
 * overlapping in proportion to how busy the pair was.
 *
 * Pure arithmetic. All times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_BUSY_H
#define LOADLINE_RULES_SHARE_BUSY_H

#include <stdint.h>

enum { LL_BUSY_SPANS = 64 };

struct ll_busy_span {
	uint64_t start_ns, end_ns;
	uint64_t busy_ns; /* the busy part of start..end */
};

/* Starts zeroed. */
struct ll_busy {
	struct ll_busy_span spans[LL_BUSY_SPANS]; /* in order, without overlaps */
	uint32_t count;
};

/* Adds start..end, and returns the part of it that was not yet counted. */
uint64_t ll_busy_add(struct ll_busy *busy, uint64_t start_ns, uint64_t end_ns);

#endif
