#include "base/clock.h"

#include "test.h"

TEST(monotonic_clock_never_goes_back)
{
	uint64_t last = ll_now_ns();
	for (int i = 0; i < 10000; i++) {
		uint64_t now = ll_now_ns();
		assert_true(now >= last);
		last = now;
	}
}

TEST(sleep_ends_not_before_its_deadline)
{
	uint64_t deadline = ll_now_ns() + 3 * LL_NS_PER_MS;
	ll_sleep_until_ns(deadline);
	assert_true(ll_now_ns() >= deadline);
}

TEST(sleep_until_the_past_returns)
{
	ll_sleep_until_ns(0);
	ll_sleep_until_ns(ll_now_ns() - 1);
}

TEST(boot_clock_is_never_behind_monotonic)
{
	uint64_t now = ll_now_ns();
	assert_true(ll_boot_ns() >= now);
	assert_true(ll_wall_ns() > 0);
}

TEST(cpu_time_grows_with_work)
{
	uint64_t start = ll_thread_cpu_ns();
	while (ll_thread_cpu_ns() - start < LL_NS_PER_MS)
		;
}
