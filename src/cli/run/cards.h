/*
 * cards.h - chooses the cards that `loadline run` gives to its command.
 */
#ifndef LOADLINE_CLI_RUN_CARDS_H
#define LOADLINE_CLI_RUN_CARDS_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "driver/cards.h"

/*
 * Finds the cards that text names, or all cards if text is NULL. Of all cards it leaves out those that
 * CUDA_VISIBLE_DEVICES hides. A hidden card that text names is an error (-ENODEV). The cards are in the order of
 * CUDA_VISIBLE_DEVICES if that is set, otherwise in PCI order. *ret_cards is one allocation for free(3).
 */
int ll_run_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
			size_t *ret_count, struct ll_err *err);

/*
 * Whether CUDA_VISIBLE_DEVICES can stay unset, because the program finds the same cards without it: text is NULL, the
 * variable is unset, all cards answer, and none is a slice. Then the program gets CUDA's own order, which is not known
 * without starting CUDA.
 */
bool ll_run_cards_are_as_found(const struct ll_driver *driver, const char *text);

/* Adds the new value of CUDA_VISIBLE_DEVICES: the cards' UUIDs, with commas between. */
void ll_run_cards_add_uuids(struct ll_strbuf *text, const struct ll_card *const *cards, size_t count);

#endif
