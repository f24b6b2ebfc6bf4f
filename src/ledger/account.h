/*
 * account.h - what a tenant has had of a card's time, and what its cap lets it have. Private to src/ledger.
 *
 * All processes of a tenant charge the same account, each for the work that it knows of. If the card runs several of
 * them by time slices, each of them sees the whole time pass. Such a moment is charged once, whoever reports it
 * (below).
 *
 * All times are CLOCK_MONOTONIC. Any thread of any process may call.
 */
#ifndef LOADLINE_LEDGER_ACCOUNT_H
#define LOADLINE_LEDGER_ACCOUNT_H

#include <stdint.h>

#include "ledger/layout.h"

struct ll_claim;

/* Charges the card's work for the claim from start_ns to end_ns. The claim is charged fresh_ns, the part that it had
 * not reported yet. The tenant, its virtual time and its cap are charged the part that none of its claims had reported.
 */
void ll_account_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns);

/* Returns what the cap's account holds now; negative: debt; INT64_MAX: there is no cap. Writes nothing. */
int64_t ll_account_tokens_ns(const struct ll_ledger_tenant *tenant, uint64_t now_ns);

/* Adds what the cap has earned since the last call of any process, and returns the same. */
int64_t ll_account_earn(struct ll_ledger_tenant *tenant, uint64_t now_ns);

/*
 * How long a card worked for a tenant, reported by several processes that know nothing of each other.
 *
 * Each process reports intervals, in any order. Several may report the same moments. Time is cut in bins, and a bin
 * counts no more than its own length. So processes that share the card by time slices count once. What lies further
 * back than the bins reach is counted as reported. A bin is one word: any number of threads and processes may write it,
 * and a process may be killed at any moment. A stretch may be longer than the bins reach, for instance a kernel of many
 * milliseconds. Its older part is looked up in longer bins, into which everything is counted too.
 */

/* Counts start..end, and returns the part of it that was not counted yet. All calls use one clock. */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

#endif
