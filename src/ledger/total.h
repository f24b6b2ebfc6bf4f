/*
 * total.h - a tenant's memory total: the sum of its claims. Private to src/ledger.
 *
 * The total goes up before a claim does and down after it, so that claims never add up to more; and it is changed by
 * compare-and-swap, although only the guard's holder changes it: one that was robbed must do no harm.
 */
#ifndef LOADLINE_LEDGER_TOTAL_H
#define LOADLINE_LEDGER_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/layout.h"

struct ll_ledger;

/* Adds bytes to a sum unless it would pass limit_bytes then, or wrap. */
bool ll_total_add(_Atomic uint64_t *sum, uint64_t bytes, uint64_t limit_bytes);

/* Takes bytes from a sum, or all that is there if that is less; returns how many. */
uint64_t ll_total_take(_Atomic uint64_t *sum, uint64_t bytes);

/* The tenant's total, anew from the claims that name it. The caller has the guard. */
void ll_total_remake(struct ll_ledger_file *file, unsigned row);

/* Withdraws the token of a slot whose lock the caller has, by description lock_fd; its memory leaves its tenant. */
void ll_total_leave(struct ll_ledger *ledger, unsigned index, int lock_fd);

/*
 * The same for a slot whose lock a stray copy of its dead owner keeps. The caller has the ledger's mutex and its scan
 * description. False: the slot has another token by now. Tokens never repeat, so nobody else's claim is withdrawn.
 */
bool ll_total_withdraw(struct ll_ledger *ledger, unsigned index, uint64_t token);

#endif
