/*
 * visible.h - CUDA_VISIBLE_DEVICES and CUDA's own order of cards.
 */
#ifndef LOADLINE_SIM_CARD_VISIBLE_H
#define LOADLINE_SIM_CARD_VISIBLE_H

#include "card/world.h"

/*
 * Fills ret_cards with the cards CUDA shows, in its order, and returns how many: all that are not gone, or those that
 * `list` (NULL: none given) names by ordinal, UUID or beginning of one, or MIG UUID, up to the first it does not know.
 * Of a card in MIG mode the first slice stands for the card. With CUDA_DEVICE_ORDER=PCI_BUS_ID the scenario's
 * cuda-order does not count.
 */
int sim_visible_cards(const struct sim_world *w, const char *list, uint32_t ret_cards[SIM_CARDS]);

/* Does the same if only these cards are there. It serves a client of an MPS server, whose ordinals count the server's
 * cards. */
int sim_visible_among(const struct sim_world *w, const uint32_t *all, int all_count, const char *list,
		      uint32_t ret_cards[SIM_CARDS]);

#endif
