/*
 * overlap.h - the time for which a card worked for several jobs at once, which their accounts share.
 *
 * A job's GPU time is measured from the begin to the end of its kernels. While time slices serve several jobs, the
 * kernels of one of them wait for those of the others in between, and each job counts that time. The page of a job says
 * how long the card worked for it in each bin of time (struct ll_busy_bins). If the jobs together have more time in a
 * bin than the bin has, each of them has so much less of it, in proportion. So all accounts together never use more
 * time of a card than has passed.
 *
 * The short bins of 0.5 ms tell it exactly, and reach 32 ms back: they are read every LL_OVERLAP_FINE_MS while several
 * jobs work on a card. The long bins of 8 ms reach 2 s back. They are read once a second, and find what was reported
 * too late for the short ones.
 */
#ifndef LOADLINE_DAEMON_OVERLAP_H
#define LOADLINE_DAEMON_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

struct ll_account;

enum { LL_OVERLAP_FINE_MS = 8 };

/* The next bins to read; initially 0. */
struct ll_overlap {
	uint64_t next, next_long;
};

/* Adds to each account (shared_ns) what was counted for several jobs since the last call. Call it once a second. Work
 * that is reported later than 0.4 s after its end is not found. Returns whether several jobs work on a card, so that
 * ll_overlap_read_fine is to be called. */
bool ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns);

void ll_overlap_read_fine(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns);

#endif
