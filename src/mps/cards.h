/*
 * cards.h - which cards a daemon shows to its clients. Clients see these cards only, numbered from 0 in this order.
 */
#ifndef LOADLINE_MPS_CARDS_H
#define LOADLINE_MPS_CARDS_H

#include <stddef.h>

#include "driver/cards.h"
#include "mps/place.h"

struct ll_err;

/*
 * Gives the cards that the daemon shows. They are read from the record of its start (record.h); without a record from
 * the daemon's own CUDA_VISIBLE_DEVICES, if /proc shows it; else they are all cards. *ret_cards is one allocation for
 * free(3); the cards are the driver's. -ENOMEM.
 */
int ll_mps_cards_read(const struct ll_driver *driver, const char *folder, const struct ll_mps_place *place,
		      const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

/* Returns the card's number at the daemon; -1: the daemon does not show it. */
int ll_mps_cards_number(const struct ll_card *const *cards, size_t count, const struct ll_card *card);

#endif
