/*
 * gang.h - a tenant on several cards is a gang: it gets its turns on all its cards together, as in gang scheduling.
 *
 * Its kernels may wait for each other across cards (collectives). If the partner of such a kernel does not run, the
 * kernel spins, keeps its card busy with nothing, and cannot be stopped. So the turn on the tenant's first card decides
 * for all its cards. While the tenant has that turn, it has its gang's turn on the others, and goes first there.
 *
 * A tenant that does nothing on its first card is no gang: it takes turns on its other cards as a tenant on one card
 * does. If no other tenant on a card has the same first card, that card and the first one tell each other nothing of
 * their work: the tenant's turns there are its own.
 *
 * The tenant gives the turn on the first card away only when none of its cards has work any more. What one card has
 * begun may need launches on another card in order to end. So if one card has no launches left and another still has N,
 * N launches may pass on the first (shim/time/flow_others.c).
 *
 * All of it is a few words of the tenant's row in the first card's ledger, written by its processes on the others. They
 * count for LL_GANG_FRESH_NS after they were written. A process that has nothing left withdraws what it posted last.
 * Within LL_GANG_LOOK_NS each other process that has something left posts that.
 */
#ifndef LOADLINE_LEDGER_GANG_H
#define LOADLINE_LEDGER_GANG_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/claim.h"
#include "protocol/records.h"

/*
 * Looks at the first card's ledger for the tenant of that id, and posts there how many launches the caller's own card
 * has of the tenant. If the tenant has the turn there, the claim's tenant gets its gang's turn here, and no other
 * tenant with that first card has it any more. The caller repeats the call at least each LL_GANG_LOOK_NS. gang: of the
 * claim's last look; all 0 before the first. A look takes some hundred ns.
 */
void ll_gang_look(struct ll_claim *claim, const struct ll_ledger *first, uint64_t tenant_id, uint32_t launches,
		  uint64_t now_ns, struct ll_gang *gang);

#endif
