/*
 * dispatch.h - which kernels are on the SMs. A part of the engine (engine.h), whose functions these are.
 *
 * Kernels of the tenant that has the card start when there is room for their threads, on the card and within what their
 * context may use: those of MPS clients with normal priority first, then by the priority of their streams, then in
 * order of submission. A kernel whose blocks come in waves makes room between two of them for one of higher priority.
 */
#ifndef LOADLINE_SIM_CARD_DISPATCH_H
#define LOADLINE_SIM_CARD_DISPATCH_H

#include "card/meter.h"
#include "card/world.h"

/* Ends, resumes and starts the kernels of a card at the world's now. Returns whether anything changed. */
bool sim_dispatch_settle(struct sim_world *w, uint32_t card_index);

/* Returns when a kernel that is in the way of another comes to the end of a wave. SIM_NEVER: none will. */
uint64_t sim_dispatch_next_ns(struct sim_world *w, uint32_t card_index);

/* Returns what the card does until something changes. */
struct sim_load sim_dispatch_load(struct sim_world *w, uint32_t card_index);

#endif
