/*
 * decide.h - whose turn it is on a card. Private to src/ledger.
 *
 * Each function reads the page (contender.h), lets the rules of src/control decide, and has act.h and virtual_time.h
 * write. It decides for one claim, which need not be the caller's: a process calls it for its own claims today, and one
 * process could call it for the claims of all processes. What the claim's owner wants is in the page by then, and in
 * `turn` (turn.h posts it). The caller sees that the claim is still its owner's. One call at a time for each claim.
 * Times are CLOCK_MONOTONIC. No function fails or waits.
 */
#ifndef LOADLINE_LEDGER_DECIDE_H
#define LOADLINE_LEDGER_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/contender.h"
#include "protocol/records.h"

/* The claim comes to want the card. Its tenant comes back from a pause (virtual_time.h), and the gates of the others
 * are shut if turns are needed now. */
void ll_decide_want(const struct ll_contender_id *id, uint64_t now_ns);

/* The claim wants the card no more, and the page says so already. If it has the turn, another process of its tenant
 * goes on with the turn, or the best of the others gets it, or nobody has it. */
void ll_decide_rest(const struct ll_contender_id *id, uint64_t now_ns);

/* The claim's process has not looked for LL_TURN_DEAF_NS, and looks now. It could not use the card, and its tenant
 * gathers no credit by that. */
void ll_decide_return(const struct ll_contender_id *id, uint64_t now_ns);

/* Takes, keeps or gives the turn, opens or shuts the tenant's word on the card, and says what the claim may do. turn:
 * paused_since_ns and ending_since_ns are what the decider remembers for the claim from one look to the next. */
void ll_decide_look(const struct ll_contender_id *id, struct ll_turn *turn, uint64_t now_ns,
		    struct ll_turn_look *ret_look);

/* Whether the claim's gate may be open. A program that comes after this call finds the gate open and shuts it. */
bool ll_decide_gate(const struct ll_contender_id *id, uint64_t now_ns);

/* Whether the turn is the claim's tenant's. A few relaxed loads. */
bool ll_decide_has_turn(const struct ll_ledger_file *file, unsigned index);

#endif
