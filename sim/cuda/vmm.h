/*
 * vmm.h - addresses and physical memory apart: reservations, physical memory with its references, and what is
 * mapped where. Physical memory is the process's; it goes back to the card with its last reference: handles that the
 * program holds, and mappings. All within the local lock.
 */
#ifndef LOADLINE_SIM_CUDA_VMM_H
#define LOADLINE_SIM_CUDA_VMM_H

#include "cuda/arena.h"
#include "cuda/local.h"

struct sim_physical {
	struct ll_cu_mem_allocation_prop prop;
	uint32_t card;
	uint64_t bytes;
	uint64_t offset; /* in the arena; of imported memory the ticket says where */
	bool is_imported;
	struct sim_ticket ticket;
	uint32_t share; /* in the world, or SIM_NONE: nobody else knows it */
	unsigned handles;
	unsigned mappings;
	struct sim_physical *next;
};

/* NULL: the handle is none. */
struct sim_physical *sim_physical_of(ll_cu_mem_handle handle);
/* A copy of `model` in the list, with one handle. NULL: no memory. */
struct sim_physical *sim_physical_add(const struct sim_physical *model);
/* Frees it when nothing refers to it any more. */
void sim_physical_settle(struct sim_physical *physical);
/* Takes it out of the list and frees it: nothing was ever held for it. */
void sim_physical_drop(struct sim_physical *physical);
/* Is it a location that physical memory can be at? Then its device. */
bool sim_location_is_device(const struct ll_cu_mem_location *location, ll_cu_device *ret_device);

#endif
