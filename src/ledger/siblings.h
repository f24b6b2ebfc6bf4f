/*
 * siblings.h - what the processes of a tenant ask of each other.
 *
 * A process may keep memory that it does not use just now, in pools, and is charged for it. One that is refused by the
 * limit asks the tenant's others for theirs and wakes them (turn.h); each gives up what it can and answers. A
 * process that is stopped does not: whoever asks waits only as long as it likes.
 *
 * Any thread of the claim's owner.
 */
#ifndef LOADLINE_LEDGER_SIBLINGS_H
#define LOADLINE_LEDGER_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"

/* How many were asked: those that have memory. 0 without a tenant. */
unsigned ll_siblings_ask(struct ll_claim *claim, uint64_t now_ns);

/* How many of the others have been asked, by anyone, and have not answered yet. */
unsigned ll_siblings_unanswered(const struct ll_claim *claim);

/* Whether the claim's owner is asked, and that it has done what it can. */
bool ll_siblings_do_ask(const struct ll_claim *claim);
void ll_siblings_answer(struct ll_claim *claim);

#endif
