/*
 * memory.h - how much of a card's memory is in use, by which process, and whether a process may take more.
 *
 * A card counts all of its memory: that of contexts, that of processes outside of contexts (holding.h), and that of
 * processes outside of the simulation. A physical card includes its MIG slices. All functions are called with the world
 * locked and advanced. They change only a card's high mark.
 */
#ifndef LOADLINE_SIM_CARD_MEMORY_H
#define LOADLINE_SIM_CARD_MEMORY_H

#include "card/world.h"

/* Returns the memory in use on a card, in bytes, without the driver's reserve. */
uint64_t sim_card_used_bytes(struct sim_world *w, uint32_t card);

/* Returns the memory that one process uses on a card, in bytes, as NVML reports it. 0: the process uses nothing. */
uint64_t sim_proc_used_bytes(struct sim_world *w, uint32_t card, uint32_t proc);

/* Returns the memory of a context, in bytes: the context itself and its allocations. Small allocations share blocks of
 * 2 MiB. */
uint64_t sim_context_used_bytes(const struct sim_context *context);

/* Returns whether the process may take `bytes` more: the card has room, and an MPS client stays within its memory
 * limit. If so, the caller must take them, because the card's high mark includes them already. */
bool sim_proc_has_room(struct sim_world *w, uint32_t card, uint32_t proc, uint64_t bytes);

/* Returns the memory that an MPS client may still take on a card under its limit, in bytes. UINT64_MAX: the process has
 * no limit. */
uint64_t sim_mps_room_bytes(struct sim_world *w, uint32_t card, uint32_t proc);

#endif
