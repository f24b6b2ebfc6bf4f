/*
 * visible.h - CUDA_VISIBLE_DEVICES and CUDA's own order of cards.
 */
#ifndef LOADLINE_SIM_CARD_VISIBLE_H
#define LOADLINE_SIM_CARD_VISIBLE_H

#include "card/world.h"

/*
 * Fills ret_cards with the cards that CUDA shows, in its order, and returns their number. Without `list` (NULL) these
 * are all cards that are not gone. Otherwise they are the cards that `list` names by ordinal, UUID, prefix of a UUID,
 * or MIG UUID, up to the first unknown one. The first slice represents a card in MIG mode. With
 * CUDA_DEVICE_ORDER=PCI_BUS_ID the scenario's cuda-order is ignored.
 */
int sim_visible_cards(const struct sim_world *w, const char *list, uint32_t ret_cards[SIM_CARDS]);

/* The same, if only the cards in `all` exist. A client of an MPS server uses it: its ordinals count the server's
 * cards. */
int sim_visible_among(const struct sim_world *w, const uint32_t *all, int all_count, const char *list,
		      uint32_t ret_cards[SIM_CARDS]);

#endif
