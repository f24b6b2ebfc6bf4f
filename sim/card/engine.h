/*
 * engine.h - the card model: what runs when.
 *
 * The world is a function of time. sim_advance brings it from where it is to now, from one thing that happens to the
 * next, each at its exact time, whoever calls and however late: a kernel that ends between two calls ends when it would
 * have. All functions are called with the world locked; those that look at queues want it advanced first.
 *
 * Time sharing: contexts with work take turns, one at a time, `slice_ns` each, with `switch_ns` in between in which the
 * card runs nobody. A turn serves what is in the queue: once nothing waits behind what runs, it ends with that. Kernels
 * of one context run together as long as their threads fit on the SMs. Copies use two copy engines, one per direction,
 * beside whatever runs.
 */
#ifndef LOADLINE_SIM_CARD_ENGINE_H
#define LOADLINE_SIM_CARD_ENGINE_H

#include "card/world.h"

/* Clears away dead processes, then brings every card to now_ns. Time never runs backwards: an earlier now is ignored.
 */
void sim_advance(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns);

/* The same with this machine's clocks. */
void sim_advance_to_now(struct sim_world *w);

/* CLOCK_REALTIME minus CLOCK_MONOTONIC. */
uint64_t sim_wall_offset_ns(void);

/* The next time anything happens by itself; SIM_NEVER for a quiet world. Meters' windows do not count. */
uint64_t sim_next_event_ns(struct sim_world *w);

/* Appends a copy of op (kind, length and so on; identity and times are filled in) to a stream. -EAGAIN: queue full. */
int sim_submit(struct sim_world *w, uint32_t index, const struct sim_op *op, uint64_t *ret_position);

/* Ends an operation that only its owner can end (SIM_OP_HOST, SIM_OP_VALUE) at the world's now. */
void sim_finish(struct sim_world *w, uint32_t index, uint64_t position);

/* When operation `position` of a stream was done, or SIM_NEVER. A stream of another generation is long done: 0. */
uint64_t sim_done_ns(struct sim_world *w, uint32_t index, uint32_t generation, uint64_t position);

/*
 * The first call of every exported function, with its own name and without the lock. Sleeps while the function is to
 * hang or the machine is suspended. Returns the status to answer at once; 0: go on. Costs one load while there is no
 * fault.
 */
uint32_t sim_fault_check(struct sim_world *w, const char *function);

#endif
