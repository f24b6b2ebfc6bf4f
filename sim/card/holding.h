/*
 * holding.h - what processes hold outside of contexts: physical memory by cuMemCreate, pools, and shared events.
 *
 * Memory that one process alone holds is a sum per card. Memory that it has exported is a share, which is charged once,
 * until the last process that holds it gives it up or dies, and the last descriptor of it is closed (descriptor.h).
 * What a process lends of its allocations and pools is a share that counts nothing while the lender has the memory
 * itself. A shared event says where in which stream its last record is. The world must be locked for all calls, and
 * brought up to now for those that take something.
 */
#ifndef LOADLINE_SIM_CARD_HOLDING_H
#define LOADLINE_SIM_CARD_HOLDING_H

#include "card/world.h"

/* Takes memory of a card. -ENOMEM: the card is full, or an MPS client has reached its limit. */
int sim_holding_take(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Gives memory back that the process alone holds. */
void sim_holding_give_back(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Makes a share of bytes that proc holds on a card. SIM_NONE: there are too many shares. */
uint32_t sim_share_new(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* Makes a share of bytes that are counted in proc's own memory until sim_share_end_loan. SIM_NONE: there are too many
 * shares. */
uint32_t sim_share_lend(struct sim_world *w, uint32_t proc, uint32_t card, uint64_t bytes);

/* The lender frees the memory. True: nobody holds it. Else it counts by itself from now on. */
bool sim_share_end_loan(struct sim_world *w, uint32_t index);

/* Whether the share is there, and a process or a descriptor holds it. */
bool sim_share_is_held(const struct sim_world *w, uint32_t index, uint32_t generation);

/* Whether a process or a descriptor holds a share that is there. */
bool sim_share_has_holder(const struct sim_share *share, uint32_t index);

/* Adds a holder to a share. False: the share is gone, and its slot may be used by another one. */
bool sim_share_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);

/* Removes a holder from a share. True: the memory is freed, because nobody else holds it. */
bool sim_share_leave(struct sim_world *w, uint32_t index, uint32_t proc);

/* Gives up all memory that a process holds, on every card. */
void sim_holdings_drop(struct sim_world *w, uint32_t proc);

/* Makes a shared event that proc holds. SIM_NONE: there are too many. */
uint32_t sim_shared_event_new(struct sim_world *w, uint32_t proc);
/* Adds a holder. False: the event is gone, and its slot may be used by another one. */
bool sim_shared_event_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);
/* Removes a holder. The last one frees the slot. */
void sim_shared_event_leave(struct sim_world *w, uint32_t index, uint32_t proc);
/* Removes a process from all events that it holds. */
void sim_shared_events_drop(struct sim_world *w, uint32_t proc);

#endif
