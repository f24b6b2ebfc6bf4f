/*
 * health.h - what NVML tells of a card's faults besides Xids (xid.h).
 */
#ifndef LOADLINE_DRIVER_HEALTH_H
#define LOADLINE_DRIVER_HEALTH_H

#include <stdint.h>

#include "driver/cards.h"

#define LL_HEALTH_UNKNOWN UINT64_MAX

/* Each is LL_HEALTH_UNKNOWN if the card or the driver does not tell. */
struct ll_card_health {
	uint64_t row_remap_failure; /* 1: a row of memory could not be replaced */
	uint64_t row_remap_pending; /* 1: rows of memory will be replaced at the next reset of the card */
	uint64_t ecc_uncorrected;   /* uncorrected errors of memory since the driver was loaded */
	uint64_t thermal_slowdown;  /* 1: its clocks are low for heat, now */
	uint64_t nvlink_errors;     /* replays, recoveries and CRC errors of all its links since these were reset */
};

/* Reads a whole card. Takes one call of NVML for each link and kind of error besides four others. */
void ll_read_health(const struct ll_card *card, struct ll_card_health *ret_health);

#endif
