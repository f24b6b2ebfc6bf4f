/*
 * dispatch.h - which kernels run on the SMs. It is a part of the engine (engine.h), which calls it.
 *
 * Kernels of the tenant that has the card start when there is room for their threads, on the card and within the limits
 * of their context. The order is: kernels of MPS clients with normal priority, then by the priority of their streams,
 * then by submission. A kernel that runs in waves makes room between two waves for a kernel of higher priority.
 */
#ifndef LOADLINE_SIM_CARD_DISPATCH_H
#define LOADLINE_SIM_CARD_DISPATCH_H

#include "card/meter.h"
#include "card/world.h"

/* Ends, resumes and starts the kernels of a card at the world's now. Returns whether anything changed. */
bool sim_dispatch_settle(struct sim_world *w, uint32_t card_index);

/* Returns when a kernel that blocks another one ends a wave. SIM_NEVER: no kernel will. */
uint64_t sim_dispatch_next_ns(struct sim_world *w, uint32_t card_index);

/* Returns the load of the card until something changes. */
struct sim_load sim_dispatch_load(struct sim_world *w, uint32_t card_index);

#endif
