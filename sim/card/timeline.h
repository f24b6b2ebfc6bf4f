/*
 * timeline.h - when a kernel was on the card: its interruptions, listed for kernels that report them.
 *
 * Each stream remembers the last SIM_GAPS interruptions of its kernels. An interruption ends while its kernel is the
 * stream's oldest, so whoever collects a kernel soon finds its own.
 */
#ifndef LOADLINE_SIM_CARD_TIMELINE_H
#define LOADLINE_SIM_CARD_TIMELINE_H

#include "card/world.h"

/* Lists an interruption that ends at the world's now. op still says since when it was paused. */
void sim_timeline_note(struct sim_world *w, const struct sim_op *op);

/* Copies the interruptions of an operation, oldest first, at most `capacity`. Returns how many it has copied. */
unsigned sim_timeline_gaps(const struct sim_world *w, uint32_t stream, uint64_t op_id, struct sim_gap *gaps,
			   unsigned capacity);

#endif
