/*
 * prepaid.h - prepaid launches: launches that are counted before they are made.
 *
 * To count one launch, a thread acquires a lock, reads a clock and checks the turn. This takes 0.3 us. Most programs
 * launch the same kernel several times in a row. So if a launch is like the launch before it, the thread counts some
 * more launches in advance. When these launches come, they pass at once. One atomic word holds how many are left. The
 * next thread that acquires the lock uncounts the launches that did not come. The agent does this at each of its looks,
 * so prepaid launches are not older than its last look. A flow has prepaid launches of one kernel at a time.
 */
#ifndef LOADLINE_SHIM_TIME_PREPAID_H
#define LOADLINE_SHIM_TIME_PREPAID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/time/timing.h"

/* The most launches that one counted launch prepays. A larger number gains little, and more launches would have to be
 * uncounted. */
enum { LL_PREPAID_MOST = 16 };

/* Two launches are alike if all members are equal. */
struct ll_prepaid_kernel {
	const struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t kernel_key;
};

/* All zero at first. */
struct ll_prepaid {
	_Atomic uint64_t word;         /* sequence number << 8 | launches left */
	struct ll_prepaid_kernel what; /* the prepaid launches' kernel; under the lock */
	struct ll_prepaid_kernel last; /* kernel of the last call of ll_prepaid_is_like_last; under the lock */
};

/* Returns whether this launch is prepaid. If so, subtracts it from the launches left. Needs no lock. */
bool ll_prepaid_use(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Prepays a number of launches of the kernel, at most LL_PREPAID_MOST, for the calling thread. Call it under the lock
 * when no prepaid launches are left. */
void ll_prepaid_give(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what, uint32_t launches);

/* Returns whether a launch is like the launch of the last call. If it is, the caller prepays more. Under the lock. */
bool ll_prepaid_is_like_last(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Removes the prepaid launches that are left, and returns their number. Under the lock. */
uint32_t ll_prepaid_return(struct ll_prepaid *prepaid);

#endif
