/*
 * enumerate.h - the list of cards, made once when the driver is opened. Private to src/driver.
 */
#ifndef LOADLINE_DRIVER_ENUMERATE_H
#define LOADLINE_DRIVER_ENUMERATE_H

#include "driver/cards.h"

/* *ret_cards is one allocation for free(3), in PCI order, each card followed by its slices; driver goes into each. */
int ll_cards_enumerate(struct ll_driver *driver, const struct ll_nvml *nvml, struct ll_card **ret_cards,
		       size_t *ret_count, struct ll_err *err);

/* The sixteen bytes of "GPU-8f6a3f3e-…" or "MIG-…"; -EINVAL for another form, bytes untouched. */
int ll_uuid_parse(const char *uuid, uint8_t ret_bytes[16]);

#endif
