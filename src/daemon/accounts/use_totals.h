/*
 * use_totals.h - what each tenant has used since loadlined's start: sums that only grow, for metrics.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_USE_TOTALS_H
#define LOADLINE_DAEMON_ACCOUNTS_USE_TOTALS_H

#include <stddef.h>

#include "accounts/batch.h"

/* Tenants of more names are counted as jobs of no tenant. */
enum { LL_USE_TOTALS_MAX = 1024 };

struct ll_use_total {
	char tenant[LL_USE_TENANT_SIZE]; /* empty: jobs of no configured tenant */
	double granted_s, used_s, idle_held_s, memory_byte_s;
};

/* Zeroed, it is empty. A tenant keeps its place. */
struct ll_use_totals {
	struct ll_use_total *items;
	size_t count;
};

/* Adds to the tenant's sums. Without memory for a new tenant the use is left out. */
void ll_use_totals_add(struct ll_use_totals *totals, const char *tenant, const struct ll_use *use);

/* Returns the tenant's sums; NULL: it has none. */
const struct ll_use_total *ll_use_totals_find(const struct ll_use_totals *totals, const char *tenant);

void ll_use_totals_fini(struct ll_use_totals *totals);

#endif
