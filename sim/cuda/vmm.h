/*
 * vmm.h - virtual memory management: reserved addresses, physical memory with its references, and mappings.
 *
 * Physical memory belongs to the process. It is returned to the card with its last reference. References are handles of
 * the program, and mappings. The local lock must be held.
 */
#ifndef LOADLINE_SIM_CUDA_VMM_H
#define LOADLINE_SIM_CUDA_VMM_H

#include "cuda/local/arena.h"
#include "cuda/local/state.h"

struct sim_physical {
	struct ll_cu_mem_allocation_prop prop;
	uint32_t card;
	uint64_t bytes;
	uint64_t offset; /* in the arena; of imported memory the ticket has it */
	bool is_imported;
	struct sim_ticket ticket;
	char *imported_at; /* a mapping that keeps imported bytes when their maker ends; NULL: not imported */
	uint32_t share;    /* in the world, or SIM_NONE: no other process knows it */
	unsigned handles;
	unsigned mappings;
	struct sim_physical *next;
};

/* Returns the physical memory of a handle; NULL: there is none. */
struct sim_physical *sim_physical_of(ll_cu_mem_handle handle);

/* Puts a copy of `model` into the list, with one handle. NULL: out of memory. */
struct sim_physical *sim_physical_add(const struct sim_physical *model);

/* Frees physical memory if nothing refers to it any more. */
void sim_physical_settle(struct sim_physical *physical);

/* Removes physical memory from the list and frees it. It must never have been charged. */
void sim_physical_drop(struct sim_physical *physical);

#endif
