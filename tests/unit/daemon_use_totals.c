#include "daemon/accounts/accounts.h"

#include <stdio.h>

#include "test.h"

TEST(the_use_of_a_tenant_adds_up)
{
	struct ll_use_totals totals = {0};
	struct ll_use use = {
	    .granted_ns = 2000000000, .used_ns = 1000000000, .idle_held_ns = 500000000, .memory_byte_s = 7};
	assert_null(ll_use_totals_find(&totals, "research"));
	ll_use_totals_add(&totals, "research", &use);
	ll_use_totals_add(&totals, "course", &use);
	ll_use_totals_add(&totals, "research", &use);
	const struct ll_use_total *total = ll_use_totals_find(&totals, "research");
	assert_float_equal(total->granted_s, 4, 1e-9);
	assert_float_equal(total->used_s, 2, 1e-9);
	assert_float_equal(total->idle_held_s, 1, 1e-9);
	assert_float_equal(total->memory_byte_s, 14, 1e-9);
	ll_use_totals_fini(&totals);
	assert_int_equal(totals.count, 0);
}

TEST(names_beyond_the_bound_are_counted_together)
{
	struct ll_use_totals totals = {0};
	struct ll_use use = {.used_ns = 1000000000};
	char name[16];
	for (int i = 0; i < LL_USE_TOTALS_MAX + 100; i++) {
		snprintf(name, sizeof name, "t%d", i);
		ll_use_totals_add(&totals, name, &use);
	}
	assert_int_equal(totals.count, LL_USE_TOTALS_MAX);
	assert_float_equal(ll_use_totals_find(&totals, "")->used_s, 101, 1e-9);
	assert_null(ll_use_totals_find(&totals, "t1100"));
	ll_use_totals_fini(&totals);
}
