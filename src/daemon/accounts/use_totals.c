#include "daemon/accounts/use_totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static struct ll_use_total *find_total(const struct ll_use_totals *totals, const char *tenant)
{
	for (size_t i = 0; i < totals->count; i++) {
		if (strcmp(totals->items[i].tenant, tenant) == 0)
			return &totals->items[i];
	}
	return NULL;
}

static struct ll_use_total *append_total(struct ll_use_totals *totals, const char *tenant)
{
	struct ll_use_total *items = realloc(totals->items, (totals->count + 1) * sizeof *items);
	if (!items)
		return NULL;
	totals->items = items;
	struct ll_use_total *total = &items[totals->count++];
	*total = (struct ll_use_total){0};
	snprintf(total->tenant, sizeof total->tenant, "%s", tenant);
	return total;
}

void ll_use_totals_add(struct ll_use_totals *totals, const char *tenant, const struct ll_use *use)
{
	struct ll_use_total *total = find_total(totals, tenant);
	/* The last place is for jobs of no tenant. */
	if (!total && *tenant && totals->count >= LL_USE_TOTALS_MAX - 1) {
		tenant = "";
		total = find_total(totals, tenant);
	}
	if (!total)
		total = append_total(totals, tenant);
	if (!total)
		return;
	total->granted_s += (double)use->granted_ns / LL_NS_PER_S;
	total->used_s += (double)use->used_ns / LL_NS_PER_S;
	total->idle_held_s += (double)use->idle_held_ns / LL_NS_PER_S;
	total->memory_byte_s += use->memory_byte_s;
}

const struct ll_use_total *ll_use_totals_find(const struct ll_use_totals *totals, const char *tenant)
{
	return find_total(totals, tenant);
}

void ll_use_totals_fini(struct ll_use_totals *totals)
{
	free(totals->items);
	*totals = (struct ll_use_totals){0};
}
