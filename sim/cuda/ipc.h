/*
 * ipc.h - memory that a ticket (local/arena.h) stands for. The local lock must be held.
 */
#ifndef LOADLINE_SIM_CUDA_IPC_H
#define LOADLINE_SIM_CUDA_IPC_H

#include "cuda/local/arena.h"
#include "cuda/local/state.h"

/* Makes the memory of a ticket known here, and this process a holder of its share, which is in the ticket. model: the
 * origin, the context and what else the range is to have. INVALID_VALUE: the memory is gone. OUT_OF_MEMORY. */
ll_cu_result sim_ticket_open(const struct sim_ticket *ticket, const struct sim_memory *model, uint64_t *ret_address);

/* Fills in a ticket for the bytes of a piece of memory, and lends the memory to whoever opens it. counted_bytes: what
 * it takes of the card. OUT_OF_MEMORY. */
ll_cu_result sim_ticket_of(struct sim_memory *memory, enum sim_ticket_kind kind, uint64_t counted_bytes,
			   struct sim_ticket *ret_ticket);

#endif
