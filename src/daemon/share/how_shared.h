/*
 * how_shared.h - how each job of a card is shared, and why, for people (`loadline status`).
 *
 * Nothing here decides. What a measurement found of a job is kept in the job when the rule reaches its verdict, because
 * the rule itself remembers a mix of jobs as a whole.
 */
#ifndef LOADLINE_DAEMON_SHARE_HOW_SHARED_H
#define LOADLINE_DAEMON_SHARE_HOW_SHARED_H

#include "daemon/share/card.h"

/* It wanted to launch within this time, and its cap kept it from that. */
#define LL_SHARE_CAPPED_NS UINT64_C(1000000000)

struct ll_share_how {
	enum ll_shared shared;
	bool is_beneath; /* a job of a higher class is on the card */
	bool is_capped;  /* it has used up what its cap gives it, within LL_SHARE_CAPPED_NS */
	bool is_forced;  /* a command decided how the card is shared */
	/* What was measured of it beside the jobs that are there now: its speed by slices and by visits, in permille of
	 * its speed while it is visited, and when. 0: nothing, or not that. */
	unsigned slices_permille, visits_permille;
	uint64_t measured_ns;
};

/* The rule has just reached a verdict about these jobs. */
void ll_share_note_verdict(struct ll_share_card *card, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns);

struct ll_share_how ll_share_how_shared(const struct ll_share_job *job, uint64_t now_ns);

#endif
