/*
 * exclusive.h - cards in exclusive-process mode for a daemon, and back. The one place that changes a compute mode.
 */
#ifndef LOADLINE_MPS_EXCLUSIVE_H
#define LOADLINE_MPS_EXCLUSIVE_H

#include <stddef.h>

#include "mps/record.h"

/*
 * Fills a record's cards with the modes that they have now, marking those to be changed. -EBUSY: a process is on such a
 * card already, so the server could not start beside it. -EPERM without root. -ENOSYS: this card has no compute modes,
 * or is a MIG slice, whose mode is its card's. Nothing is changed.
 */
int ll_mps_exclusive_plan(const struct ll_card *const *cards, size_t count, struct ll_mps_record *record,
			  struct ll_err *err);

/* Sets the marked ones. On failure some may be set: restore. */
int ll_mps_exclusive_set(const struct ll_driver *driver, const struct ll_mps_record *record, struct ll_err *err);

/*
 * Puts back what the marked ones were. One that is not in exclusive-process mode any more was changed by somebody else
 * and stays. *ret_restored: how many were put back. The first error is told, after all were tried; -ENODEV for a card
 * that is not there.
 */
int ll_mps_exclusive_restore(const struct ll_driver *driver, const struct ll_mps_record *record, size_t *ret_restored,
			     struct ll_err *err);

/* How many marked cards are in exclusive-process mode now. */
size_t ll_mps_exclusive_count(const struct ll_driver *driver, const struct ll_mps_record *record);

#endif
