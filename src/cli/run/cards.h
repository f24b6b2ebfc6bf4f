/*
 * cards.h - which cards `loadline run` gives to its command.
 */
#ifndef LOADLINE_CLI_RUN_CARDS_H
#define LOADLINE_CLI_RUN_CARDS_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "driver/cards.h"

/*
 * The cards that text names (NULL: all), but none that CUDA_VISIBLE_DEVICES hides: without a text those are left out, a
 * card named is an error then (-ENODEV). In the order of CUDA_VISIBLE_DEVICES where that is set, else in PCI order.
 * *ret_cards is one allocation for free(3).
 */
int ll_run_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
			size_t *ret_count, struct ll_err *err);

/*
 * Whether a program finds the same cards where CUDA_VISIBLE_DEVICES stays unset: no text names some, it is unset, all
 * answer, and none is a slice. Then their order is CUDA's own, which is not told without starting CUDA.
 */
bool ll_run_cards_are_as_found(const struct ll_driver *driver, const char *text);

/* What CUDA_VISIBLE_DEVICES becomes: their UUIDs with commas. */
void ll_run_cards_add_uuids(struct ll_strbuf *text, const struct ll_card *const *cards, size_t count);

#endif
