/*
 * kernel.h - a kernel on the SMs: it starts, is paused while another context has its turn, is resumed, and ends.
 *
 * A timed kernel (spin_ns) ends by the clock: paused time counts. Any other kernel needs its length on the card. A
 * kernel that meets another one (meet_ns) spins, and makes progress only while both are on their cards, as a collective
 * does. A kernel with an epoch that is not 0 reads the clock all the time, as the real one does. It ends at once if it
 * starts late, if it finds a pause over its limit, or if another kernel of its module has stopped its epoch.
 */
#ifndef LOADLINE_SIM_CARD_KERNEL_H
#define LOADLINE_SIM_CARD_KERNEL_H

#include "card/world.h"

enum { SIM_SM_THREADS = 2048 };

/*
 * Starts a kernel at the world's now. op belongs to a context on that card, which may use `sms` of its SMs. If the
 * kernel needs time on the card and has blocks for more SMs, it takes longer in proportion. A grid with more blocks
 * than fit at once runs in waves. If each of its blocks ends by the clock, each wave takes the kernel's length.
 */
void sim_kernel_start(struct sim_world *w, uint32_t card_index, uint32_t sms, struct sim_op *op);

/* Pause a kernel at the world's now, and resume it. Another context has its turn in between. */
void sim_kernel_pause(struct sim_world *w, struct sim_op *op);
void sim_kernel_resume(struct sim_world *w, uint32_t card_index, struct sim_op *op);

/* Returns the time until a kernel is between two waves and may make room for others. 0: it is there now. SIM_NEVER: it
 * has only one wave. */
uint64_t sim_kernel_to_boundary_ns(const struct sim_world *w, const struct sim_op *op);

/* Remove a kernel from the SMs between two waves, and continue it with its next wave. None of its blocks sees a
 * pause. */
void sim_kernel_yield(struct sim_world *w, struct sim_op *op);
void sim_kernel_go_on(struct sim_world *w, struct sim_op *op);

/* Return how many threads a kernel has on the card, and how many SMs it occupies. Its context may use `sms`. */
uint64_t sim_kernel_threads(uint32_t sms, const struct sim_op *op);
uint32_t sim_kernel_sms(uint32_t sms, const struct sim_op *op);

#endif
