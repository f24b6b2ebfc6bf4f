/*
 * party.h - who is on a card and wants to launch, as the ledger shows it. Private to src/ledger.
 *
 * A party is a claim of a tenant that has launches to make (control/turns.h). What is read here may have changed by the
 * time it is used; the turn's word decides (turn.h).
 */
#ifndef LOADLINE_LEDGER_PARTY_H
#define LOADLINE_LEDGER_PARTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/turns.h"
#include "ledger/layout.h"

/* Moments in the ledger are of the clock that all processes share. One that is ahead of it by more than this is
 * damaged. */
#define LL_PARTY_AHEAD_NS UINT64_C(1000000000)
/* No account is about more than the time since the machine started, and this to be sure: more is damaged. */
#define LL_PARTY_MARGIN_NS UINT64_C(3600000000000)

struct ll_party_scan {
	struct ll_turn_party parties[LL_LEDGER_CLAIMS];
	uint8_t slots[LL_LEDGER_CLAIMS]; /* of each */
	size_t count;
};

/* The tenant that a slot belongs to; NULL: none. */
struct ll_ledger_tenant *ll_party_tenant(struct ll_ledger_file *file, const struct ll_ledger_slot *slot);

/* How long ago that was. UINT64_MAX: it is damaged, and nobody shall wait for when it comes true. */
uint64_t ll_party_elapsed_ns(uint64_t since_ns, uint64_t now_ns);

/* Its class: smaller goes first. */
unsigned ll_party_rank(const struct ll_ledger_tenant *tenant);

/* It is a client of MPS: its kernels run at the same time as those of other clients. */
bool ll_party_is_by_space(const struct ll_ledger_tenant *tenant);

/* 1 + the tenant's row of slot index; 0: none. */
uint32_t ll_party_row(struct ll_ledger_file *file, unsigned index);

/* The claims of a card, one after the other: the first one from index on; LL_LEDGER_CLAIMS: no more. */
unsigned ll_party_next(struct ll_ledger_file *file, unsigned index);

#define LL_PARTY_EACH(file, index)                                                                                     \
	for (unsigned index = ll_party_next(file, 0); (index) < LL_LEDGER_CLAIMS;                                      \
	     index = ll_party_next(file, (index) + 1))

/* Those of a tenant. No more: also where row is 0. */
unsigned ll_party_next_of(struct ll_ledger_file *file, uint32_t row, unsigned index);

#define LL_PARTY_EACH_OF(file, row, index)                                                                             \
	for (unsigned index = ll_party_next_of(file, row, 0); (index) < LL_LEDGER_CLAIMS;                              \
	     index = ll_party_next_of(file, row, (index) + 1))

/* False: it wants nothing, or is not there any more. */
bool ll_party_read(struct ll_ledger_file *file, unsigned index, uint64_t now_ns, struct ll_turn_party *ret_party);

/* It is stopped, hangs, or is dead and not yet cleared away: the turn is not for it until it looks again. */
bool ll_party_is_deaf(struct ll_ledger_file *file, unsigned index, uint64_t now_ns);

/* Everybody who wants the card and is there, but for the slot `except` and others of its tenant. */
void ll_party_scan(struct ll_ledger_file *file, unsigned except, uint64_t now_ns, struct ll_party_scan *ret_scan);

#endif
