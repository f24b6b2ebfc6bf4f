/*
 * advance.h - launches that are counted before they are made.
 *
 * Most programs launch the same kernel several times in a row. To count one takes a lock, a clock and a look at whose
 * turn it is: 0.3 us. So when one is counted that is like the one before it, some more are, and the thread that asked
 * lets these go as they come: one atomic word tells how many are left. Whoever has the lock takes back those that did
 * not come before it does anything else; then the thread asks again. The agent does so with each of its looks, so an
 * advance is as old as what a look finds at most. A flow has one at a time.
 */
#ifndef LOADLINE_SHIM_TIME_ADVANCE_H
#define LOADLINE_SHIM_TIME_ADVANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/time/marks.h"

/* Launches to one that is counted: what is left to gain beyond is little, and to take back more. */
enum { LL_ADVANCE_MOST = 16 };

/* Which launches are alike. */
struct ll_advance_kind {
	const struct ll_cu_context *context;
	struct ll_mark_stream stream;
	uint64_t kind;
};

/* All zero at first. */
struct ll_advance {
	_Atomic uint64_t word;       /* number << 8 | how many are left */
	struct ll_advance_kind what; /* under the lock: of the last advance */
	struct ll_advance_kind last; /* under the lock: of the launch that was asked about last */
};

/* Without the lock: whether this launch was counted already. If so it is used up. */
bool ll_advance_use(struct ll_advance *advance, const struct ll_advance_kind *what);

/* Under the lock, with none left: this thread may make so many launches of that kind, up to LL_ADVANCE_MOST. */
void ll_advance_give(struct ll_advance *advance, const struct ll_advance_kind *what, uint32_t launches);

/* Under the lock: whether a launch is like the one before it, which is when an advance is worth it. */
bool ll_advance_is_like_last(struct ll_advance *advance, const struct ll_advance_kind *what);

/* Under the lock: how many did not come, of advance->what. None is left. */
uint32_t ll_advance_take_back(struct ll_advance *advance);

#endif
