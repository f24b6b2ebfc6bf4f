/*
 * choose.h - chooses between visits and time slices for a card (rules/share/regime.h).
 *
 * Some mixes are not measured, because a rule decides:
 *
 *   - Programs that are all clients of MPS run at the same time: slices.
 *   - If classes differ, lower classes are held for a part of the time (classes.h), and slices serve the jobs that are
 *     not held. Several jobs of one class that share the card without another class get visits while one of them waits
 *     for each of its launches.
 *   - If a job works on several cards together (gang.h): visits.
 *   - While a program is new and its launch mode is not known, for LL_SHARE_NEW_NS at most: visits. Its kernels are
 * then timed while no other program runs, which accounts and caps need.
 */
#ifndef LOADLINE_DAEMON_ARBITER_CHOOSE_H
#define LOADLINE_DAEMON_ARBITER_CHOOSE_H

#include "daemon/arbiter/card.h"

#define LL_SHARE_NEW_NS UINT64_C(100000000)

/* Makes the choice. Call it when something has changed, and at the returned time; UINT64_MAX: only when something
 * changes. *ret_is_new: the choice has changed, so all claims must be looked at. */
uint64_t ll_share_choose(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new);

/* Whether the card is shared by visits now. False if no claim wants the card. */
bool ll_share_needs_visits(const struct ll_share_card *card, uint64_t now_ns);

/* sharing: how the card is shared, for `loadline status`. visits_permille: the measured progress by visits, in permille
 * of that by slices; 0: not known. */
enum ll_sharing ll_share_sharing(const struct ll_share_card *card, uint64_t now_ns);
unsigned ll_share_visits_permille(const struct ll_share_card *card);

/* Whether the card would be shared by visits if that claim, which wants nothing now, wanted the card. */
bool ll_share_would_need_visits(const struct ll_share_claim *claim, uint64_t now_ns);

#endif
