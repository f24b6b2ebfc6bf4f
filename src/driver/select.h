/*
 * select.h - which of a list of cards a text names. Private to src/driver; the grammar is at ll_cards_select.
 */
#ifndef LOADLINE_DRIVER_SELECT_H
#define LOADLINE_DRIVER_SELECT_H

#include "driver/cards.h"

int ll_select(const struct ll_card *cards, size_t count, const char *text, const struct ll_card ***ret_cards,
	      size_t *ret_count, struct ll_err *err);

#endif
