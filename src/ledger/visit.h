/*
 * visit.h - the gate on the card: a word per tenant for which its streams wait, and what a claim says of its visits.
 *
 * Streams read the word through a mapping of the ledger's page (shim/time/card_gate.h). Its lowest bit is set while the
 * tenant may use the card; the rest counts, so that two looks tell whether it was shut in between. Whoever gives, takes
 * or loses the turn (turn.h) changes it, from any process. A word is shut only while its tenant wants the card and has
 * not got it: everybody's own looks mend what a race, a damage or a death left behind.
 */
#ifndef LOADLINE_LEDGER_VISIT_H
#define LOADLINE_LEDGER_VISIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "ledger/layout.h"

#define LL_VISIT_WORD_OPEN UINT32_C(1)

enum ll_visit_flag {
	LL_VISIT_ON_CARD = 1, /* the claim's launches wait on the card, not in its host */
	LL_VISIT_IS_DRY = 8,  /* it wants the card, and has nothing queued now */
	LL_VISIT_LINGERS = 4, /* a launch of it that its visit let through goes on beside the next visit */
	LL_VISIT_PAUSES = 16, /* it gave the card to a lower class for want of work, and has not launched since */
	LL_VISIT_RAN_DRY = 2, /* the last visit ended because its queue ran dry, and it launches ahead */
};

/* row: 1 + the tenant's row; 0 and what is beyond the table: nothing is done. */
void ll_visit_open(struct ll_ledger_file *file, uint32_t row);
void ll_visit_shut(struct ll_ledger_file *file, uint32_t row);

/* Opens it, where no process of the tenant wants the card. */
void ll_visit_open_at_rest(struct ll_ledger_file *file, uint32_t row);

/* Opens those of processes that want the card and have not looked of late: each may hang in the driver behind its own
 * streams, which wait. */
void ll_visit_let_deaf_go(struct ll_ledger_file *file, uint64_t now_ns);

/* Whether another process of the tenant has work queued. */
bool ll_visit_has_busy_sibling(const struct ll_claim *claim, uint64_t now_ns);

/* The word of the claim's tenant, in the ledger's mapping; NULL: the claim has no tenant, or is not ours any more. */
_Atomic uint32_t *ll_visit_word(const struct ll_claim *claim);

/* The flag of the claim. Any thread of its owner. */
void ll_visit_set(struct ll_claim *claim, enum ll_visit_flag flag, bool is_set);

#endif
