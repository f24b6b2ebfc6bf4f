/*
 * total.h - a tenant's memory total and its lock. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_TOTAL_H
#define LOADLINE_LEDGER_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/layout.h"

struct ll_ledger;

/*
 * A tenant's memory total: the sum of its claims. Private to src/ledger.
 *
 * The total rises before a claim rises, and falls after a claim has fallen. So the claims never add up to more than the
 * total. Only the guard's holder changes the total. It does so by compare-and-swap, because a holder that was robbed of
 * the guard must do no harm.
 */

/* Adds bytes to a sum. False: the sum would pass limit_bytes, or wrap; it is unchanged. */
bool ll_total_add(_Atomic uint64_t *sum, uint64_t bytes, uint64_t limit_bytes);

/* Takes bytes from a sum, at most what is there. Returns how many it has taken. */
uint64_t ll_total_take(_Atomic uint64_t *sum, uint64_t bytes);

/* Makes the tenant's total anew from the claims that name the tenant. The caller has the guard. */
void ll_total_remake(struct ll_ledger_file *file, unsigned row);

/* Withdraws the token of a slot, and takes its memory out of its tenant's total. The caller has the slot's lock, by
 * description lock_fd. */
void ll_total_leave(struct ll_ledger *ledger, unsigned index, int lock_fd);

/*
 * Does the same for a slot whose owner is dead and whose lock a stray copy of the owner's description keeps. The caller
 * has the ledger's mutex and its scan description. False: the slot has another token by now. Tokens never repeat, so no
 * other claim is withdrawn.
 */
bool ll_total_withdraw(struct ll_ledger *ledger, unsigned index, uint64_t token);

/*
 * The lock of one tenant's memory total, in the shared page. Private to src/ledger.
 *
 * The guard is a word that is taken by compare-and-swap, and a futex for those who wait long. Its holder may be killed
 * at any instruction. The word names a slot whose file lock the holder has, as the owner of its claim or as the one who
 * clears it. The kernel frees that lock when the holder dies.
 *
 *     bits 0-31   thread id of the holder, in its own PID namespace
 *     bits 32-46  1 + index of the slot
 *     bit 47      the holder clears the slot; else it owns it
 *     bits 48-63  a count of the thread's takings, so that a look tells "still" from "again"
 *
 * A waiter looks every 10 ms whether the holder is dead: the slot's lock is free, or the slot's process (pid and start
 * time) or the thread is gone in the waiter's own PID namespace. Then the waiter takes the guard over, and makes the
 * total anew. A holder may live and not move for half a second, because it is stopped, in a debugger, or starved. Then
 * a waiter robs it of the guard, so that nobody waits for ever. The holder learns of it when it frees the guard, and
 * does its work again. A robbed holder cannot push the total over its limit.
 *
 * A thread cannot be cancelled while it has the guard, except asynchronously: glibc 2.36 lets that through even if it
 * is disabled. A signal handler may interrupt the holder and come here too: then the handler robs the holder. A forked
 * child never has the guard, because it is the parent thread's, and the child's claims are dead. errno is kept.
 */

/* The caller fills the fields up to lock_fd. */
struct ll_guard {
	struct ll_ledger *ledger;
	unsigned row;
	unsigned index; /* slot whose lock the caller holds */
	int lock_fd;    /* by this description, to clear the slot; -1: the caller owns the claim in it */
	uint64_t word;
	int cancel_state;
};

/* Takes the guard. True: it was taken over, so the total cannot be trusted. It takes some ns if the guard is free, and
 * half a second at most if the holder does not move. */
bool ll_guard_take(struct ll_guard *guard);

/* Frees the guard. False: another thread has taken it over meanwhile. */
bool ll_guard_free(struct ll_guard *guard);

/* To be called in a forked child, whose thread is a new one. */
void ll_guard_in_child(void);

#endif
