/*
 * claim_slot.h - where a claim's bytes are. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_CLAIM_SLOT_H
#define LOADLINE_LEDGER_CLAIM_SLOT_H

#include "ledger/claim.h"
#include "ledger/layout.h"

/* NULL in a forked child: the claim is the parent's. */
struct ll_ledger_slot *ll_claim_slot(const struct ll_claim *claim);
struct ll_ledger_file *ll_claim_file(const struct ll_claim *claim);

#endif
