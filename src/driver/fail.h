/*
 * fail.h - the errors of readings, worded alike. Private to src/driver.
 */
#ifndef LOADLINE_DRIVER_FAIL_H
#define LOADLINE_DRIVER_FAIL_H

#include "driver/cards.h"

/* 0 for success. Else "card 0: power: GPU is lost (NVML error 15)", with "card gone" before the reason for -ENODEV. */
int ll_card_check(const struct ll_card *card, ll_nvml_result status, struct ll_err *err, const char *what);

/* -ENOSYS "card 0: power: driver 470.1 cannot tell": the function is not in the library. */
int ll_card_lacks(const struct ll_card *card, struct ll_err *err, const char *what);

static inline const struct ll_nvml *ll_card_nvml(const struct ll_card *card)
{
	return ll_driver_nvml(card->driver);
}

#endif
