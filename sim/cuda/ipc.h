/*
 * ipc.h - memory that a ticket (local/arena.h) stands for. The local lock must be held.
 */
#ifndef LOADLINE_SIM_CUDA_IPC_H
#define LOADLINE_SIM_CUDA_IPC_H

#include "cuda/local/arena.h"
#include "cuda/local/state.h"

/* Makes the memory of a ticket known here. It takes nothing of the card, for its owner is charged. model: the origin,
 * the context and what else the range is to have. INVALID_VALUE: the owner is gone. OUT_OF_MEMORY. */
ll_cu_result sim_ticket_open(const struct sim_ticket *ticket, const struct sim_memory *model, uint64_t *ret_address);

/* Fills in a ticket for the bytes of a piece of memory. */
void sim_ticket_of(const struct sim_memory *memory, enum sim_ticket_kind kind, struct sim_ticket *ret_ticket);

#endif
