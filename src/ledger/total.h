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
 * The total goes up before a claim does and down after it, so that claims never add up to more; and it is changed by
 * compare-and-swap, although only the guard's holder changes it: one that was robbed must do no harm.
 */

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

/*
 * The lock of one tenant's memory total, in the shared page. Private to src/ledger.
 *
 * A word that is taken by compare-and-swap, and a futex for those who wait long. It survives SIGKILL of its holder at
 * any instruction, because the word says by which slot the holder can be known to live: whoever holds the guard holds
 * the lock of that slot, as the owner of its claim or as the one who clears it, and the kernel frees that lock.
 *
 *     bits 0-31   thread id of the holder, in its own PID namespace
 *     bits 32-46  1 + index of the slot
 *     bit 47      the holder clears the slot; else it owns it
 *     bits 48-63  a count of the thread's takings, so that a look tells "still" from "again"
 *
 * A waiter looks every 10 ms whether the holder is dead: the slot's lock is free, or the slot's process (pid and start
 * time) or the thread is gone in the waiter's own PID namespace. Then it takes the guard over, and makes the total
 * anew. A holder that lives but has not moved for half a second (stopped, in a debugger, starved) is robbed as well, so
 * that nobody waits for ever: it learns so when it frees the guard, and does its work again. What is done inside is
 * written so that a robbed holder cannot push the total over its limit.
 *
 * A thread cannot be cancelled while it has the guard (asynchronous cancellation apart, which glibc 2.36 lets through
 * where it is disabled). It may be interrupted by a signal handler that comes here too:
 * the handler robs it. A forked child never has it: the guard is the parent thread's, and the child's claims are dead.
 * errno is kept.
 */

/* Filled by the caller up to lock_fd. */
struct ll_guard {
	struct ll_ledger *ledger;
	unsigned row;
	unsigned index; /* slot whose lock the caller holds */
	int lock_fd;    /* by this description, to clear the slot; -1: the caller owns the claim in it */
	uint64_t word;
	int cancel_state;
};

/* True when it was taken over: the total is not to be trusted then. Some ns when it is free; half a second at most for
 * a holder that does not move. */
bool ll_guard_take(struct ll_guard *guard);

/* False when somebody has taken it over meanwhile. */
bool ll_guard_free(struct ll_guard *guard);

/* In a forked child, whose thread is a new one. */
void ll_guard_in_child(void);

#endif
