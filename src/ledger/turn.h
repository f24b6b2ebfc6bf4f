/*
 * turn.h - the claims of a card agree through the ledger on who may launch now.
 *
 * A claim that has launches to make wants the card. As a rule every gate is open, and the card's own time slices serve
 * all who want it. While one of them waits for each of its launches (enum ll_pace), the card is given for visits
 * (control/visits.h). Then one word of the ledger names the claim that has the turn, the holder. The holder looks
 * several times a millisecond whether its visit is over, and who is next. It hands the word over by compare-and-swap
 * and wakes the next holder. Nobody depends on another's good will: a higher class takes the turn itself. Any claim
 * takes it if the holder is gone, or has not looked for LL_TURN_DEAF_NS (it is stopped, or hangs).
 *
 * A holder that gives way first lets the card finish what it has queued, for LL_VISIT_DRAIN_NS at most. After that the
 * next holder is let in, the card runs both in time slices, and the overrun is charged.
 *
 * The turn is the tenant's. All its processes on the card may launch in it, and share the card as they would alone.
 * Otherwise kernels that wait for each other (collectives) would spin for a turn that is not theirs.
 *
 * The gate is a word of the claim's slot. Its program reads the word before each launch. The gate is open while the
 * program has nothing to ask: it has no cap, no higher class is on the card, and either nobody else wants the card or
 * nobody who wants it needs visits. A claim that comes and needs visits shuts the gates of the others. Clients of MPS
 * among themselves need none.
 *
 * A claim without a tenant takes no part: its launches never wait, nobody waits for it, and only its time is counted.
 * All times are CLOCK_MONOTONIC. Any thread of the claim's owner may call, one at a time; ll_turn_is_mine and the gate
 * may be used by any thread at any time.
 */
#ifndef LOADLINE_LEDGER_TURN_H
#define LOADLINE_LEDGER_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "protocol/records.h"

/* Work that its process does not know of, or could not count, waits no longer than this. */
#define LL_TURN_PAUSE_NS UINT64_C(5000000)

/*
 * The claim has launches to make, or has ended them (and gives the turn away if it has it). A tenant that comes back
 * while others want the card has at most LL_VISIT_LAG_NS of its pause made up for. A tenant that comes back while
 * nobody wants the card begins at most that much behind all others of the card: what tenants had before counts no more.
 */
void ll_turn_want(struct ll_claim *claim, uint64_t now_ns);
void ll_turn_rest(struct ll_claim *claim, uint64_t now_ns);

/*
 * Posts what the claim wants: writes into the claim's own row how much work the card has of it, and that its process
 * looks now. queued_ns: estimated work of ours that the card still has. turn: the fields that records.h calls the
 * caller's; a pause that has lasted for LL_TURN_PAUSE_NS ends. Decides nothing, and writes nothing for others. True:
 * the process has not posted for LL_TURN_DEAF_NS. False too if the claim has no tenant or is not the caller's: then
 * nothing is posted.
 */
bool ll_turn_post(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns);

/*
 * Posts, and then decides for the claim: takes, keeps or gives the turn (decide.h). The holder shall look at least
 * every ms while others wait, the others at least every 10 ms. A look takes some hundred ns.
 */
void ll_turn_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look);

/* Tells the others how the program launches. */
void ll_turn_set_pace(struct ll_claim *claim, enum ll_pace pace);

/* Tells the others whether the program's launches wait for their turn on the card, and not in its host. */
void ll_turn_set_waits_on_card(struct ll_claim *claim, bool waits);

/*
 * The claim's tenant has the turn on the first of its cards. So it goes before its equals here for LL_GANG_TURN_NS
 * (control/visits.h). The caller repeats the call while that is so.
 */
void ll_turn_note_gang(struct ll_claim *claim, uint64_t now_ns);

/* Whether the tenant of that id has the turn on this card, on which the caller need have no claim. */
bool ll_turn_is_of(const struct ll_ledger *ledger, uint64_t tenant_id);

/* For a program that only watches: the claim that has the turn; false: no claim has it. The claim may have ended since.
 */
bool ll_turn_holder(const struct ll_ledger *ledger, unsigned *ret_index);

/* Whether the turn is the tenant's, or it needs none. A few relaxed loads. */
bool ll_turn_is_mine(const struct ll_claim *claim);

/* The word of the claim's tenant on the card (act.h), in the ledger's mapping. NULL: the claim has no tenant, or is not
 * ours any more. */
_Atomic uint32_t *ll_turn_card_word(const struct ll_claim *claim);

/* The claim's gate; valid until the claim is released. */
_Atomic uint32_t *ll_turn_gate(struct ll_claim *claim);

/* Opens the gate, fully or so that the next launch says that it happened. False: another claim came, and it is shut
 * again. */
bool ll_turn_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns);
void ll_turn_shut_gate(struct ll_claim *claim);

/*
 * Sleeping for a claim. Another process that changes the claim's turn or gate raises the wake count and wakes who
 * sleeps. Read the count before the look that decides on sleeping: ll_turn_sleep returns at once if the count is
 * another one by then, and at until_ns (CLOCK_MONOTONIC) at the latest.
 */
uint32_t ll_turn_wake_count(const struct ll_claim *claim);
void ll_turn_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns);

/* Wakes the threads of this process that sleep for the claim. */
void ll_turn_wake(struct ll_claim *claim);

#endif
