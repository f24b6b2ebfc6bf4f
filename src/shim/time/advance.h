/*
 * advance.h - prepaid launches: launches that are counted before they are made.
 *
 * To count one launch takes a lock, a clock and a look at whose turn it is: 0.3 us. Most programs launch the same
 * kernel several times in a row. So when a launch is counted that is like the one before it, some more of them are
 * counted with it, and the thread lets these pass as they come. One atomic word tells how many are left. Whoever takes
 * the lock first takes back those that did not come. The agent does so at each of its looks, so prepaid launches are as
 * old as its last look at most. A flow has prepaid launches of one kind at a time.
 */
#ifndef LOADLINE_SHIM_TIME_ADVANCE_H
#define LOADLINE_SHIM_TIME_ADVANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/time/timing.h"

/* Prepaid launches to one that is counted. With more of them little more is gained, and more has to be taken back. */
enum { LL_ADVANCE_MOST = 16 };

/* Which launches are alike. */
struct ll_advance_kind {
	const struct ll_cu_context *context;
	struct ll_timing_stream stream;
	uint64_t kind;
};

/* All zero at first. */
struct ll_advance {
	_Atomic uint64_t word;       /* number << 8 | how many are left */
	struct ll_advance_kind what; /* under the lock: of the prepaid launches */
	struct ll_advance_kind last; /* under the lock: of the launch that was asked about last */
};

/* Without the lock. Whether this launch is prepaid; then one less is left. */
bool ll_advance_use(struct ll_advance *advance, const struct ll_advance_kind *what);

/* Under the lock, with none left. Prepays so many launches of that kind, LL_ADVANCE_MOST at most, for the calling
 * thread. */
void ll_advance_give(struct ll_advance *advance, const struct ll_advance_kind *what, uint32_t launches);

/* Under the lock. Whether a launch is like the one before it: then it is worth to prepay more of them. */
bool ll_advance_is_like_last(struct ll_advance *advance, const struct ll_advance_kind *what);

/* Under the lock. Returns how many launches of advance->what did not come. None is left. */
uint32_t ll_advance_take_back(struct ll_advance *advance);

#endif
