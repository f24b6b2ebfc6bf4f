/*
 * choose.h - whether a card is given for visits, or shared by its own time slices (control/share/regime.h).
 *
 * Some mixes are not measured. Programs that are all clients of MPS run at the same time: slices. Where classes differ,
 * those beneath are held for a part of the time (classes.h), and slices serve who is not; several of one class that
 * share the card without another are visited while one of them waits for each of its launches. So are jobs if one of
 * them works on several cards together (gang.h). And it is given for visits while a program is new, until it is known
 * how it launches, LL_SHARE_NEW_NS at most: its kernels are timed then while nobody else works, which accounts and caps
 * need.
 */
#ifndef LOADLINE_DAEMON_SHARE_CHOOSE_H
#define LOADLINE_DAEMON_SHARE_CHOOSE_H

#include "daemon/share/card.h"

#define LL_SHARE_NEW_NS UINT64_C(100000000)

/* Looks how the jobs get on, and chooses. To be called when something has changed, and at the time that it returns;
 * UINT64_MAX: when something changes. *ret_is_new: the choice is another one: all claims are to be looked at. */
uint64_t ll_share_choose(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new);

/* Whether the card is given for visits now. False if nobody wants the card. */
bool ll_share_needs_visits(const struct ll_share_card *card, uint64_t now_ns);

/* How the card is shared, for people. And as measured: the progress by visits, in permille of that by slices; 0: it is
 * not known. */
enum ll_sharing ll_share_sharing(const struct ll_share_card *card, uint64_t now_ns);
unsigned ll_share_visits_permille(const struct ll_share_card *card);

/* Whether it would be if that claim, which wants nothing now, wanted the card. */
bool ll_share_would_need_visits(const struct ll_share_claim *claim, uint64_t now_ns);

#endif
