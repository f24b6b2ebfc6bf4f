#include "test.h"

#include <math.h>

#include "base/clock.h"
#include "rules/hold/level.h"

/* Runs a host that wakes with this much jitter for a simulated time; returns the busy share it ordered. */
static double busy_share(double ratio, uint64_t jitter_ns, uint64_t run_ns)
{
	struct ll_duty duty;
	uint64_t now_ns = 5 * LL_NS_PER_S, start_ns = now_ns, busy_ns = 0;
	uint64_t seed = 88172645463325252u;
	ll_duty_restart(&duty, now_ns);
	while (now_ns < start_ns + run_ns) {
		uint64_t length_ns;
		while ((length_ns = ll_duty_next_ns(&duty, now_ns, ratio, LL_DUTY_KERNEL_MAX_NS)) > 0)
			busy_ns += length_ns;
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		now_ns += LL_DUTY_PERIOD_NS + (jitter_ns ? seed % jitter_ns : 0);
	}
	return (double)busy_ns / (double)(now_ns - start_ns);
}

TEST(test_every_target_gets_its_share)
{
	static const double ratios[] = {0.01, 0.05, 0.13, 0.30, 0.50, 0.60, 0.80, 0.95, 0.99};
	for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++)
		assert_true(fabs(busy_share(ratios[i], 0, 10 * LL_NS_PER_S) - ratios[i]) < 0.001);
}

TEST(test_a_host_that_wakes_late_loses_nothing)
{
	assert_true(fabs(busy_share(0.5, 8 * LL_NS_PER_MS, 10 * LL_NS_PER_S) - 0.5) < 0.003);
	assert_true(fabs(busy_share(0.13, 8 * LL_NS_PER_MS, 10 * LL_NS_PER_S) - 0.13) < 0.003);
}

TEST(test_a_long_sleep_is_not_made_up_for)
{
	struct ll_duty duty;
	ll_duty_restart(&duty, LL_NS_PER_S);
	uint64_t sum_ns = 0, length_ns;
	while ((length_ns = ll_duty_next_ns(&duty, 3600 * LL_NS_PER_S, 0.9, LL_DUTY_KERNEL_MAX_NS)) > 0)
		sum_ns += length_ns;
	assert_true(sum_ns <= LL_DUTY_CREDIT_MAX_NS);
}

TEST(test_a_clock_that_steps_back_earns_nothing)
{
	struct ll_duty duty;
	ll_duty_restart(&duty, 10 * LL_NS_PER_S);
	assert_int_equal(ll_duty_next_ns(&duty, 9 * LL_NS_PER_S, 0.5, LL_DUTY_KERNEL_MAX_NS), 0);
	assert_int_equal(ll_duty_next_ns(&duty, 10 * LL_NS_PER_S + LL_NS_PER_MS, 0.5, LL_DUTY_KERNEL_MAX_NS),
			 LL_NS_PER_MS / 2);
}

TEST(test_a_refund_is_spent_again)
{
	struct ll_duty duty;
	ll_duty_restart(&duty, LL_NS_PER_S);
	ll_duty_refund(&duty, 300000);
	assert_int_equal(ll_duty_next_ns(&duty, LL_NS_PER_S, 0.5, LL_DUTY_KERNEL_MAX_NS), 300000);
}

TEST(test_too_short_a_kernel_waits_until_it_is_worth_launching)
{
	struct ll_duty duty;
	ll_duty_restart(&duty, LL_NS_PER_S);
	assert_int_equal(ll_duty_next_ns(&duty, LL_NS_PER_S + 100000, 0.01, LL_DUTY_KERNEL_MAX_NS), 0);
	assert_true(ll_duty_next_ns(&duty, LL_NS_PER_S + 1000000, 0.01, LL_DUTY_KERNEL_MAX_NS) >=
		    LL_DUTY_KERNEL_MIN_NS);
}

TEST(test_no_kernel_is_longer_than_a_time_slice)
{
	struct ll_duty duty;
	ll_duty_restart(&duty, LL_NS_PER_S);
	uint64_t late_ns = LL_NS_PER_S + 10 * LL_NS_PER_MS; /* a host that was away for five periods */
	uint64_t sum_ns = 0, length_ns;
	while ((length_ns = ll_duty_next_ns(&duty, late_ns, 0.9, LL_DUTY_KERNEL_MAX_NS)) > 0) {
		assert_true(length_ns <= LL_DUTY_KERNEL_MAX_NS);
		sum_ns += length_ns;
	}
	assert_int_equal(sum_ns, 9 * LL_NS_PER_MS);
}
