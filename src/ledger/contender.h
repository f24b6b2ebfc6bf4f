/*
 * contender.h - the programs on a card that want to launch, as the ledger shows them. Private to src/ledger.
 *
 * A contender is a claim of a tenant that has launches to make (control/turns.h). What is read here may have changed by
 * the time it is used; the turn's word decides (turn.h).
 */
#ifndef LOADLINE_LEDGER_CONTENDER_H
#define LOADLINE_LEDGER_CONTENDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/turns.h"
#include "ledger/layout.h"
#include "ledger/records.h"
#include "ledger/words.h"

struct ll_claim;

/* A claim that has not looked for so long is deaf: its process is stopped, hangs, or is dead. */
#define LL_TURN_DEAF_NS UINT64_C(20000000)

/* A call lasts for a few looks of its process, which looks each 0.1 ms while it waits. */
#define LL_TURN_CALLED_NS UINT64_C(500000)

struct ll_contender_scan {
	struct ll_turn_contender contenders[LL_LEDGER_CLAIMS];
	uint8_t slots[LL_LEDGER_CLAIMS]; /* of each */
	size_t count;
};

/* The tenant that a slot belongs to; NULL: none. */
struct ll_ledger_tenant *ll_contender_tenant(struct ll_ledger_file *file, const struct ll_ledger_slot *slot);

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

/*
 * What the card does by itself where several tenants have work on it: its time slices. Private to
 * src/ledger.
 */

/* Whether nobody who wants the card needs turns. The same whoever asks; true where nobody wants it. */
bool ll_sharing_is_sliced(struct ll_ledger_file *file, uint64_t now_ns);

/*
 * Tenants among the contenders, but for that of the slot `self`, that have at least so much queued. Of two with more
 * than is left of a turn when it is given away the card makes slices.
 */
unsigned ll_sharing_count(struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns);

/* Claims whose launch goes on beyond their visit: as a rule of as many tenants. */
unsigned ll_sharing_lingering(const struct ll_contender_scan *scan);

/*
 * The gate on the card: a word per tenant for which its streams wait, and what a claim says of its visits.
 *
 * Streams read the word through a mapping of the ledger's page (shim/time/card_gate.h). Its lowest bit is set while the
 * tenant may use the card; the rest counts, so that two looks tell whether it was shut in between. Whoever gives, takes
 * or loses the turn (turn.h) changes it, from any process. A word is shut only while its tenant wants the card and has
 * not got it: everybody's own looks mend what a race, a damage or a death left behind.
 */

/* row: 1 + the tenant's row; 0 and what is beyond the table: nothing is done. */
void ll_visit_open(struct ll_ledger_file *file, uint32_t row);
void ll_visit_shut(struct ll_ledger_file *file, uint32_t row);

/* Opens it, where no process of the tenant wants the card. */
void ll_visit_open_at_rest(struct ll_ledger_file *file, uint32_t row);

/* Whether another process of the tenant has work queued. */
bool ll_visit_has_busy_sibling(const struct ll_claim *claim, uint64_t now_ns);

/* The word of the claim's tenant, in the ledger's mapping; NULL: the claim has no tenant, or is not ours any more. */
_Atomic uint32_t *ll_visit_word(const struct ll_claim *claim);

/* The flag of the claim. Any thread of its owner. */
void ll_visit_set(struct ll_claim *claim, enum ll_visit_flag flag, bool is_set);

/*
 * How much of a tenant's past counts when the card is shared. Private to src/ledger.
 *
 * A tenant's virtual time is the GPU time that it was charged, divided by its weight. Among tenants of one class the
 * one with the least virtual time has the card next (control/turns.h). Time in which a tenant did not compete with
 * others, or did not use its share, must not count: the tenant would be kept from the card for as long, or would keep
 * the others from it. `scan` holds the other tenants that want the card. Times are CLOCK_MONOTONIC. No function waits.
 */

/* The tenant comes back from a pause. It is at most LL_TURN_LAG_NS of its own time behind the others of its class that
 * want the card. If there are none, the past counts for nobody: it is at most as much behind all others of its class.
 */
void ll_virtual_time_come_back(struct ll_ledger_file *file, struct ll_ledger_tenant *tenant,
			       const struct ll_contender_scan *scan, uint64_t now_ns);

/* The tenant does not use its share: it has no work, or its cap holds it back. It gathers no credit: from here on it is
 * at most LL_TURN_LAG_NS of its own time behind the others of its class. */
void ll_virtual_time_limit_credit(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan,
				  uint64_t now_ns);

/* Time slices serve all alike, and what is charged there are estimates. The tenant gets at most LL_TURN_LAG_NS of its
 * own time ahead of the others, so that it does not wait for them when visits begin. */
void ll_virtual_time_forgive(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns);

/* The tenant of this row (1 and more) has come into another class. What it had or lacked in the old class does not
 * count: it is at most LL_TURN_LAG_NS of its own time ahead of the others of its class, or behind them. */
void ll_virtual_time_enter_class(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns);

/* A damaged virtual time would keep its tenant from the card until the others had as much: the tenant begins where they
 * are. */
void ll_virtual_time_mend(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns);

/* On the first card of a tenant (gang.h): what its other cards have; whether they may have it still; and that the
 * tenant is about to give its turn away. */
struct ll_gang_work ll_gang_work_elsewhere(const struct ll_ledger_tenant *tenant);
bool ll_gang_is_fresh(uint64_t at_ns, uint64_t now_ns);
void ll_gang_note_ending(struct ll_ledger_tenant *tenant, uint64_t now_ns);

#endif
