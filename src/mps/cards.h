/*
 * cards.h - which cards a daemon shows to its clients: those and no others, numbered from 0 in this order.
 */
#ifndef LOADLINE_MPS_CARDS_H
#define LOADLINE_MPS_CARDS_H

#include <stddef.h>

#include "driver/cards.h"
#include "mps/place.h"

struct ll_err;

/*
 * Taken from the record of who started it, else from the daemon's own CUDA_VISIBLE_DEVICES where /proc shows that, else
 * all. *ret_cards is one allocation for free(3); the cards are the driver's. -ENOMEM.
 */
int ll_mps_cards_read(const struct ll_driver *driver, const char *folder, const struct ll_mps_place *place,
		      const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

/* The card's number at the daemon; -1: it is not shown. */
int ll_mps_cards_number(const struct ll_card *const *cards, size_t count, const struct ll_card *card);

#endif
