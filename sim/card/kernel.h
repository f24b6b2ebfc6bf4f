/*
 * kernel.h - one kernel's life on the SMs. It starts, is paused while another context has its turn, is resumed, and
 * ends.
 *
 * A timed kernel (spin_ns) ends by the clock: time in which it was paused counts. Any other kernel needs its length on
 * the card. A kernel that meets another one (meet_ns) spins, and gets on only while both are on their cards, as a
 * collective does. A kernel that takes part in stopping (epoch not 0) looks at the clock all the time, as the real one
 * does. It ends at once if it starts late, if it finds a pause over its limit, or if another kernel of its module has
 * stopped its epoch.
 */
#ifndef LOADLINE_SIM_CARD_KERNEL_H
#define LOADLINE_SIM_CARD_KERNEL_H

#include "card/world.h"

/*
 * Starts a kernel at the world's now. op belongs to a context on that card which may use `sms` of its SMs. What needs
 * time on the card and has blocks for more SMs than that takes longer in proportion. A grid of more blocks than fit at
 * once goes over the SMs in waves; if each of its blocks ends by the clock, each wave takes the kernel's length.
 */
void sim_kernel_start(struct sim_world *w, uint32_t card_index, uint32_t sms, struct sim_op *op);

/* Pauses a kernel at the world's now, and resumes it: another context has its turn in between. */
void sim_kernel_pause(struct sim_world *w, struct sim_op *op);
void sim_kernel_resume(struct sim_world *w, uint32_t card_index, struct sim_op *op);

/* Returns how long it takes until a kernel is between two waves and may make room for others. 0: it is. SIM_NEVER: it
 * has one wave only. */
uint64_t sim_kernel_to_boundary_ns(const struct sim_world *w, const struct sim_op *op);

/* Make a kernel leave the SMs between two waves, and go on with its next wave. None of its blocks sees a pause. */
void sim_kernel_yield(struct sim_world *w, struct sim_op *op);
void sim_kernel_go_on(struct sim_world *w, struct sim_op *op);

/* Return how many threads a kernel keeps on the card, and how many SMs it keeps busy. Its context may use `sms`. */
uint64_t sim_kernel_threads(uint32_t sms, const struct sim_op *op);
uint32_t sim_kernel_sms(uint32_t sms, const struct sim_op *op);

#endif
