/*
 * memory.h - how much of a card's memory is in use, by whom, and who may take more.
 *
 * A card counts all of its memory: that of contexts, that of processes outside of contexts (holding.h), and that of
 * processes outside of the simulation. A physical card counts its MIG slices too. All functions are called with the
 * world locked and advanced. They change nothing but a card's high mark.
 */
#ifndef LOADLINE_SIM_CARD_MEMORY_H
#define LOADLINE_SIM_CARD_MEMORY_H

#include "card/world.h"

/* Returns the memory in use on a card, in bytes, without what the driver reserves. */
uint64_t sim_card_used_bytes(struct sim_world *w, uint32_t card);

/* Returns the memory that one process uses on a card, in bytes, as NVML reports it. 0: the process uses nothing. */
uint64_t sim_proc_used_bytes(struct sim_world *w, uint32_t card, uint32_t proc);

/* Returns what a context takes, in bytes: the context itself and its allocations. Small allocations share blocks of
 * 2 MiB. */
uint64_t sim_context_used_bytes(const struct sim_context *context);

/* Returns whether the process may take `bytes` more: the card has room, and the process stays within its memory limit
 * if it is a client of MPS. If so, the caller takes them, and the card's high mark counts them already. */
bool sim_proc_has_room(struct sim_world *w, uint32_t card, uint32_t proc, uint64_t bytes);

/* Returns what a client of MPS may still take of a card under its memory limit, in bytes. UINT64_MAX: the process has
 * no limit. */
uint64_t sim_mps_room_bytes(struct sim_world *w, uint32_t card, uint32_t proc);

#endif
