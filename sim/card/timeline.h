/*
 * timeline.h - the interruptions of kernels, for kernels that report them.
 *
 * Each stream stores the last SIM_GAPS interruptions of its kernels. An interruption ends while its kernel is the
 * oldest of the stream. So a caller that reads a kernel's result soon finds the kernel's interruptions.
 */
#ifndef LOADLINE_SIM_CARD_TIMELINE_H
#define LOADLINE_SIM_CARD_TIMELINE_H

#include "card/world.h"

/* Adds an interruption that ends at the world's now. op still has the time since when it was paused. */
void sim_timeline_note(struct sim_world *w, const struct sim_op *op);

/* Copies the interruptions of an operation, oldest first, at most `capacity`. Returns the number of copied ones. */
unsigned sim_timeline_gaps(const struct sim_world *w, uint32_t stream, uint64_t op_id, struct sim_gap *gaps,
			   unsigned capacity);

#endif
