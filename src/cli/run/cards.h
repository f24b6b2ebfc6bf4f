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

/* The value of CUDA_DEVICE_ORDER by which CUDA numbers the cards as `-i` does. */
#define LL_RUN_CARDS_ORDER "PCI_BUS_ID"

/*
 * Adds the new value of CUDA_VISIBLE_DEVICES, by which the program sees these cards, in this order. Adds nothing if it
 * sees them as it is: then the user's words stay, because programs read them as numbers. text: as in
 * ll_run_cards_choose. is_client: of an MPS daemon.
 *
 * The value has the cards' indices, and CUDA_DEVICE_ORDER must be what is returned. It has their UUIDs, and NULL is
 * returned, for a slice, for a client of MPS, which counts its daemon's cards, and beside slices and cards that do not
 * answer, where CUDA's numbers are not the indices.
 */
const char *ll_run_cards_show(const struct ll_driver *driver, const char *text, const struct ll_card *const *cards,
			      size_t count, bool is_client, struct ll_strbuf *value);

#endif
