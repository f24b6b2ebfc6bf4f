#include "test.h"

#include "base/clock.h"
#include "control/pace.h"

static bool waits_for_each(uint64_t launches, uint64_t waits, uint64_t launch_us, uint64_t round_us)
{
	const struct ll_pace_facts pace = {launches, waits, launch_us * LL_NS_PER_US, round_us * LL_NS_PER_US};
	return ll_pace_waits_for_each(&pace);
}

/* The kinds of doc/sharing.md. */
static void test_who_waits_for_each_kernel_is_known_by_launches_and_waits(void **state)
{
	(void)state;
	assert_true(waits_for_each(1000, 1000, 5, 25));       /* sync */
	assert_true(waits_for_each(1000, 1000, 5, 4000));     /* among the slices of others */
	assert_true(waits_for_each(1000, 1000, 4000, 25));    /* a time of a launch that was learned there */
	assert_true(waits_for_each(1000, 1000, 200, 210));    /* of longer kernels */
	assert_false(waits_for_each(1000, 1000, 1500, 1510)); /* whose visits are worth their switches */
	assert_false(waits_for_each(1000, 5, 4, 2400));       /* eager: 200 launches, a wait */
	assert_false(waits_for_each(1000, 5, 0, 900));
	assert_false(waits_for_each(1000, 0, 200, 1000)); /* flood */
	assert_false(waits_for_each(100, 25, 600, 2400)); /* graphs, a wait each four */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_who_waits_for_each_kernel_is_known_by_launches_and_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
