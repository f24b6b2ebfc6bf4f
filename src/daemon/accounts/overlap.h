/*
 * overlap.h - the time for which a card had work of several jobs at once, which their accounts share.
 *
 * While time slices serve several jobs, each of their programs counts its own part (shim/time/shortest.h). By space
 * (MPS) the card runs kernels of several jobs at the same time, and each job counts all of it. The page of a job says
 * at which moments it had work (struct ll_work_samples, 250 us apart). A moment at which several jobs by space had work
 * counts for each of them in equal parts.
 *
 * All accounts together never use more time of a card than has passed since the first of them came: what is above is
 * taken off in proportion to what each has reported. Programs write these counters, and may write anything.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_OVERLAP_H
#define LOADLINE_DAEMON_ACCOUNTS_OVERLAP_H

#include <stdint.h>

#include "accounts/batch.h"

struct ll_account;

enum { LL_OVERLAP_CARDS = 128 }; /* the one that was not looked at for longest makes room */

struct ll_overlap_card {
	char uuid[LL_USE_CARD_SIZE];
	uint64_t looked_ns, room_ns; /* room: time that has passed and nobody has used */
};

/* Initially 0. next: the next word of samples to read. */
struct ll_overlap {
	uint64_t next;
	struct ll_overlap_card cards[LL_OVERLAP_CARDS];
};

/* Adds to each account (shared_ns) what it counted beyond its own part since the last call. Call it once a second: the
 * samples reach 1.9 s back. Those that are reported later than 0.4 s after their time are not found to be shared. */
void ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns);

#endif
