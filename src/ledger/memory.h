/*
 * memory.h - device memory, reserved before the driver is asked for it.
 *
 * The truth is in the claims: each says what its process has reserved. The tenant's total is their sum, kept under the
 * tenant's guard (total.h), and never passes the tenant's limit, for any number of threads and processes. The guard is
 * a lock of our own in the shared page (a few ns when free), made to survive SIGKILL at any instruction: a waiter that
 * finds its holder dead takes it over and makes the total anew from the claims. So a killed process leaves its bytes
 * charged until the next sweep or the next refused reservation, which sweeps by itself, and not a byte longer.
 *
 * Memory of an evictable program that has left the card stays charged: the limit holds for what the program has,
 * wherever that is, so that it can return at any time. The claim says beside it how much can be moved, and how much is
 * away. What is on the card is what is used less what is away. What is pinned is what is used less what can be moved.
 *
 * A claim without a tenant is counted for itself and has no limit.
 *
 * Any thread of the claim's owner. No system call, unless the guard is contended for longer than some µs or a
 * reservation is refused (some 10 µs, plus 15 µs for each live claim). Nobody waits for ever: a process that was
 * stopped in the guard holds others up for half a second. errno is kept. No cancellation point; asynchronous
 * cancellation is not supported.
 */
#ifndef LOADLINE_LEDGER_MEMORY_H
#define LOADLINE_LEDGER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "ledger/records.h"

/*
 * Reserves bytes. 0, or -ENOMEM when the tenant's total would pass its limit (after dead claims were swept), or
 * -ESTALE when the claim is not the caller's any more (a forked child, a cleared claim): take a new one.
 */
int ll_memory_reserve(struct ll_claim *claim, uint64_t bytes);

/* Reserves without asking the limit: for what is there already (a context that was larger than foretold). */
void ll_memory_charge(struct ll_claim *claim, uint64_t bytes);

/* Gives bytes back; more than the claim has is cut to what it has. */
void ll_memory_release(struct ll_claim *claim, uint64_t bytes);

/* Relaxed reads, a few ns. */
void ll_memory_look(const struct ll_claim *claim, struct ll_memory_view *ret_view);

/* Says where the program's memory is. Two relaxed stores and one with release. */
void ll_memory_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency);

/*
 * What the processes of a tenant ask of each other.
 *
 * A process may keep memory that it does not use just now, in pools, and is charged for it. One that is refused by the
 * limit asks the tenant's others for theirs and wakes them (turn.h); each gives up what it can and answers. A
 * process that is stopped does not: whoever asks waits only as long as it likes.
 *
 * Any thread of the claim's owner.
 */

/* How many were asked: those that have memory. 0 without a tenant. */
unsigned ll_siblings_ask(struct ll_claim *claim, uint64_t now_ns);

/* How many of the others have been asked, by anyone, and have not answered yet. */
unsigned ll_siblings_unanswered(const struct ll_claim *claim);

/* Whether the claim's owner is asked, and that it has done what it can. */
bool ll_siblings_do_ask(const struct ll_claim *claim);
void ll_siblings_answer(struct ll_claim *claim);

#endif
