/*
 * ipc.h - the memory of a ticket (local/arena.h). The local lock must be held.
 */
#ifndef LOADLINE_SIM_CUDA_IPC_H
#define LOADLINE_SIM_CUDA_IPC_H

#include "cuda/local/arena.h"
#include "cuda/local/state.h"

/* Adds the memory of a ticket to this process, and makes the process a holder of the ticket's share. model: the origin,
 * the context and other fields of the range. INVALID_VALUE: the memory is gone. OUT_OF_MEMORY. */
ll_cu_result sim_ticket_open(const struct sim_ticket *ticket, const struct sim_memory *model, uint64_t *ret_address);

/* Fills in a ticket for the bytes of a range, and lends the memory to processes that open the ticket. counted_bytes:
 * the memory that it takes on the card. OUT_OF_MEMORY. */
ll_cu_result sim_ticket_of(struct sim_memory *memory, enum sim_ticket_kind kind, uint64_t counted_bytes,
			   struct sim_ticket *ret_ticket);

#endif
