#include "test.h"

#include <math.h>

#include "base/clock.h"
#include "rules/share/tokens.h"

/* A program that always has a kernel of this length to run, under a cap, for a simulated time: its share of the time.
 */
static double share_of_endless(unsigned cap_permille, uint64_t kernel_ns, uint64_t run_ns)
{
	uint64_t now_ns = 0, used_ns = 0;
	int64_t balance_ns = 0;
	while (now_ns < run_ns) {
		uint64_t wait_ns = ll_tokens_wait_ns(balance_ns, cap_permille);
		uint64_t passes_ns = wait_ns + kernel_ns;
		balance_ns = ll_tokens_earn(balance_ns, passes_ns, cap_permille) - (int64_t)kernel_ns;
		used_ns += kernel_ns;
		now_ns += passes_ns;
	}
	return (double)used_ns / (double)now_ns;
}

TEST(test_an_endless_program_gets_its_cap)
{
	static const unsigned caps[] = {10, 100, 250, 500, 750};
	for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
		double cap = caps[i] / 1000.0;
		assert_true(fabs(share_of_endless(caps[i], 200 * LL_NS_PER_US, 10 * LL_NS_PER_S) - cap) < 0.002);
		assert_true(fabs(share_of_endless(caps[i], 20 * LL_NS_PER_MS, 60 * LL_NS_PER_S) - cap) < 0.01);
	}
}

TEST(test_a_long_kernel_is_paid_for_afterwards)
{
	int64_t after_ns = ll_tokens_earn(1, 100 * LL_NS_PER_MS, 100) - (int64_t)(100 * LL_NS_PER_MS);
	uint64_t wait_ns = ll_tokens_wait_ns(after_ns, 100);
	assert_in_range(wait_ns, 899 * LL_NS_PER_MS, 901 * LL_NS_PER_MS);
}

/* 50 ms on, 50 ms off: the pause earns what the work spends beyond the cap. */
TEST(test_a_burst_below_its_cap_never_waits)
{
	int64_t balance_ns = 0;
	uint64_t waited_ns = 0;
	for (int round = 0; round < 100; round++) {
		balance_ns = ll_tokens_earn(balance_ns, 51 * LL_NS_PER_MS, 500);
		for (int step = 0; step < 50; step++) {
			waited_ns += ll_tokens_wait_ns(balance_ns, 500);
			balance_ns = ll_tokens_earn(balance_ns, LL_NS_PER_MS, 500) - (int64_t)LL_NS_PER_MS;
		}
	}
	assert_int_equal(waited_ns, 0);
}

/* What a damaged page says. */
TEST(test_no_account_overflows)
{
	assert_int_equal(ll_tokens_earn(INT64_MAX, LL_NS_PER_S, 500), ll_tokens_most_ns(500));
	assert_true(ll_tokens_earn(INT64_MIN, UINT64_MAX, UINT32_MAX) < 0);
	assert_int_equal(ll_tokens_earn(0, LL_NS_PER_S, UINT32_MAX), ll_tokens_most_ns(1000));
	assert_true(ll_tokens_wait_ns(INT64_MIN, 1) > 0);
}

TEST(test_a_long_pause_earns_no_more_than_the_depth)
{
	assert_int_equal(ll_tokens_earn(0, 10 * LL_NS_PER_S, 500), LL_TOKENS_DEPTH_NS / 2);
	assert_int_equal(ll_tokens_earn(0, UINT64_MAX, 1000), LL_TOKENS_DEPTH_NS);
}

TEST(test_the_wait_ends_above_zero)
{
	for (int64_t balance_ns = -1000000; balance_ns <= 0; balance_ns += 997) {
		for (unsigned cap = 1; cap <= 1000; cap += 37) {
			uint64_t wait_ns = ll_tokens_wait_ns(balance_ns, cap);
			assert_true(ll_tokens_earn(balance_ns, wait_ns, cap) > 0);
		}
	}
	assert_int_equal(ll_tokens_wait_ns(1, 1), 0);
}
