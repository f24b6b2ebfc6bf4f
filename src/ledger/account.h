/*
 * account.h - what a tenant has had of a card's time, and what its cap lets it have. Private to src/ledger and the
 * shim.
 *
 * All its processes charge the same account, each for what it knows of the card's work for it. Where the card runs
 * several of them in turn by itself, each of them sees all that time pass: a moment is charged once, whoever tells of
 * it (below).
 *
 * All times are CLOCK_MONOTONIC. Any thread of any process.
 */
#ifndef LOADLINE_LEDGER_ACCOUNT_H
#define LOADLINE_LEDGER_ACCOUNT_H

#include <stdint.h>

#include "ledger/layout.h"

struct ll_claim;

/* Books that the card worked for the claim from start_ns to end_ns: to the claim fresh_ns, what it had not told yet; to
 * its tenant, the tenant's virtual time and cap what none of its claims had. */
void ll_account_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* What the cap's account holds now; negative: debt; INT64_MAX: there is no cap. Nothing is written. */
int64_t ll_account_tokens_ns(const struct ll_ledger_tenant *tenant, uint64_t now_ns);

/* The same after booking what was earned since anybody did. */
int64_t ll_account_earn(struct ll_ledger_tenant *tenant, uint64_t now_ns);

/*
 * How long a card worked for somebody, told by several processes that know nothing of each other.
 *
 * Each tells intervals, in any order and some of them of the same moments. Time is cut in bins, and a bin counts no
 * more than its own length: so processes that the card runs in turn, of which each sees the whole time pass, count
 * once. What lies further back than all bins reach is counted as told. A bin is one word: any number of threads and
 * processes, and SIGKILL at any moment. Of a stretch that is longer than these bins reach, a kernel of many
 * milliseconds, the older part is looked up in longer bins, in which all that is counted is written too.
 */

/* The part of start..end that was not counted yet. One clock for all calls. */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

#endif
