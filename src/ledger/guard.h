/*
 * guard.h - the lock of one tenant's memory total, in the shared page. Private to src/ledger.
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
#ifndef LOADLINE_LEDGER_GUARD_H
#define LOADLINE_LEDGER_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_ledger;

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
