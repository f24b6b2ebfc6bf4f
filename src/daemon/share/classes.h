/*
 * classes.h - those beneath a higher class are held for a part of the time in which it has work
 * (control/share/lever.h).
 *
 * A job is beneath another one if its class is lower and both are on the card. While it is held it launches nothing,
 * and what it has launched waits on the card. Who is held counts for nobody's turn.
 *
 * A card on which a job works on several cards together (gang.h) has no such parts: there the higher class is visited
 * first (control/visits.h).
 */
#ifndef LOADLINE_DAEMON_SHARE_CLASSES_H
#define LOADLINE_DAEMON_SHARE_CLASSES_H

#include "daemon/share/card.h"

/* Sees how the classes get on. To be called when something has changed, and at the time that it returns; UINT64_MAX:
 * when something changes. *ret_is_new: others are held than before: all claims are to be looked at. */
uint64_t ll_share_step_classes(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new);

/* Whether a job beneath the rank wants the card, or did of late. */
bool ll_share_has_beneath(const struct ll_share_card *card, unsigned rank, uint64_t now_ns);

/* Whether the job is held for a higher class now. */
bool ll_share_is_held(const struct ll_share_job *job);

/* Whether jobs of several classes want the card, or did of late. */
bool ll_share_has_classes(const struct ll_share_card *card, uint64_t now_ns);

/* How the jobs beneath this one are held for it: the part of the time in which it has work, and how many times as slow
 * as alone it is by what was seen; 0: nobody is beneath it, or it is not known. */
unsigned ll_share_held_permille(const struct ll_share_job *job);
unsigned ll_share_slowdown_permille(const struct ll_share_job *job);

#endif
