/*
 * exclusive.h - puts cards into exclusive-process mode for a daemon, and back. No other file changes a compute mode.
 */
#ifndef LOADLINE_MPS_EXCLUSIVE_H
#define LOADLINE_MPS_EXCLUSIVE_H

#include <stddef.h>

#include "mps/record.h"

/*
 * Fills a record's cards with their present modes, and marks the cards whose mode must be changed. -EBUSY: a process is
 * on such a card already, so the server could not start beside it. -EPERM: needs root. -ENOSYS: a card has no compute
 * modes, or is a MIG slice, whose mode is its card's. Changes no mode.
 */
int ll_mps_exclusive_plan(const struct ll_card *const *cards, size_t count, struct ll_mps_record *record,
			  struct ll_err *err);

/* Puts the marked cards into exclusive-process mode. If it fails, some cards may be in it: call restore. */
int ll_mps_exclusive_set(const struct ll_driver *driver, const struct ll_mps_record *record, struct ll_err *err);

/*
 * Gives the marked cards their former modes. A card that is no longer in exclusive-process mode was changed by somebody
 * else, and is left as it is. *ret_restored: the number of cards that were put back. All cards are tried; the first
 * error is returned. -ENODEV: a card is no longer there.
 */
int ll_mps_exclusive_restore(const struct ll_driver *driver, const struct ll_mps_record *record, size_t *ret_restored,
			     struct ll_err *err);

/* Returns how many marked cards are in exclusive-process mode now. */
size_t ll_mps_exclusive_count(const struct ll_driver *driver, const struct ll_mps_record *record);

#endif
