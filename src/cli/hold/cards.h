/*
 * cards.h - which of the cards that `-i` names a hold takes, and what becomes of the others.
 */
#ifndef LOADLINE_CLI_HOLD_CARDS_H
#define LOADLINE_CLI_HOLD_CARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cards.h"
#include "hold/config.h"

/*
 * The cards of text (driver/cards.h) that can be held as configured, in PCI order. Cards of "all" that do not answer
 * count among those that cannot. With skips_unusable these are left out, each with a warning that says why; without it
 * one is enough for an error, after such a line for each where several cards were named. An error also where none is
 * left. *ret_cards is one allocation for free(3), NULL on errors; the cards stay the driver's.
 */
int ll_hold_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_hold_config *config,
			 bool skips_unusable, const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

#endif
