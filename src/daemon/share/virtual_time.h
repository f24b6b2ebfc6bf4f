/*
 * virtual_time.h - how much of a job's past counts when the card is shared.
 *
 * A job's virtual time is the GPU time that it was charged, divided by its weight. Among jobs of one class the one with
 * the least virtual time has the card next (control/visits.h). Time in which a job did not compete with others, or did
 * not use its share, must not count: the job would be kept from the card for as long, or would keep the others from it.
 *
 * `scan` holds the other jobs that want the card.
 */
#ifndef LOADLINE_DAEMON_SHARE_VIRTUAL_TIME_H
#define LOADLINE_DAEMON_SHARE_VIRTUAL_TIME_H

#include "daemon/share/contender.h"

/* The job comes back from a pause. It is at most LL_VISIT_LAG_NS of its own time behind the others of its class that
 * want the card. If there are none, the past counts for nobody: it is at most as much behind all others of its class.
 */
void ll_share_come_back(struct ll_share_job *job, const struct ll_share_scan *scan);

/* The job does not use its share: it has no work, or its cap holds it back. It gathers no credit: from here on it is at
 * most LL_VISIT_LAG_NS of its own time behind the others of its class. */
void ll_share_limit_credit(struct ll_share_job *job, const struct ll_share_scan *scan);

/* Time slices serve all alike, and what is charged there are estimates. The job gets at most LL_VISIT_LAG_NS of its own
 * time ahead of the others, so that it does not wait for them when visits begin. */
void ll_share_forgive(struct ll_share_job *job, const struct ll_share_scan *scan);

/* Visits begin, and what was before counts for nobody: all jobs that want the card have the same virtual time. */
void ll_share_even_out(struct ll_share_card *card);

/* The job has come into another class. What it had or lacked in the old class does not count: it is at most
 * LL_VISIT_LAG_NS of its own time ahead of the others of its class, or behind them. */
void ll_share_enter_class(struct ll_share_job *job, uint64_t now_ns);

#endif
