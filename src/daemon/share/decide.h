/*
 * decide.h - whose turn it is on a card.
 *
 * A claim that has launches to make wants the card. As a rule every gate is open, and the card's own time slices serve
 * all who want it. If that serves the programs better, the card is given for visits (choose.h, control/visits.h). Then
 * one claim has the turn, the holder. The holder is looked at several times a millisecond: whether its visit is over,
 * and who is next. A higher class takes the turn when it is looked at. Any claim takes it if the holder is gone or
 * unresponsive.
 *
 * A holder that gives way first lets the card finish what it has queued, for LL_VISIT_DRAIN_NS at most. After that the
 * next holder is let in, the card runs both in time slices, and the overrun is charged.
 *
 * The turn is the job's. All its processes on the card may launch in it, and share the card as they would alone.
 * Otherwise kernels that wait for each other (collectives) would spin for a turn that is not theirs.
 *
 * A gate is open while its program has nothing to ask: it has no cap, no higher class is on the card, and either nobody
 * else wants the card or nobody who wants it needs visits. Clients of MPS among themselves need none.
 */
#ifndef LOADLINE_DAEMON_SHARE_DECIDE_H
#define LOADLINE_DAEMON_SHARE_DECIDE_H

#include "daemon/share/card.h"

/* The claim comes to want the card, or has ended that; what it said is so already. A job that comes back while others
 * want the card has at most LL_VISIT_LAG_NS of its pause made up for. A job that comes back while nobody wants the card
 * begins at most that much behind all others of the card: what jobs had before counts no more. If a claim that ends has
 * the turn, another process of its job goes on with it, or the best of the others gets it, or nobody has it. */
void ll_share_want(struct ll_share_claim *claim, uint64_t now_ns);
void ll_share_rest(struct ll_share_claim *claim, uint64_t now_ns);

/* The claim was unresponsive, and has posted. It could not use the card, and its job gathers no credit by that. */
void ll_share_return(struct ll_share_claim *claim, uint64_t now_ns);

/* Takes, keeps or gives the turn, opens or shuts the job's word on the card, and says in claim->look what the claim may
 * do. While others wait, the holder is to be looked at each ms, the others each 10 ms. */
void ll_share_look(struct ll_share_claim *claim, uint64_t now_ns);

/* Whether the gate of a claim at rest may be opened as soon as it begins to want the card: it would be open then
 * without a decision. */
bool ll_share_is_free(const struct ll_share_claim *claim, uint64_t now_ns);

#endif
