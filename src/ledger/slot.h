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

/* Wakes all threads that sleep for the claim (ll_turn_sleep). */
void ll_slot_wake(struct ll_ledger_slot *slot);

/* A copy of the claim in it; false when there is none, or it went away meanwhile. own_namespaces: see process.h. */
bool ll_slot_copy(const struct ll_ledger_file *file, unsigned index, uint64_t own_namespaces,
		  struct ll_claim_info *ret_info);

#endif
