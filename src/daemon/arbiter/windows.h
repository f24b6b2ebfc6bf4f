/*
 * windows.h - when a card is divided into windows (rules/share/windows.h), and who has which.
 *
 * That is so while a job would exceed its cap. Every job that works on the card must be one that can be taken off it:
 * the library of each of its processes has said so. Jobs on several cards and clients of MPS cannot; then the
 * cap holds the launches of the job, as on a card without that lever. A job has no window of its own as long as it does
 * not reach its cap.
 */
#ifndef LOADLINE_DAEMON_ARBITER_WINDOWS_H
#define LOADLINE_DAEMON_ARBITER_WINDOWS_H

#include "daemon/arbiter/card.h"

/* How often it is looked whether a job reaches its cap. */
#define LL_SHARE_WINDOWS_LOOK_NS UINT64_C(250000000)

/* Sets `time` of each job, and has_windows of the card. Returns when to call it again; UINT64_MAX: at the next
 * decision, which is soon while a job with a cap has work. *ret_is_new: orders have changed; it is not set to false. */
uint64_t ll_share_step_windows(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new);

#endif
