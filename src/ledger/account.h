/*
 * account.h - what a tenant has had of a card's time, and what its cap lets it have. Private to src/ledger and the
 * shim.
 *
 * All its processes charge the same account, each for what it knows of the card's work for it. Where the card runs
 * several of them in turn by itself, each of them sees all that time pass: a moment is charged once, whoever tells of
 * it (ledger/busy_bins.h).
 *
 * All times are CLOCK_MONOTONIC. Any thread of any process.
 */
#ifndef LOADLINE_LEDGER_ACCOUNT_H
#define LOADLINE_LEDGER_ACCOUNT_H

#include <stdint.h>

#include "ledger/claim.h"
#include "ledger/layout.h"

/* Books that the card worked for the claim from start_ns to end_ns: to the claim fresh_ns, what it had not told yet; to
 * its tenant, the tenant's virtual time and cap what none of its claims had. */
void ll_account_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* What the cap's account holds now; negative: debt; INT64_MAX: there is no cap. Nothing is written. */
int64_t ll_account_tokens_ns(struct ll_ledger_tenant *tenant, uint64_t now_ns);

/* The same after booking what was earned since anybody did. */
int64_t ll_account_earn(struct ll_ledger_tenant *tenant, uint64_t now_ns);

#endif
