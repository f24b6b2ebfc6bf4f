/*
 * slices.h - which time slices the contexts of jobs have on a card, where the card takes programs off.
 *
 *   - Jobs of one class have slices in proportion to their weights, and each process of a job its part of them. The
 *     least has LL_SLICES_LEAST_US, the longest LL_SLICES_MOST_US at most.
 *   - Equal jobs have the driver's slices. While each always has work, and all get the same, they have
 *     LL_SLICES_MOST_US: a change of the context takes some 0.2 ms.
 *   - Beneath a higher class they are short (rules/share/class_slices.h). A low job that is alone has a short one
 *     already.
 *
 * Programs that always have work get what their weights say. Who waits gives the rest of its slice away. That a card
 * keeps its own slices whatever is set is noticed by what programs got that launch ahead and fill it. Then weights are
 * a reason to measure visits (choose.h).
 */
#ifndef LOADLINE_DAEMON_ARBITER_SLICES_H
#define LOADLINE_DAEMON_ARBITER_SLICES_H

#include "daemon/arbiter/card.h"

#define LL_SLICES_LEAST_US 2000u
#define LL_SLICES_MOST_US 20000u

/* Orders the slices of all jobs. is_without: none are ordered. Returns when the orders must be looked at again;
 * *ret_is_new is set if one has changed. */
uint64_t ll_share_order_slices(struct ll_share_card *card, bool is_without, uint64_t now_ns, bool *ret_is_new);

#endif
