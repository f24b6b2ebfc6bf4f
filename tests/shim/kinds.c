/* What is known of kinds of launches: from single ones, which the host can only make longer, and from full queues. */
#include "../unit/test.h"

#include "base/clock.h"
#include "shim/kinds.h"

#define US LL_NS_PER_US

static struct ll_kinds kinds;

static void test_the_first_launches_are_timed_and_then_one_in_sixteen(void **state)
{
	(void)state;
	struct ll_kind *kind = ll_kinds_find(&kinds, 7);
	unsigned timed = 0;
	for (kind->seen = 0; kind->seen < 1600; kind->seen++) {
		if (!ll_kind_wants_sample(kind))
			continue;
		ll_kind_learn_sample(kind, 5 * US);
		timed++;
	}
	assert_in_range(timed, 100, 104);
	assert_int_equal(kind->ns, 5 * US);
}

static void test_a_late_host_hardly_moves_it(void **state)
{
	(void)state;
	struct ll_kind *kind = ll_kinds_find(&kinds, 8);
	for (int i = 0; i < 1000; i++) /* every other launch comes 4 us late */
		ll_kind_learn_sample(kind, 5 * US + (i % 2 ? 4 * US : 0));
	assert_in_range(kind->ns, 5 * US, 5 * US + 300);
}

static void test_a_kernel_that_really_changes_is_followed(void **state)
{
	(void)state;
	struct ll_kind *kind = ll_kinds_find(&kinds, 9);
	ll_kind_learn_sample(kind, 100 * US);
	for (int i = 0; i < 60; i++)
		ll_kind_learn_sample(kind, 1000 * US);
	assert_in_range(kind->ns, 980 * US, 1000 * US);
	for (int i = 0; i < 60; i++) /* one that is long every other time counts for its mean */
		ll_kind_learn_queued(kind, (i % 2 ? 100 : 300) * US);
	assert_in_range(kind->ns, 150 * US, 250 * US);
}

static void test_two_names_in_one_place_do_not_mix(void **state)
{
	(void)state;
	struct ll_kind *first = ll_kinds_find(&kinds, 3);
	ll_kind_learn_sample(first, 50 * US);
	struct ll_kind *second = ll_kinds_find(&kinds, 3 + LL_KINDS);
	assert_ptr_equal(first, second);
	assert_int_equal(second->ns, 0);
	assert_int_equal(ll_kinds_find(&kinds, 3)->ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_first_launches_are_timed_and_then_one_in_sixteen),
	    cmocka_unit_test(test_a_late_host_hardly_moves_it),
	    cmocka_unit_test(test_a_kernel_that_really_changes_is_followed),
	    cmocka_unit_test(test_two_names_in_one_place_do_not_mix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
