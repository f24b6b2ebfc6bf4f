/*
 * virtual_time.h - limits how much of a job's past counts when the card is shared.
 *
 * A job's virtual time is the GPU time that it was charged, divided by its weight. Among jobs of one class the one with
 * the least virtual time has the card next (rules/share/visits.h). Time in which a job did not compete with
 * others, or did not use its share, must not count. Otherwise the job would keep the others from the card for as long
 * afterwards, or they would keep the job from it.
 *
 * `scan` holds the other jobs that want the card.
 */
#ifndef LOADLINE_DAEMON_ARBITER_VIRTUAL_TIME_H
#define LOADLINE_DAEMON_ARBITER_VIRTUAL_TIME_H

#include "daemon/arbiter/contender.h"

/* The job comes back from a pause. Its virtual time is set to at most LL_VISIT_LAG_NS of its own time behind the other
 * jobs of its class that want the card; if there are none, behind all other jobs of its class. */
void ll_share_come_back(struct ll_share_job *job, const struct ll_share_scan *scan);

/* The job does not use its share: it has no work, or its cap holds it back. It gets no credit for that: its virtual
 * time is at most LL_VISIT_LAG_NS of its own time behind the others of its class. */
void ll_share_limit_credit(struct ll_share_job *job, const struct ll_share_scan *scan);

/* Under time slices all jobs get the same time, and the charges are estimates. The virtual time of the job is set to at
 * most LL_VISIT_LAG_NS of its own time ahead of the others, so that it does not wait for them when visits begin. */
void ll_share_forgive(struct ll_share_job *job, const struct ll_share_scan *scan);

/* Visits begin: gives all jobs that want the card the same virtual time. */
void ll_share_even_out(struct ll_share_card *card);

/* The job has come into another class. Its use in the old class does not count: its virtual time is at most
 * LL_VISIT_LAG_NS of its own time ahead of the others of the new class, or behind them. */
void ll_share_enter_class(struct ll_share_job *job, uint64_t now_ns);

#endif
