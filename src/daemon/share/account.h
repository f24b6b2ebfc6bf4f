/*
 * account.h - what a job has had of a card's time, and what its cap lets it have.
 */
#ifndef LOADLINE_DAEMON_SHARE_ACCOUNT_H
#define LOADLINE_DAEMON_SHARE_ACCOUNT_H

#include "daemon/share/card.h"

/* Charges GPU time of the job: to its virtual time, and to its cap. */
void ll_share_charge(struct ll_share_job *job, uint64_t gpu_ns);

/* Returns what the cap's account holds now; negative: debt; INT64_MAX: there is no cap. Changes nothing. */
int64_t ll_share_tokens_ns(const struct ll_share_job *job, uint64_t now_ns);

/* Adds what the cap has earned since the last call, and returns the same. The account of a new cap begins empty. */
int64_t ll_share_earn(struct ll_share_job *job, uint64_t now_ns);

#endif
