/*
 * rows.h - makes, copies and cleans the slots of claims, the rows of tenants, and the texts in both. Private to
 * src/ledger.
 */
#ifndef LOADLINE_LEDGER_ROWS_H
#define LOADLINE_LEDGER_ROWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/layout.h"
#include "protocol/words.h"

struct ll_ledger;
struct ll_ledger_file;
struct ll_tenant_wish;

/*
 * Reading and writing the slot of a claim. Private to src/ledger; layout.h says who may write.
 */

/* Whether the slot may hold anything. */
bool ll_slot_is_used(const struct ll_ledger_file *file, unsigned index);

/* Says that the slot may hold something, before anything is written to it. */
void ll_slot_mark_used(struct ll_ledger_file *file, unsigned index);

/* Withdraws the token, zeroes the rest, and marks the slot as unused. */
void ll_slot_clean(struct ll_ledger_file *file, unsigned index);

/* Wakes all threads that sleep for the claim (ll_turn_sleep). */
void ll_slot_wake(struct ll_ledger_slot *slot);

/* Sets or clears a flag of the claim's visits. Any thread of any process. */
void ll_slot_set_flag(struct ll_ledger_slot *slot, enum ll_visit_flag flag, bool is_set);

/*
 * Finding, making and clearing the rows of tenants. Private to src/ledger; layout.h says who may do so, and when.
 */

/* Return the tenant of row `row - 1`, and its word on the card (act.h). NULL: row is 0, or beyond the table. */
struct ll_ledger_tenant *ll_tenant_rows_at(struct ll_ledger_file *file, uint32_t row);
_Atomic uint32_t *ll_tenant_rows_card_word(struct ll_ledger_file *file, uint32_t row);

/* Returns how many slots name the row. is_claim_only: slots that are being taken or cleared do not count. */
unsigned ll_tenant_rows_claims(const struct ll_ledger_file *file, unsigned row, bool is_claim_only);

/* Returns the row with this id; for id 0 the first free row. LL_LEDGER_TENANTS: there is none. */
unsigned ll_tenant_rows_find(const struct ll_ledger_file *file, uint64_t id);

/* Zeroes all of a row but the tenant's name and limits. */
void ll_tenant_rows_zero(struct ll_ledger_tenant *tenant);

/* Clears the dead rows, unless another process is making or clearing rows now. The caller has the ledger's mutex, and
 * its scan description is open. */
void ll_tenant_rows_sweep(struct ll_ledger *ledger);

/*
 * Texts in the shared page. Several processes may write and read them at the same time. Private to src/ledger.
 *
 * A text is an array of words. The sequence beside it is odd while a text of its slot or row is being written.
 */

/* put cuts the text, and ends it with NUL. get gives printable ASCII, and '?' for other characters. It gives an empty
 * text if a writer does not finish. */
void ll_text_put(_Atomic uint32_t *text_sequence, _Atomic uint64_t *words, size_t word_count, const char *text);
void ll_text_get(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count, char *text);

/* owner: a slot or a tenant's row. */
#define LL_TEXT_PUT(owner, field, text)                                                                                \
	ll_text_put(&(owner)->text_sequence, (owner)->field, sizeof(owner)->field / sizeof(uint64_t), text)
#define LL_TEXT_GET(owner, field, text)                                                                                \
	ll_text_get(&(owner)->text_sequence, (owner)->field, sizeof(owner)->field / sizeof(uint64_t), text)

#endif
