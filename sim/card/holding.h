/*
 * holding.h - memory of a card that processes hold outside of contexts: physical memory by cuMemCreate, and pools.
 *
 * What one process alone holds is a sum per card. What it has exported is a share: charged once, until the last process
 * that holds it lets go or dies. All called with the world locked; those that take want it advanced.
 */
#ifndef LOADLINE_SIM_CARD_HOLDING_H
#define LOADLINE_SIM_CARD_HOLDING_H

#include "card/world.h"

/* -ENOMEM: the card is full. */
int sim_holding_take(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);
void sim_holding_give_back(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Makes `bytes` that proc holds on card a share. SIM_NONE: there are too many. */
uint32_t sim_share_new(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);
/* Another holder. False: it is gone, or the slot is another one's by now. */
bool sim_share_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);
void sim_share_leave(struct sim_world *w, uint32_t index, uint32_t proc);

/* Everything that a process holds, on every card. */
void sim_holdings_drop(struct sim_world *w, uint32_t proc);

/* In use on a card and its slices; by one process (a share counts for the first of its holders), or SIM_NONE: by all.
 */
uint64_t sim_holding_bytes(const struct sim_world *w, uint32_t card, uint32_t proc);

#endif
