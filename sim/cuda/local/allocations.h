/*
 * allocations.h - the table of addresses that the card can access: device memory and host memory.
 *
 * A pointer into the table is valid until the table changes.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_ALLOCATIONS_H
#define LOADLINE_SIM_CUDA_LOCAL_ALLOCATIONS_H

#include "cuda/local/state.h"

/* Returns the range that contains the address, or NULL. */
struct sim_memory *sim_memory_find(uint64_t address);

/* Returns the first range that ends after the address, or NULL. */
struct sim_memory *sim_memory_after(uint64_t address);

/* Returns where the bytes [address, address + bytes) are in this process. NULL: the card knows no such memory, or has
 * no access to it. */
char *sim_memory_at(uint64_t address, uint64_t bytes);

/* Adds a copy of a range to the table. -ENOMEM. */
int sim_memory_insert(const struct sim_memory *memory);

/* Removes a range from the table. Its bytes and its charge stay. */
void sim_memory_remove(const struct sim_memory *memory);

/* Charges memory->bytes to a context, rounded as the driver does, and sets charged_bytes. -ENOMEM: the card is full, or
 * an MPS client has reached its limit; charged_bytes is then the charge that was refused. */
int sim_memory_charge(const struct ll_cu_context *context, struct sim_memory *memory);

/* Returns a range's charge to the card. */
void sim_memory_refund(const struct sim_memory *memory);

/* Allocates device memory that a context is charged for. is_global: it is a module's variable. OUT_OF_MEMORY. */
ll_cu_result sim_memory_new(struct ll_cu_context *context, size_t bytes, bool is_global, struct sim_memory *ret_memory);

/* Allocates addresses and bytes for a graph's memory. graph_memory.h counts its memory on the card. OUT_OF_MEMORY. */
ll_cu_result sim_memory_new_of_graph(uint32_t card, size_t bytes, struct sim_graph_memory *graph,
				     uint64_t *ret_address);

/* Frees a range of any kind: its bytes, its addresses, its charge. */
void sim_memory_free(const struct sim_memory *memory);

/* Frees all ranges of a context. */
void sim_memory_free_context(const struct ll_cu_context *context);

#endif
