/*
 * windows.h - divides the time of a card into windows, so that programs get exactly their caps or weights.
 *
 * A program with a window is on the card for a part of each period, and off it for the rest (slices/groups.h). While it
 * is on, nobody else is: then its part of the time is its part of the card, whatever the card's time slices do. Jobs
 * without a window of their own share what the windows leave.
 *
 * The parts are those of weighted max-min fairness: each job gets its weight's part, but no more than its cap. If the
 * caps are more than the card together, all jobs at their caps shrink in proportion to their weights.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_SHARE_WINDOWS_H
#define LOADLINE_RULES_SHARE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each window costs two calls of the driver for each program, and one change of context. With 20 ms for each window, a
 * card has at most 100 calls a second, and loses 1 % to changes. */
#define LL_WINDOWS_EACH_NS UINT64_C(20000000)
/* The shortest window: the calls that begin and end it take 1 ms together. */
#define LL_WINDOWS_LEAST_NS UINT64_C(2000000)
#define LL_WINDOWS_PERIOD_MOST_NS UINT64_C(400000000)

struct ll_windows_job {
	unsigned weight_permille; /* 1000: weight 1 */
	unsigned cap_permille;    /* 0: none */
	bool is_windowed;         /* it has a window of its own */
	/* The result, from the begin of each period. A job without a window of its own has what the windows leave. */
	uint64_t offset_ns, length_ns;
};

/* Fills in the windows. Returns the period; 0: no job has a window of its own. */
uint64_t ll_windows_divide(struct ll_windows_job *jobs, size_t count);

#endif
