/*
 * cards.h - chooses the cards that a hold takes from those that `-i` names.
 */
#ifndef LOADLINE_CLI_HOLD_CARDS_H
#define LOADLINE_CLI_HOLD_CARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cards.h"
#include "hold/config.h"

/*
 * Finds the cards of text (driver/cards.h) that can be held with this configuration, in PCI order. Cards of "all" that
 * do not answer cannot be held. With skips_unusable it leaves such cards out, each with a warning that has the reason.
 * Without it, one such card is an error, whose text has the reasons of all. It is also an error if no card is left.
 * *ret_cards is one allocation for free(3), NULL on errors. The driver owns the cards.
 */
int ll_hold_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_hold_config *config,
			 bool skips_unusable, const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

#endif
