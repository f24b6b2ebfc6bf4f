/*
 * busy_bins.h - counts the card's work for a job in bins of time (struct ll_busy_bins of the page).
 *
 * Several processes of a job may work at the same time. A bin holds at most its own length, so such time counts once.
 * There are short bins for the last 0.3 s, and long bins for work that is reported later.
 *
 * Only files of this folder include it.
 */
#ifndef LOADLINE_SHIM_LINK_BUSY_BINS_H
#define LOADLINE_SHIM_LINK_BUSY_BINS_H

#include <stdint.h>

#include "protocol/page.h"

/*
 * Adds work of the card from start_ns to end_ns. Returns the part that was not counted before for another process of
 * the job. Threads of several processes may call it at the same time.
 */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

#endif
