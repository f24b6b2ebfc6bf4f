/*
 * managed.h - managed memory moves to the card that uses it, as far as there is room.
 *
 * It is the host's until the card uses it. A memset, a copy, a prefetch, or a kernel that is given an address in it
 * brings the whole allocation to the card. What does not fit stays with the host, and nothing fails.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_MANAGED_H
#define LOADLINE_SIM_CUDA_LOCAL_MANAGED_H

#include "cuda/local/state.h"

/* Returns the managed memory that has all of [address, address + bytes), or NULL. */
struct sim_memory *sim_managed_find(uint64_t address, uint64_t bytes);

/* Brings the managed memory that has the address to the card. The address may be any. */
void sim_managed_touch(uint64_t address);

/* Gives managed memory back to the host. */
void sim_managed_leave_card(struct sim_memory *memory);

#endif
