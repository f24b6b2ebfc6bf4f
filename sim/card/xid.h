/*
 * xid.h - errors of a card: NVML reports an Xid, and contexts are lost.
 *
 * A fault in one client of an MPS server hits all clients of that server on the card. All functions are called with the
 * world locked and advanced. Errors are statuses of CUDA.
 */
#ifndef LOADLINE_SIM_CARD_XID_H
#define LOADLINE_SIM_CARD_XID_H

#include "card/world.h"

/* Reports an Xid on a card. Every context on the card returns `error` from now on. pid: the process whose contexts are
 * affected; 0: all processes. */
void sim_card_xid(struct sim_world *w, uint32_t card, uint32_t xid, uint32_t error, int32_t pid);

/* Reports an Xid that one context has caused. Only this context is lost, and under MPS its neighbours. */
void sim_report_fault(struct sim_world *w, uint32_t context, uint32_t xid, uint32_t error);

#endif
