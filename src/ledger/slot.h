/*
 * slot.h - reading and writing one claim's slot. Private to src/ledger; who may write is in layout.h.
 */
#ifndef LOADLINE_LEDGER_SLOT_H
#define LOADLINE_LEDGER_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/layout.h"
#include "ledger/ledger.h"

/* Whether the slot may hold anything. */
bool ll_slot_is_used(const struct ll_ledger_file *file, unsigned index);

/* Says that the slot may hold something, before anything is written to it. */
void ll_slot_mark_used(struct ll_ledger_file *file, unsigned index);

/* Withdraws the token, zeroes the rest, marks it unused. */
void ll_slot_clean(struct ll_ledger_file *file, unsigned index);

/* A copy of the claim in it; false when there is none, or it went away meanwhile. own_namespaces: see process.h. */
bool ll_slot_copy(const struct ll_ledger_file *file, unsigned index, uint64_t own_namespaces,
		  struct ll_claim_info *ret_info);

/* A text field: NUL-ended and cut on the way in; printable ASCII on the way out, '?' for the rest, and empty where a
 * writer keeps at it. */
void ll_slot_put_text(struct ll_ledger_slot *slot, _Atomic uint64_t *words, size_t word_count, const char *text);
void ll_slot_get_text(const struct ll_ledger_slot *slot, const _Atomic uint64_t *words, size_t word_count, char *text);

#define LL_SLOT_PUT(slot, field, text)                                                                                 \
	ll_slot_put_text(slot, (slot)->field, sizeof(slot)->field / sizeof(uint64_t), text)
#define LL_SLOT_GET(slot, field, text)                                                                                 \
	ll_slot_get_text(slot, (slot)->field, sizeof(slot)->field / sizeof(uint64_t), text)

#endif
