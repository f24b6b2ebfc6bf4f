/*
 * internal.h - declarations that only the files of src/driver share.
 */
#ifndef LOADLINE_DRIVER_INTERNAL_H
#define LOADLINE_DRIVER_INTERNAL_H

#include "driver/cards.h"

/* Lists the cards, once, when the driver is opened. *ret_cards is one allocation for free(3), in PCI order, each card
 * followed by its slices. Each card gets driver as its driver. */
int ll_cards_enumerate(struct ll_driver *driver, const struct ll_nvml *nvml, struct ll_card **ret_cards,
		       size_t *ret_count, struct ll_err *err);

/* Gives the sixteen bytes of "GPU-8f6a3f3e-..." or "MIG-...". -EINVAL: another form; the bytes are untouched. */
int ll_uuid_parse(const char *uuid, uint8_t ret_bytes[16]);

/* ll_cards_select over a list of cards. */
int ll_select(const struct ll_card *cards, size_t count, const char *text, const struct ll_card ***ret_cards,
	      size_t *ret_count, struct ll_err *err);

/* The errors of readings, all with the same words. Returns 0 for success. Else err says "card 0: power: GPU is lost
 * (NVML error 15)", for -ENODEV with "card gone" before the reason. */
int ll_card_check(const struct ll_card *card, ll_nvml_result status, struct ll_err *err, const char *what);

/* -ENOSYS "card 0: power: driver 470.1 cannot tell": the library does not have the function. */
int ll_card_lacks(const struct ll_card *card, struct ll_err *err, const char *what);

static inline const struct ll_nvml *ll_card_nvml(const struct ll_card *card)
{
	return ll_driver_nvml(card->driver);
}

#endif
