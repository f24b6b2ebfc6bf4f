/*
 * managed.h - managed memory, which moves to the card that uses it, as far as there is room.
 *
 * It is in the host until the card uses it. A memset, a copy, a prefetch, or a kernel that gets an address in it moves
 * the whole allocation to the card. The part that does not fit stays in the host, and nothing fails.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_MANAGED_H
#define LOADLINE_SIM_CUDA_LOCAL_MANAGED_H

#include "cuda/local/state.h"

/* Returns the managed memory that contains all of [address, address + bytes), or NULL. */
struct sim_memory *sim_managed_find(uint64_t address, uint64_t bytes);

/* Moves the managed memory that contains the address to the card. Any address is allowed. */
void sim_managed_touch(uint64_t address);

/* Moves managed memory back to the host. */
void sim_managed_leave_card(struct sim_memory *memory);

#endif
