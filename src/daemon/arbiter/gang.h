/*
 * gang.h - a job on several cards is a gang: it gets its turns on all its cards together, as in gang scheduling.
 *
 * Its kernels may wait for each other across cards (collectives). If the partner of such a kernel does not run, the
 * kernel spins, occupies its card without progress, and cannot be stopped. So the turn on the job's first card decides
 * for all its cards. While the job has that turn, it has its gang's turn on the others, and goes first there.
 *
 * A job that does nothing on its first card is no gang: on its other cards it takes turns as a job on one card does. If
 * no other job on a card has the same first card, that card and the first one exchange no reports: the job's turns
 * there depend on no other card.
 *
 * The job gives the turn on the first card away only when none of its cards has work any more. Work on one card may
 * need launches on another card to complete. So if one card has no launches left and another still has N, N launches
 * may pass on the first (shim/time/flow_others.c).
 *
 * A report of a card is valid for LL_GANG_FRESH_NS. A claim that has nothing left withdraws its last report. Within
 * LL_GANG_LOOK_NS each other claim that has something left posts a report.
 */
#ifndef LOADLINE_DAEMON_ARBITER_GANG_H
#define LOADLINE_DAEMON_ARBITER_GANG_H

#include "daemon/arbiter/card.h"

/*
 * Call it for a claim that wants its card. It looks at the first card for the claim's job, and posts there how many
 * launches the claim's own card has. If the job has the turn there, it gets its gang's turn on the claim's card, and
 * other jobs with that first card lose theirs. first: the job on its first card; NULL: the job is not there, or this is
 * the first card. The result is claim->gang. Returns whether the cards have exchanged reports; then call it again
 * within LL_GANG_LOOK_NS.
 */
bool ll_share_look_first(struct ll_share_claim *claim, struct ll_share_job *first, uint64_t now_ns);

/* Whether the job works on several cards, or did recently; and whether a job on the card does. */
bool ll_share_is_in_gang(const struct ll_share_job *job, uint64_t now_ns);
bool ll_share_has_gang(const struct ll_share_card *card, uint64_t now_ns);

#endif
