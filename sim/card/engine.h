/*
 * engine.h - the card model: what runs when.
 *
 * The world is a function of time. sim_advance brings it from where it is to now, from one thing that happens to the
 * next, each at its exact time. So a kernel that ends between two calls ends when it would have, however late the next
 * call comes. Functions are called with the world locked, unless they say otherwise.
 *
 * Time sharing: contexts with work take turns, one at a time, `slice_ns` each. Between two turns the card runs nobody
 * for `switch_ns`. A turn serves what is in the queue: once nothing waits behind what runs, the turn ends with that.
 * Kernels of one context run together as long as their threads fit on the SMs. Copies use two copy engines, one per
 * direction, beside whatever runs.
 */
#ifndef LOADLINE_SIM_CARD_ENGINE_H
#define LOADLINE_SIM_CARD_ENGINE_H

#include "card/world.h"

/* Clears away dead processes, then brings every card to now_ns (CLOCK_MONOTONIC). Time never runs backwards: an earlier
 * now is ignored. wall_offset_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC. */
void sim_advance(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns);

/* Brings every card to now, by this machine's clocks. */
void sim_advance_to_now(struct sim_world *w);

/* Returns CLOCK_REALTIME minus CLOCK_MONOTONIC. It needs no world. */
uint64_t sim_wall_offset_ns(void);

/* Returns the next time at which anything happens by itself. The world must be advanced. SIM_NEVER: nothing will. The
 * windows of meters do not count. */
uint64_t sim_next_event_ns(struct sim_world *w);

/*
 * Looks whether the scenario wants a call to fail or to hang. Every exported function calls it first, with its own
 * name, and without the world's lock. It sleeps while the function is to hang or the machine is suspended. Returns the
 * status to answer at once; 0: the call goes on. It costs one load while there is no fault.
 */
uint32_t sim_fault_check(struct sim_world *w, const char *function);

#endif
