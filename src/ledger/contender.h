/*
 * contender.h - reads in the page which programs want to launch, and who has the turn. Private to src/ledger.
 *
 * A contender is a claim of a tenant that has launches to make (control/visits.h). What is read here may have changed
 * by the time it is used; the turn's word decides (turn.h). No function here writes: the page is const. What is written
 * for others is in act.h. Times are CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_LEDGER_CONTENDER_H
#define LOADLINE_LEDGER_CONTENDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/visits.h"
#include "ledger/layout.h"
#include "protocol/records.h"
#include "protocol/words.h"

/* A claim that has not looked for so long is deaf: its process is stopped, hangs, or is dead. */
#define LL_TURN_DEAF_NS UINT64_C(20000000)

/* A gang's turn lasts for a few looks of its process, which looks each 0.1 ms while it waits. */
#define LL_GANG_TURN_NS UINT64_C(500000)

/* The turn word: (1 + slot) << 48, a flag for a turn that a higher class waits for, and a count that makes each change
 * unique. */
enum { LL_TURN_WORD_SHIFT = 48 };
#define LL_TURN_WORD_PROMOTED (UINT64_C(1) << 47)

/* How the decider names a claim. */
struct ll_contender_id {
	struct ll_ledger_file *file;
	unsigned index; /* of the claim's slot */
	uint32_t row;   /* 1 + the tenant's row, as the claim's owner knows it: the page may be damaged */
};

/* What one pass over the claims of a card finds, for one of them. */
struct ll_contender_scan {
	/* the contenders of other tenants that look, with the index of each one's slot */
	struct ll_contender contenders[LL_LEDGER_CLAIMS];
	uint8_t slots[LL_LEDGER_CLAIMS];
	size_t count;
	/* of the tenant's other processes that look: the work that the card still has of them, and whether one that
	 * wants the card has work queued */
	uint64_t siblings_queued_ns;
	bool has_busy_sibling;
};

/* 1 + the index of the claim that has the turn; 0: none. A damaged word has any number. */
static inline unsigned ll_turn_word_holder(uint64_t turn)
{
	return (unsigned)(turn >> LL_TURN_WORD_SHIFT);
}

/* Whether the turn is the claim's by that word: its tenant's, through whichever claim the word names. */
bool ll_contender_has_turn(const struct ll_ledger_file *file, uint64_t turn, unsigned index);

/* The tenant that a slot belongs to; NULL: none. */
const struct ll_ledger_tenant *ll_contender_tenant(const struct ll_ledger_file *file,
						   const struct ll_ledger_slot *slot);

/* Its class: smaller goes first. */
unsigned ll_contender_rank(const struct ll_ledger_tenant *tenant);

/* 1 + the tenant's row of slot index; 0: none. */
uint32_t ll_contender_row(const struct ll_ledger_file *file, unsigned index);

/* The claims of a card, one after the other: the first one from index on; LL_LEDGER_CLAIMS: no more. */
unsigned ll_contender_next(const struct ll_ledger_file *file, unsigned index);

#define LL_CONTENDER_EACH(file, index)                                                                                 \
	for (unsigned index = ll_contender_next(file, 0); (index) < LL_LEDGER_CLAIMS;                                  \
	     index = ll_contender_next(file, (index) + 1))

/* The claims of one tenant, in the same way. Row 0 has none. */
unsigned ll_contender_next_of(const struct ll_ledger_file *file, uint32_t row, unsigned index);

#define LL_CONTENDER_EACH_OF(file, row, index)                                                                         \
	for (unsigned index = ll_contender_next_of(file, row, 0); (index) < LL_LEDGER_CLAIMS;                          \
	     index = ll_contender_next_of(file, row, (index) + 1))

/* False: the claim wants nothing, or is not there any more. */
bool ll_contender_read(const struct ll_ledger_file *file, unsigned index, uint64_t now_ns,
		       struct ll_contender *ret_contender);

/* The process is stopped, hangs, or is dead and not yet cleared away. It gets no turn until it looks again. */
bool ll_contender_is_deaf(const struct ll_ledger_file *file, unsigned index, uint64_t now_ns);

/* Whether another program than the slot `self` on the card is of a higher class, even if it wants nothing now. Its next
 * launch shall not find more queued than the bound, which an open gate does not keep. A claim that has not beaten for
 * LL_SUPERIOR_NS is of a program that is stopped or dead. */
#define LL_SUPERIOR_NS UINT64_C(3000000000)
bool ll_contender_has_superior(const struct ll_ledger_file *file, unsigned self, unsigned rank, uint64_t now_ns);

/* Reads the card for the claim of the slot `except`. */
void ll_contender_scan(const struct ll_ledger_file *file, unsigned except, uint64_t now_ns,
		       struct ll_contender_scan *ret_scan);

/* Reads the card for the tenant of this row (1 and more). Its siblings are all its processes. */
void ll_contender_scan_others(const struct ll_ledger_file *file, uint32_t row, uint64_t now_ns,
			      struct ll_contender_scan *ret_scan);

/*
 * The card's own time slices, in which it serves several tenants that have work on it. Private to src/ledger.
 */

/* Whether the card is to be given for visits: a contender waits for each of its launches, and the contenders are not
 * all clients of MPS. False if nobody wants the card. Every caller gets the same answer. */
bool ll_sharing_needs_visits(const struct ll_ledger_file *file, uint64_t now_ns);

/*
 * Counts the tenants among the contenders that have at least least_ns of work queued, except that of the slot `self`.
 * The card serves them in time slices if they have more than is left of a turn when it is given away
 * (LL_VISIT_DRAINED_NS).
 */
unsigned ll_sharing_count(const struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns);

/* Counts the claims whose launch goes on beyond their visit. As a rule each is of another tenant. */
unsigned ll_sharing_lingering(const struct ll_contender_scan *scan);

/* On the first card of a tenant (gang.h): what the tenant's other cards have of it. */
struct ll_gang_work ll_gang_work_elsewhere(const struct ll_ledger_tenant *tenant);

/* Whether what was posted at that time still counts. */
bool ll_gang_is_fresh(uint64_t at_ns, uint64_t now_ns);

#endif
