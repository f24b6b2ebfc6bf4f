/*
 * classes.h - holds the jobs of lower classes for a part of the time in which a higher class has work
 * (rules/share/lever.h).
 *
 * A job is beneath another one if its class is lower and both are on the card. If all that work beneath a higher class
 * can be taken off the card, their time slices are short (rules/share/class_slices.h), and they are taken off while
 * they are to be held; launches are made as without classes. Else a held job launches nothing, and its queued launches
 * wait on the card. A held job is no contender for the turn.
 *
 * A card on which a job works on several cards together (gang.h) holds no class: there the higher class is visited
 * first (rules/share/visits.h).
 */
#ifndef LOADLINE_DAEMON_ARBITER_CLASSES_H
#define LOADLINE_DAEMON_ARBITER_CLASSES_H

#include "daemon/arbiter/card.h"

/* Steps the levers of all classes. Call it when something has changed, and at the returned time; UINT64_MAX: only when
 * something changes. *ret_is_new is set if other jobs are held than before, so all claims must be looked at. */
uint64_t ll_share_step_classes(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new);

/* Whether a job beneath the rank wants the card, or did recently. */
bool ll_share_has_beneath(const struct ll_share_card *card, unsigned rank, uint64_t now_ns);

/* Whether the job or one of its class is to make no progress now, because a higher class has work. */
bool ll_share_is_stopped(const struct ll_share_job *job);

/* Whether the job wants the card, or did recently. */
bool ll_share_wanted_lately(const struct ll_share_job *job, uint64_t now_ns);

/* Whether the job's launches are held for a higher class now. False if the job is taken off the card instead. */
bool ll_share_is_held(const struct ll_share_job *job);

/* Whether jobs of several classes want the card, or did recently. */
bool ll_share_has_classes(const struct ll_share_card *card, uint64_t now_ns);

/* held_permille: for which part of the time with work of this job the jobs beneath it are held. slowdown_permille: its
 * measured slowdown beside them. 0: no job is beneath it, or the value is not known. */
unsigned ll_share_held_permille(const struct ll_share_job *job);
unsigned ll_share_slowdown_permille(const struct ll_share_job *job);

#endif
