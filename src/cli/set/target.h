/*
 * target.h - finds the tenants and cards that an operand of `loadline set` names.
 */
#ifndef LOADLINE_CLI_SET_TARGET_H
#define LOADLINE_CLI_SET_TARGET_H

#include "driver/cards.h"
#include "ledger/tenant.h"

struct ll_set_target {
	const struct ll_card *card;
	struct ll_ledger *ledger;
	unsigned row;
};

struct ll_set_targets {
	struct ll_set_target *items;
	size_t count;
};

/*
 * Finds the targets. "0/17": the tenant of that claim, on that card. "train": the tenant of that name, on each card
 * that it uses. The caller zeroes targets before, and calls fini afterwards, also after a failure. -ENOENT: there is no
 * such claim or tenant. -EBUSY: the claim is a hold. -EEXIST: several tenants have that name. If a ledger cannot be
 * read, its own error.
 */
int ll_set_targets_find(struct ll_set_targets *targets, const struct ll_driver *driver, const char *word,
			struct ll_err *err);
void ll_set_targets_fini(struct ll_set_targets *targets);

#endif
