/*
 * sharing.h - what the card does by itself where several tenants have work on it: its time slices. Private to
 * src/ledger.
 */
#ifndef LOADLINE_LEDGER_SHARING_H
#define LOADLINE_LEDGER_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/contender.h"

/* Whether nobody who wants the card needs turns. The same whoever asks; true where nobody wants it. */
bool ll_sharing_is_sliced(struct ll_ledger_file *file, uint64_t now_ns);

/*
 * Tenants among the contenders, but for that of the slot `self`, that have at least so much queued. Of two with more
 * than is left of a turn when it is given away the card makes slices.
 */
unsigned ll_sharing_count(struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns);

/* Claims whose launch goes on beyond their visit: as a rule of as many tenants. */
unsigned ll_sharing_lingering(const struct ll_contender_scan *scan);

#endif
