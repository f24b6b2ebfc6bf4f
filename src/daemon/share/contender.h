/*
 * contender.h - reads in a card's books which claims want to launch.
 *
 * A contender is a claim that has launches to make (control/visits.h). Nothing here changes what the books say.
 */
#ifndef LOADLINE_DAEMON_SHARE_CONTENDER_H
#define LOADLINE_DAEMON_SHARE_CONTENDER_H

#include "daemon/share/card.h"

/* What one pass over the claims of a card finds, for one of them. The arrays are the card's: the next pass writes them
 * anew. */
struct ll_share_scan {
	/* the contenders of other jobs, without unresponsive ones, and the claim of each */
	const struct ll_contender *contenders;
	struct ll_share_claim *const *claims;
	size_t count;
	/* of the job's other processes, without unresponsive ones: the work that the card still has of them, and
	 * whether one that wants the card has work queued */
	uint64_t siblings_queued_ns;
	bool has_busy_sibling;
};

/* False: the claim wants nothing. */
bool ll_share_read(const struct ll_share_claim *claim, uint64_t now_ns, struct ll_contender *ret_contender);

/* Reads the card for a claim of the job. except: that claim; NULL: for the job, whose claims are all siblings. */
void ll_share_scan(const struct ll_share_job *job, const struct ll_share_claim *except, uint64_t now_ns,
		   struct ll_share_scan *ret_scan);

/* Whether a job of a higher class is on the card, even if it wants nothing now. Its next launch shall not find more
 * queued than the bound, which an open gate does not keep. */
bool ll_share_has_superior(const struct ll_share_job *job, uint64_t now_ns);

/*
 * Counts the jobs among the contenders that have at least least_ns of work queued. The card serves them in time slices
 * if they have more than is left of a turn when it is given away (LL_VISIT_DRAINED_NS). To the card all clients of MPS
 * are one program, and get the slices of one.
 */
unsigned ll_share_count(const struct ll_share_job *job, const struct ll_share_scan *scan, uint64_t least_ns);

/* Counts the claims whose launch goes on beyond their visit. As a rule each is of another job. */
unsigned ll_share_count_overruns(const struct ll_share_scan *scan);

/* Whether what was said at that time of another card still counts. */
bool ll_share_is_fresh(uint64_t at_ns, uint64_t now_ns);

#endif
