/*
 * how_shared.h - tells how each job shares the card, and why, for `loadline status`.
 *
 * Nothing here decides. The results of a measurement are kept in each job, because the rule keeps them only for the mix
 * as a whole.
 */
#ifndef LOADLINE_DAEMON_ARBITER_HOW_SHARED_H
#define LOADLINE_DAEMON_ARBITER_HOW_SHARED_H

#include "daemon/arbiter/card.h"

/* A job is capped if its cap prevented a launch within this time. */
#define LL_SHARE_CAPPED_NS UINT64_C(1000000000)

struct ll_share_how {
	enum ll_shared shared;
	bool is_beneath; /* a job of a higher class is on the card */
	bool is_capped;  /* its cap prevented a launch within LL_SHARE_CAPPED_NS */
	bool is_forced;  /* a command decided how the card is shared */
	/* Measured beside the present jobs: its speed by slices and by visits, in permille of its speed while it is
	 * visited, and the time of the measurement. 0: not measured. */
	unsigned slices_permille, visits_permille;
	uint64_t measured_ns;
};

/* Keeps the results of a measurement that has just ended, in each of these jobs. */
void ll_share_note_verdict(struct ll_share_card *card, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns);

struct ll_share_how ll_share_how_shared(const struct ll_share_job *job, uint64_t now_ns);

#endif
