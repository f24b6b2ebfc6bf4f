/*
 * prepaid.h - prepaid launches: launches that are counted before they are made.
 *
 * To count one launch takes a lock, a clock and a look at whose turn it is: 0.3 us. Most programs launch the same
 * kernel several times in a row. So if a counted launch is like the one before it, some more launches are counted with
 * it, and the thread lets these pass as they come. One atomic word tells how many are left. The next thread that takes
 * the lock takes back those that did not come. The agent does so at each of its looks, so prepaid launches are no older
 * than its last look. A flow has prepaid launches of one kernel at a time.
 */
#ifndef LOADLINE_SHIM_TIME_PREPAID_H
#define LOADLINE_SHIM_TIME_PREPAID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/time/timing.h"

/* Prepaid launches for one that is counted. More of them gain little, and more must be taken back. */
enum { LL_PREPAID_MOST = 16 };

/* Launches are alike if all of this is equal. */
struct ll_prepaid_kernel {
	const struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t kernel_key;
};

/* All zero at first. */
struct ll_prepaid {
	_Atomic uint64_t word;         /* number << 8 | how many are left */
	struct ll_prepaid_kernel what; /* of the prepaid launches; under the lock */
	struct ll_prepaid_kernel last; /* of the last launch in ll_prepaid_is_like_last; under the lock */
};

/* Whether this launch is prepaid. Then one less is left. Needs no lock. */
bool ll_prepaid_use(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Prepays so many launches of that kernel, LL_PREPAID_MOST at most, for the calling thread. Under the lock, with none
 * left. */
void ll_prepaid_give(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what, uint32_t launches);

/* Whether a launch is like the one before it. If it is, prepay some more. Under the lock. */
bool ll_prepaid_is_like_last(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what);

/* Returns how many of the prepaid launches did not come. None is left. Under the lock. */
uint32_t ll_prepaid_return(struct ll_prepaid *prepaid);

#endif
