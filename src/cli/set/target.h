/*
 * target.h - which tenants, on which cards, a word of `loadline set` means.
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
 * "0/17": the tenant of that claim on that card. "train": the tenant of that name on each card that it uses. Into
 * zeroed targets; fini also after a failure. -ENOENT: there is none. -EBUSY: it is a hold. -EEXIST: several tenants
 * have that name. An unreadable ledger's own error.
 */
int ll_set_targets_find(struct ll_set_targets *targets, const struct ll_driver *driver, const char *word,
			struct ll_err *err);
void ll_set_targets_fini(struct ll_set_targets *targets);

#endif
