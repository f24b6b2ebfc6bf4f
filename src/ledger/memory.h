/*
 * memory.h - device memory, which is reserved before the driver is asked for it.
 *
 * Each claim says what its process has reserved. The tenant's total is the sum of its claims. It is changed under the
 * tenant's guard (total.h), and never passes the tenant's limit, for any number of threads and processes. The guard is
 * a lock in the shared page that takes a few ns if it is free. Its holder may be killed at any instruction: a waiter
 * that finds the holder dead takes the guard over, and makes the total anew from the claims. So the bytes of a killed
 * process stay charged until the next sweep. A refused reservation sweeps too.
 *
 * Memory of an evictable program that has left the card stays charged: the limit holds for what the program has,
 * wherever that is, so that it can return at any time. The claim says beside it how much can be moved, and how much is
 * away. What is on the card is what is used less what is away. What is pinned is what is used less what can be moved.
 *
 * A claim without a tenant is counted by itself and has no limit.
 *
 * Any thread of the claim's owner may call. There is no system call, unless a thread waits for the guard for longer
 * than some µs, or a reservation is refused (some 10 µs, plus 15 µs for each live claim). Nobody waits for ever: a
 * process that was stopped while it had the guard holds others up for half a second. errno is kept. No function is a
 * cancellation point; asynchronous cancellation is not supported.
 */
#ifndef LOADLINE_LEDGER_MEMORY_H
#define LOADLINE_LEDGER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "protocol/records.h"

/*
 * Reserves bytes. 0. -ENOMEM: the tenant's total would pass its limit, even after dead claims were swept. -ESTALE: the
 * claim is not the caller's any more, because it was cleared or the caller is a forked child; take a new one.
 */
int ll_memory_reserve(struct ll_claim *claim, uint64_t bytes);

/* Charges what is there already, whatever the limit says: for instance a context that is larger than foretold. */
void ll_memory_charge(struct ll_claim *claim, uint64_t bytes);

/* Gives bytes back, at most what the claim has. */
void ll_memory_release(struct ll_claim *claim, uint64_t bytes);

/* Relaxed reads, a few ns. */
void ll_memory_look(const struct ll_claim *claim, struct ll_memory_view *ret_view);

/* Says where the program's memory is. Two relaxed stores and one with release. */
void ll_memory_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency);

/*
 * What the processes of a tenant ask of each other.
 *
 * A process may keep memory in pools that it does not use just now, and it is charged for that memory. If the limit
 * refuses memory to a process, the process asks the tenant's other processes for what their pools keep, and wakes them
 * (turn.h). Each of them gives up what it can, and answers. A process that is stopped does not answer, so the one that
 * asks sets its own deadline.
 *
 * Any thread of the claim's owner may call.
 */

/* Asks all that have memory, and returns how many they are. 0: the claim has no tenant. */
unsigned ll_siblings_ask(struct ll_claim *claim, uint64_t now_ns);

/* Returns how many of the others have been asked, by any process, and have not answered yet. */
unsigned ll_siblings_unanswered(const struct ll_claim *claim);

/* do_ask: whether the claim's owner is asked. answer: the owner has given up what it can. */
bool ll_siblings_do_ask(const struct ll_claim *claim);
void ll_siblings_answer(struct ll_claim *claim);

#endif
