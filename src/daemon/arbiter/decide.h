/*
 * decide.h - decides which claim has the turn on a card.
 *
 * A claim that has launches to make wants the card. Usually every gate is open, and the time slices of the card serve
 * all claims. If visits serve the programs better, the card is shared by visits (choose.h, rules/share/visits.h). Then
 * one claim has the turn: the holder. Several times a millisecond, the rule checks whether the holder's visit is over,
 * and who is next. A claim of a higher class takes the turn at its next look. Any claim takes the turn if the holder is
 * gone or unresponsive.
 *
 * Before a holder gives the turn away, the card completes its queue, for LL_VISIT_DRAIN_NS at most. Then the next
 * holder gets the turn. If launches of the former holder still run, the card runs both in time slices, and the overrun
 * is charged.
 *
 * The turn belongs to the job of the holder. All processes of the job may launch in it, and share the card as they
 * would alone. Otherwise a kernel that waits for a kernel of a sibling (a collective) would spin until the sibling's
 * turn.
 *
 * A gate is open while its program needs no decision. The conditions are: the program has no cap; no higher class is on
 * the card; and either nobody else wants the card, or nobody who wants it needs visits. Clients of MPS do not need
 * visits among themselves.
 */
#ifndef LOADLINE_DAEMON_ARBITER_DECIDE_H
#define LOADLINE_DAEMON_ARBITER_DECIDE_H

#include "daemon/arbiter/card.h"

/* ll_share_want: the claim begins to want the card. ll_share_rest: it stops wanting the card. claim->said is already
 * new. If a job comes back while other jobs want the card, it gets credit for at most LL_VISIT_LAG_NS of its pause. If
 * no other job wants the card, its virtual time is at most that much behind all jobs of the card. If a claim that stops
 * has the turn, the turn goes to another process of its job, else to the best other contender, else to nobody. */
void ll_share_want(struct ll_share_claim *claim, uint64_t now_ns);
void ll_share_rest(struct ll_share_claim *claim, uint64_t now_ns);

/* The claim was unresponsive, and has posted. Its job gets no credit for that time. */
void ll_share_return(struct ll_share_claim *claim, uint64_t now_ns);

/* Takes, keeps or gives the turn, opens or shuts the word of the job, and sets claim->look: what the claim may do.
 * While other claims wait, call it for the holder every 1 ms, and for the others every 10 ms. */
void ll_share_look(struct ll_share_claim *claim, uint64_t now_ns);

/* Whether the gate of a claim at rest may be opened without a decision as soon as the claim wants the card. */
bool ll_share_is_free(const struct ll_share_claim *claim, uint64_t now_ns);

#endif
