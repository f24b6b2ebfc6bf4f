/*
 * busy.h - how long a card worked for somebody: the union of intervals over streams, not their sum.
 *
 * Intervals come nearly in order of their ends, as completions are found. What lies before the furthest end so far is
 * counted as known already, so an interval that is told late, after a later one of another stream, may be
 * counted short, never twice.
 */
#ifndef LOADLINE_CONTROL_BUSY_H
#define LOADLINE_CONTROL_BUSY_H

#include <stdint.h>

struct ll_busy {
	uint64_t until_ns; /* the furthest end; 0 at first */
};

/* The part of start..end that was not yet counted. One clock for all calls. */
uint64_t ll_busy_add(struct ll_busy *busy, uint64_t start_ns, uint64_t end_ns);

#endif
