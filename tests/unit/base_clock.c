#include "base/clock.h"

#include "test.h"

static void monotonic_clock_never_goes_back(void **state)
{
	(void)state;
	uint64_t last = ll_now_ns();
	for (int i = 0; i < 10000; i++) {
		uint64_t now = ll_now_ns();
		assert_true(now >= last);
		last = now;
	}
}

static void sleep_ends_not_before_its_deadline(void **state)
{
	(void)state;
	uint64_t deadline = ll_now_ns() + 3 * LL_NS_PER_MS;
	ll_sleep_until_ns(deadline);
	assert_true(ll_now_ns() >= deadline);
}

static void sleep_until_the_past_returns(void **state)
{
	(void)state;
	ll_sleep_until_ns(0);
	ll_sleep_until_ns(ll_now_ns() - 1);
}

static void boot_clock_is_never_behind_monotonic(void **state)
{
	(void)state;
	uint64_t now = ll_now_ns();
	assert_true(ll_boot_ns() >= now);
	assert_true(ll_wall_ns() > 0);
}

static void cpu_time_grows_with_work(void **state)
{
	(void)state;
	uint64_t start = ll_thread_cpu_ns();
	while (ll_thread_cpu_ns() - start < LL_NS_PER_MS)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(monotonic_clock_never_goes_back), cmocka_unit_test(sleep_ends_not_before_its_deadline),
	    cmocka_unit_test(sleep_until_the_past_returns),    cmocka_unit_test(boot_clock_is_never_behind_monotonic),
	    cmocka_unit_test(cpu_time_grows_with_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
