/*
 * contender.h - the programs on a card that want to launch, as the ledger shows them. Private to src/ledger.
 *
 * A contender is a claim of a tenant that has launches to make (control/turns.h). What is read here may have changed by
 * the time it is used; the turn's word decides (turn.h).
 */
#ifndef LOADLINE_LEDGER_CONTENDER_H
#define LOADLINE_LEDGER_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/turns.h"
#include "ledger/layout.h"

/* Times in the ledger are of CLOCK_MONOTONIC, which all processes share. A time that is ahead of it by more than this
 * is damaged. */
#define LL_CONTENDER_AHEAD_NS UINT64_C(1000000000)
/* No account is larger than the time since the machine started, plus this margin. A larger one is damaged. */
#define LL_CONTENDER_MARGIN_NS UINT64_C(3600000000000)

struct ll_contender_scan {
	struct ll_turn_contender contenders[LL_LEDGER_CLAIMS];
	uint8_t slots[LL_LEDGER_CLAIMS]; /* of each */
	size_t count;
};

/* The tenant that a slot belongs to; NULL: none. */
struct ll_ledger_tenant *ll_contender_tenant(struct ll_ledger_file *file, const struct ll_ledger_slot *slot);

/* How long ago that was. UINT64_MAX: the time is damaged, and nobody shall wait for it. */
uint64_t ll_contender_elapsed_ns(uint64_t since_ns, uint64_t now_ns);

/* Its class: smaller goes first. */
unsigned ll_contender_rank(const struct ll_ledger_tenant *tenant);

/* It is a client of MPS: its kernels run at the same time as those of other clients. */
bool ll_contender_is_by_space(const struct ll_ledger_tenant *tenant);

/* 1 + the tenant's row of slot index; 0: none. */
uint32_t ll_contender_row(struct ll_ledger_file *file, unsigned index);

/* The claims of a card, one after the other: the first one from index on; LL_LEDGER_CLAIMS: no more. */
unsigned ll_contender_next(struct ll_ledger_file *file, unsigned index);

#define LL_CONTENDER_EACH(file, index)                                                                                 \
	for (unsigned index = ll_contender_next(file, 0); (index) < LL_LEDGER_CLAIMS;                                  \
	     index = ll_contender_next(file, (index) + 1))

/* The claims of one tenant, in the same way. Row 0 has none. */
unsigned ll_contender_next_of(struct ll_ledger_file *file, uint32_t row, unsigned index);

#define LL_CONTENDER_EACH_OF(file, row, index)                                                                         \
	for (unsigned index = ll_contender_next_of(file, row, 0); (index) < LL_LEDGER_CLAIMS;                          \
	     index = ll_contender_next_of(file, row, (index) + 1))

/* False: the claim wants nothing, or is not there any more. */
bool ll_contender_read(struct ll_ledger_file *file, unsigned index, uint64_t now_ns,
		       struct ll_turn_contender *ret_contender);

/* The process is stopped, hangs, or is dead and not yet cleared away. It gets no turn until it looks again. */
bool ll_contender_is_deaf(struct ll_ledger_file *file, unsigned index, uint64_t now_ns);

/* All contenders of the card, without the slot `except` and others of its tenant. */
void ll_contender_scan(struct ll_ledger_file *file, unsigned except, uint64_t now_ns,
		       struct ll_contender_scan *ret_scan);

/* All contenders of the card that are not of the tenant of this row (1 and more). */
void ll_contender_scan_others(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns,
			      struct ll_contender_scan *ret_scan);

#endif
