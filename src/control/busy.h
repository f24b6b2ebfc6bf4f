/*
 * busy.h - how long a card worked for somebody: the union of intervals over streams, not their sum.
 *
 * Intervals come as completions are found: one stream's long one may be told after many later ones of another, which
 * lie within it. So those that were told are kept, LL_BUSY_SPANS of them. Where there are more, the older ones are
 * joined in pairs, of which only the sum is known then: what is told of such a time later overlaps with it as much as
 * it was busy.
 */
#ifndef LOADLINE_CONTROL_BUSY_H
#define LOADLINE_CONTROL_BUSY_H

#include <stdint.h>

enum { LL_BUSY_SPANS = 64 };

struct ll_busy_span {
	uint64_t start_ns, end_ns;
	uint64_t busy_ns; /* of it */
};

/* All zero at first. */
struct ll_busy {
	struct ll_busy_span spans[LL_BUSY_SPANS]; /* apart from each other, in order */
	uint32_t count;
};

/* The part of start..end that was not yet counted. One clock for all calls. */
uint64_t ll_busy_add(struct ll_busy *busy, uint64_t start_ns, uint64_t end_ns);

#endif
