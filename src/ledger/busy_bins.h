/*
 * busy_bins.h - how long a card worked for somebody, told by several processes that know nothing of each other.
 *
 * Each tells intervals, in any order and some of them of the same moments. Time is cut in bins, and a bin counts no
 * more than its own length: so processes that the card runs in turn, of which each sees the whole time pass, count
 * once. What lies further back than all bins reach is counted as told. A bin is one word: any number of threads and
 * processes, and SIGKILL at any moment. Of a stretch that is longer than these bins reach, a kernel of many
 * milliseconds, the older part is looked up in longer bins, in which all that is counted is written too.
 */
#ifndef LOADLINE_LEDGER_BUSY_BINS_H
#define LOADLINE_LEDGER_BUSY_BINS_H

#include <stdatomic.h>
#include <stdint.h>

enum { LL_BUSY_BINS = 64, LL_BUSY_LONG_BINS = 256 };
#define LL_BUSY_BIN_NS UINT64_C(500000)
#define LL_BUSY_LONG_BIN_NS UINT64_C(8000000)

/* All zero at first. */
struct ll_busy_bins {
	_Atomic uint64_t words[LL_BUSY_BINS]; /* number of the bin << 24 | ns counted in it */
	_Atomic uint64_t long_words[LL_BUSY_LONG_BINS];
};

/* The part of start..end that was not counted yet. One clock for all calls. */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

#endif
