/*
 * holding.h - memory of processes outside of contexts: physical memory by cuMemCreate, pools, and shared events.
 *
 * Memory of a single process is a sum for each card. Exported memory is a share, which is charged once. It is freed
 * when the last process that holds it has given it up or ended, and its last descriptor is closed (descriptor.h).
 * Allocations and pools that a process lends are shares too, which count nothing while the lender has the memory
 * itself. A shared event has the stream and the position of its last record. The world must be locked for all calls,
 * and brought up to now for calls that take memory.
 */
#ifndef LOADLINE_SIM_CARD_HOLDING_H
#define LOADLINE_SIM_CARD_HOLDING_H

#include "card/world.h"

/* Takes memory of a card. -ENOMEM: the card is full, or an MPS client has reached its limit. */
int sim_holding_take(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Returns memory that only this process holds. */
void sim_holding_give_back(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Makes a share of bytes that proc holds on a card. SIM_NONE: there are too many shares. */
uint32_t sim_share_new(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Makes a share of bytes that are counted in proc's own memory until sim_share_end_loan. SIM_NONE: there are too many
 * shares. */
uint32_t sim_share_lend(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* The lender frees the memory. True: it has no holder. False: the share counts by itself from now on. */
bool sim_share_end_loan(struct sim_world *w, uint32_t index);

/* Returns whether the share exists, and a process or a descriptor holds it. */
bool sim_share_is_held(const struct sim_world *w, uint32_t index, uint32_t generation);

/* Returns whether a process or a descriptor holds an existing share. */
bool sim_share_has_holder(const struct sim_share *share, uint32_t index);

/* Adds a holder to a share. False: the share has ended; its slot may have another one. */
bool sim_share_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);

/* Removes a holder from a share. True: it was the last one, and the memory is freed. */
bool sim_share_leave(struct sim_world *w, uint32_t index, uint32_t proc);

/* Gives up all memory that a process holds, on every card. */
void sim_holdings_drop(struct sim_world *w, uint32_t proc);

/* Makes a shared event that proc holds. SIM_NONE: there are too many. */
uint32_t sim_shared_event_new(struct sim_world *w, uint32_t proc);
/* Adds a holder. False: the event has ended; its slot may have another one. */
bool sim_shared_event_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);
/* Removes a holder. The last one frees the slot. */
void sim_shared_event_leave(struct sim_world *w, uint32_t index, uint32_t proc);
/* Removes a process from all events that it holds. */
void sim_shared_events_drop(struct sim_world *w, uint32_t proc);

#endif
