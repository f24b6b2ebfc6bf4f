/*
 * ipc.h - memory that a ticket stands for, made known here.
 */
#ifndef LOADLINE_SIM_CUDA_IPC_H
#define LOADLINE_SIM_CUDA_IPC_H

#include "cuda/arena.h"
#include "cuda/local.h"

/* Takes nothing of the card: it is charged to its owner. model says origin, context and card. Local lock held. */
ll_cu_result sim_ticket_open(const struct sim_ticket *ticket, const struct sim_memory *model, uint64_t *ret_address);

/* A ticket for that memory's bytes. */
void sim_ticket_of(const struct sim_memory *memory, enum sim_ticket_kind kind, struct sim_ticket *ret_ticket);

#endif
