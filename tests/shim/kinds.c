/* What is known of kinds of launches: how often one is timed, and what is made of it. */
#include "../unit/test.h"

#include "base/clock.h"
#include "shim/kinds.h"

#define US LL_NS_PER_US

static struct ll_kinds kinds;

static unsigned count_timed(struct ll_kind *kind, unsigned launches, uint64_t ns)
{
	unsigned timed = 0;
	for (unsigned i = 0; i < launches; i++, kind->seen++) {
		if (!ll_kind_wants_sample(&kinds, kind))
			continue;
		ll_kind_note_sample(&kinds, kind);
		ll_kind_learn_sample(kind, ns);
		timed++;
	}
	return timed;
}

static void test_a_kind_is_timed_at_first_and_then_for_a_hundredth_of_its_time(void **state)
{
	(void)state;
	assert_in_range(count_timed(ll_kinds_find(&kinds, 1), 12800, 5 * US), 12800 / 120, 4 + 12800 / 120 + 1);
	assert_in_range(count_timed(ll_kinds_find(&kinds, 2), 1200, 100 * US), 200, 205);
	assert_int_equal(count_timed(ll_kinds_find(&kinds, 4), 100, 2000 * US), 100);
	assert_int_equal(ll_kinds_find(&kinds, 1)->ns, 5 * US);
	assert_int_equal(ll_kinds_find(&kinds, 4)->ns, 2000 * US);
}

static void test_a_doubt_has_each_kind_timed_once_more(void **state)
{
	(void)state;
	struct ll_kind *one = ll_kinds_find(&kinds, 5), *other = ll_kinds_find(&kinds, 6);
	count_timed(one, 10, 3 * US);
	count_timed(other, 10, 3 * US);
	assert_false(ll_kind_wants_sample(&kinds, one));
	ll_kinds_doubt(&kinds, other, 70 * US);
	assert_int_equal(other->ns, 70 * US);
	assert_int_equal(one->ns, 3 * US);
	assert_int_equal(count_timed(one, 5, 3 * US), 1);
	assert_int_equal(count_timed(other, 5, 70 * US), 1);
	ll_kinds_doubt(&kinds, NULL, 500 * US);
	assert_int_equal(one->ns, 3 * US);
	assert_true(ll_kind_wants_sample(&kinds, one));
}

static void test_one_of_changing_length_counts_for_its_mean(void **state)
{
	(void)state;
	struct ll_kind *kind = ll_kinds_find(&kinds, 9);
	ll_kind_learn_sample(kind, 100 * US);
	for (int i = 0; i < 60; i++)
		ll_kind_learn_sample(kind, 1000 * US);
	assert_in_range(kind->ns, 980 * US, 1000 * US);
	for (int i = 0; i < 60; i++)
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
	    cmocka_unit_test(test_a_kind_is_timed_at_first_and_then_for_a_hundredth_of_its_time),
	    cmocka_unit_test(test_a_doubt_has_each_kind_timed_once_more),
	    cmocka_unit_test(test_one_of_changing_length_counts_for_its_mean),
	    cmocka_unit_test(test_two_names_in_one_place_do_not_mix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
