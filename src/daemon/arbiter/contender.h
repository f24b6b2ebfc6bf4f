/*
 * contender.h - finds the claims of a card that want to launch.
 *
 * A contender is a claim that has launches to make (rules/share/visits.h). No function here changes a job or a claim.
 */
#ifndef LOADLINE_DAEMON_ARBITER_CONTENDER_H
#define LOADLINE_DAEMON_ARBITER_CONTENDER_H

#include "daemon/arbiter/card.h"

/* The result of one pass over the claims of a card, made for one of them. The arrays belong to the card: the next pass
 * overwrites them. */
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

/* Describes the claim as a contender. False: the claim wants nothing. */
bool ll_share_read(const struct ll_share_claim *claim, uint64_t now_ns, struct ll_contender *ret_contender);

/* Makes the pass for a claim of the job. except: that claim; NULL: for the whole job, so all its claims are siblings.
 */
void ll_share_scan_card(const struct ll_share_job *job, const struct ll_share_claim *except, uint64_t now_ns,
			struct ll_share_scan *ret_scan);

/* Whether a job of a higher class is on the card, even if it wants nothing now. Then the queue of this job must stay
 * within its bound, and an open gate does not ensure that. */
bool ll_share_has_superior(const struct ll_share_job *job, uint64_t now_ns);

/*
 * Counts the jobs among the contenders that have at least least_ns of work queued. The card serves them in time slices
 * if they have more than LL_VISIT_DRAINED_NS, which is the most that is queued when a turn is given away. All clients
 * of MPS count as one program, because the card gives them the slices of one.
 */
unsigned ll_share_count(const struct ll_share_job *job, const struct ll_share_scan *scan, uint64_t least_ns);

/* Counts the jobs among the contenders that share what the windows leave, as this job does. */
unsigned ll_share_count_unwindowed(const struct ll_share_job *job, const struct ll_share_scan *scan);

/* Counts the claims whose launch still runs after their visit. As a rule each is of another job. */
unsigned ll_share_count_overruns(const struct ll_share_scan *scan);

/* Whether a report about another card, made at that time, still counts. */
bool ll_share_is_fresh(uint64_t at_ns, uint64_t now_ns);

#endif
