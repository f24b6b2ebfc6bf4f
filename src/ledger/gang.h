/*
 * gang.h - a tenant on several cards takes its turns together.
 *
 * Its kernels may wait for each other across cards (collectives). One whose partner does not run spins, keeps its card
 * busy with nothing, and cannot be stopped. So the turn on the tenant's first card decides for all of them: while the
 * tenant has it, it is called to the others, before whoever else would be called there. A tenant that does nothing on
 * its first card follows none: its turns on the others are as those of a tenant on one card. And it gives that turn
 * away only when none of its cards has work any more: what one card has begun may need the others' launches to end, so
 * where a card has none left, and another still has, as many pass there as the other has.
 *
 * Where nobody else on a card follows the same first one, nothing of that is done there: its turns are the tenant's
 * own, or a tenant's that would gain nothing by it.
 *
 * All of it is a few words of the tenant's row in the first card's ledger, written by its processes on the others. They
 * are older than LL_GANG_FRESH_NS soon after a process stopped writing them, and then count for nothing. One that has
 * nothing left takes back what it said last: by LL_GANG_LOOK_NS after it was said, each other that has something left
 * has said so.
 */
#ifndef LOADLINE_LEDGER_GANG_H
#define LOADLINE_LEDGER_GANG_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "ledger/records.h"

/*
 * Looks at the first card's ledger for the tenant of that id, tells it how many launches the caller's own card has of
 * the tenant, and calls the claim, and no other that follows that card, if the tenant has the turn there. To be said
 * again and again, each LL_GANG_LOOK_NS at least. gang: of the claim's last look; all 0 before the first. Some hundred
 * ns.
 */
void ll_gang_look(struct ll_claim *claim, const struct ll_ledger *first, uint64_t tenant_id, uint32_t launches,
		  uint64_t now_ns, struct ll_gang *gang);

#endif
