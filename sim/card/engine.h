/*
 * engine.h - the card model: what runs at which time.
 *
 * The world is a function of time. sim_advance brings it to now, from one event to the next, each at its exact time. So
 * the end of a kernel between two calls has its exact time, however late the next call is. Functions are called with
 * the world locked, unless they say otherwise.
 *
 * Contexts take turns (turn.h). Kernels of one context run together as long as their threads fit on the SMs. Copies use
 * two copy engines, one for each direction, beside the running kernels.
 */
#ifndef LOADLINE_SIM_CARD_ENGINE_H
#define LOADLINE_SIM_CARD_ENGINE_H

#include "card/world.h"

/* Removes dead processes, then brings every card to now_ns (CLOCK_MONOTONIC). Time never runs backwards: an earlier now
 * is ignored. wall_offset_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC. */
void sim_advance(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns);

/* Brings every card to now, by this machine's clocks. */
void sim_advance_to_now(struct sim_world *w);

/* Returns CLOCK_REALTIME minus CLOCK_MONOTONIC. It needs no world. */
uint64_t sim_wall_offset_ns(void);

/* Returns the next time at which something happens without a call. The world must be advanced. SIM_NEVER: nothing will
 * happen. The windows of meters do not count. */
uint64_t sim_next_event_ns(struct sim_world *w);

/*
 * Checks whether the scenario makes a call fail or hang. Every exported function calls it first, with its own name, and
 * without the world's lock. It sleeps while the function hangs or the machine is suspended. Returns the status to
 * return at once; 0: the call continues. It costs one load if there is no fault.
 */
uint32_t sim_fault_check(struct sim_world *w, const char *function);

#endif
