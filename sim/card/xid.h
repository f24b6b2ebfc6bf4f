/*
 * xid.h - errors of a card: NVML reports an Xid, and contexts are lost.
 *
 * A fault in one client of an MPS server hits all clients of that server on the card. All functions are called with the
 * world locked and advanced. Errors are statuses of CUDA.
 */
#ifndef LOADLINE_SIM_CARD_XID_H
#define LOADLINE_SIM_CARD_XID_H

#include "card/world.h"

/* Reports an Xid on a card. Every context on the card answers `error` from now on. pid: the one process whose contexts
 * are hit; 0 for all. */
void sim_card_xid(struct sim_world *w, uint32_t card, uint32_t xid, uint32_t error, int32_t pid);

/* Reports an Xid that one context has caused. This context alone is lost, with the neighbours it has under MPS. */
void sim_report_fault(struct sim_world *w, uint32_t context, uint32_t xid, uint32_t error);

#endif
