/*
 * turn.h - which tenant has the card: slices, switches, and channels that are off.
 *
 * Contexts with work take turns, one at a time. Each has a slice of its own length; a slice of 0 is one of 1 us.
 * Between two turns the card runs nothing: for `switch_ns`, and for as long as it takes to save the kernels of the last
 * tenant that have not ended. The next one's slice has begun when its own kernels are restored. While nobody else wants
 * the card, one slice follows the other, without a switch. A turn ends early if nothing is queued behind the running
 * work.
 *
 * The streams of a context are on its compute channels, each on that of its hardware queue. Kernels of a stream whose
 * channel is off stand, in the middle of their work too. A tenant none of whose streams has other work has no turns.
 * Copies between host and card go on.
 *
 * All functions are called with the world locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_TURN_H
#define LOADLINE_SIM_CARD_TURN_H

#include "card/world.h"

/* Decides which tenant has the turn. Returns whether anything changed. */
bool sim_turn_settle(struct sim_world *w, struct sim_card *card);

/* Returns when the switch or the slice of the present turn ends. SIM_NEVER: the slice has no end, as nobody else wants
 * the card. A tenant must have the turn. */
uint64_t sim_turn_next_ns(struct sim_world *w, const struct sim_card *card);

/* Sets the length of a context's slice. If the context has the turn, a new slice begins. The clients of an MPS server
 * have no slices of their own: the server's is the card's. */
void sim_turn_set_slice(struct sim_world *w, uint32_t context, uint64_t slice_ns);

/* Ends the turn of a context if another tenant wants the card. */
void sim_turn_yield(struct sim_world *w, uint32_t context);

/* The tenant whose state is on the card goes, and no other comes. */
void sim_turn_end_stay(struct sim_world *w, struct sim_card *card);

/* Sets which of a context's compute channels are off: one bit for each. */
void sim_turn_put_off(struct sim_world *w, uint32_t context, uint32_t channels);

#endif
