/*
 * time_on_card.h - the GPU time that a job has used, and the GPU time that its cap still allows.
 */
#ifndef LOADLINE_DAEMON_ARBITER_TIME_ON_CARD_H
#define LOADLINE_DAEMON_ARBITER_TIME_ON_CARD_H

#include "daemon/arbiter/card.h"

/* Adds GPU time of the job to its virtual time, and takes it from the account of its cap. */
void ll_share_charge(struct ll_share_job *job, uint64_t gpu_ns);

/* Returns the balance of the cap's account; negative: debt; INT64_MAX: there is no cap. Changes nothing. */
int64_t ll_share_tokens_ns(const struct ll_share_job *job, uint64_t now_ns);

/* Adds to the account what the cap gives for the time since the last call, and returns the balance. The account of a
 * new cap begins empty. */
int64_t ll_share_earn(struct ll_share_job *job, uint64_t now_ns);

#endif
