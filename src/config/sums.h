/*
 * sums.h - whether the cards that reservations want at one time are there.
 */
#ifndef LOADLINE_CONFIG_SUMS_H
#define LOADLINE_CONFIG_SUMS_H

#include "config/config.h"

/* Adds a fault for each reservation at whose beginning all reservations of its group together, those that repeat
 * included, want more cards than the group has. Times of day are in the machine's time zone. */
void ll_config_check_sums(const struct ll_config_policy *policy, struct ll_config_findings *findings);

#endif
