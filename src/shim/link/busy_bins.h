/*
 * busy_bins.h - counts how long the card worked for a job, in bins of time (struct ll_busy_bins of the page).
 *
 * Processes of a job may work at the same time. A bin holds no more than its own length, so that time counts once.
 * There are short bins for the last 0.3 s, and long ones for what is reported late.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_LINK_BUSY_BINS_H
#define LOADLINE_SHIM_LINK_BUSY_BINS_H

#include <stdint.h>

#include "protocol/page.h"

#define LL_BUSY_BIN_NS UINT64_C(500000)
#define LL_BUSY_LONG_BIN_NS UINT64_C(8000000)

/*
 * Counts that the card worked from start_ns to end_ns. Returns what of it counts: the rest was counted before, for
 * another process of the job. Any thread of any process may call, at the same time too.
 */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

#endif
