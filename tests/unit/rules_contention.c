#include "test.h"

#include "base/clock.h"
#include "rules/hold/foreign.h"

#define OFFSET UINT64_C(1795191391000000000) /* a card whose clock is far from the host's */

static const struct ll_contention_limits limits = {.gap_ns = 200000, .late_ns = 60000, .first_late_ns = 300000};

/* A fit taught by kernels that start latency_ns after their submission. */
static struct ll_clock_fit taught(uint64_t until_ns, uint64_t latency_ns)
{
	struct ll_clock_fit fit = {0};
	for (uint64_t t = until_ns - LL_NS_PER_S; t < until_ns; t += LL_NS_PER_MS)
		ll_clock_fit_add(&fit, t, t + OFFSET + latency_ns + t % 7 * 1000);
	return fit;
}

static struct ll_kernel_trace kernel(uint64_t submit_ns, uint64_t call_ns, uint64_t late_ns)
{
	return (struct ll_kernel_trace){
	    .submit_ns = submit_ns,
	    .submitted_ns = submit_ns + call_ns,
	    .start_ns = submit_ns + call_ns + OFFSET + 5000 + late_ns,
	    .end_ns = submit_ns + call_ns + OFFSET + 5000 + late_ns + LL_NS_PER_MS,
	    .gap_ns = 300,
	};
}

static bool is_foreign(const struct ll_kernel_trace *trace)
{
	struct ll_clock_fit fit = taught(10 * LL_NS_PER_S, 5000);
	return ll_contention_judge(trace, &fit, &limits).is_foreign;
}

TEST(test_a_kernel_on_time_is_alone)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 10000, 0);
	assert_false(is_foreign(&trace));
	trace = kernel(10 * LL_NS_PER_S, 10000, 9000); /* the worst seen alone */
	assert_false(is_foreign(&trace));
}

TEST(test_a_late_start_is_foreign_work)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 10000, 130000); /* one context switch */
	assert_true(is_foreign(&trace));
}

TEST(test_a_slow_launch_call_is_not_foreign_work)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 700000, 0);
	assert_false(is_foreign(&trace));
}

TEST(test_waiting_behind_an_own_kernel_is_not_foreign_work)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 10000, 2000000);
	trace.previous_end_ns = trace.start_ns - 3000;
	assert_false(is_foreign(&trace));
}

TEST(test_a_hole_in_a_kernel_is_foreign_work_even_without_a_fit)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 10000, 0);
	trace.gap_ns = 2400000;
	struct ll_clock_fit none = {0};
	assert_true(ll_contention_judge(&trace, &none, &limits).is_foreign);
}

TEST(test_the_first_kernel_after_a_pause_may_pay_a_switch)
{
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S, 10000, 148000);
	trace.is_first = true;
	assert_false(is_foreign(&trace));
	trace = kernel(10 * LL_NS_PER_S, 10000, 1000000);
	trace.is_first = true;
	assert_true(is_foreign(&trace));
}

/* A hold that has yielded for long has no new pairs meanwhile, and the clocks run apart. */
TEST(test_a_clock_that_drifted_through_a_pause_is_not_foreign_work)
{
	uint64_t paused_ns = 37 * LL_NS_PER_S, drift_ns = 8 * (paused_ns / 1000000);
	struct ll_clock_fit fit = taught(10 * LL_NS_PER_S, 5000);
	struct ll_kernel_trace trace = kernel(10 * LL_NS_PER_S + paused_ns, 10000, drift_ns + 148000);
	trace.is_first = true;
	assert_false(ll_contention_judge(&trace, &fit, &limits).is_foreign);

	ll_clock_fit_add(&fit, trace.submit_ns, trace.start_ns);
	trace = kernel(trace.submit_ns + 2 * LL_NS_PER_MS, 10000, drift_ns);
	assert_false(ll_contention_judge(&trace, &fit, &limits).is_foreign);
	ll_clock_fit_add(&fit, trace.submit_ns, trace.start_ns);
	trace = kernel(trace.submit_ns + 2 * LL_NS_PER_MS, 10000, drift_ns + 130000);
	assert_true(ll_contention_judge(&trace, &fit, &limits).is_foreign);
}

TEST(test_the_fit_follows_a_drifting_clock_both_ways)
{
	for (int direction = -1; direction <= 1; direction += 2) {
		struct ll_clock_fit fit = {0};
		int64_t drift_ns = 0;
		for (uint64_t i = 0; i < 60000; i++) { /* a minute of kernels at 20 ppm */
			uint64_t t = LL_NS_PER_S + i * LL_NS_PER_MS;
			drift_ns = direction * (int64_t)(i * 20);
			ll_clock_fit_add(&fit, t, t + OFFSET + 5000 + (uint64_t)drift_ns);
		}
		uint64_t t = 61 * LL_NS_PER_S;
		int64_t error_ns = (int64_t)(ll_clock_fit_to_card(&fit, t) - (t + OFFSET + 5000 + (uint64_t)drift_ns));
		assert_true(error_ns > -1000 && error_ns < 1000);
		assert_int_equal(ll_clock_fit_to_host(&fit, ll_clock_fit_to_card(&fit, t)), t);
	}
}

/* In a queue that never runs empty, for a second: what is allowed for drift adds up to 50 us. */
TEST(test_what_was_last_seen_not_to_wait_bounds_the_fit_from_below)
{
	struct ll_clock_fit fit = taught(10 * LL_NS_PER_S, 5000);
	uint64_t t = 10 * LL_NS_PER_S, until = 11 * LL_NS_PER_S;
	for (; t < until; t += LL_NS_PER_MS)
		ll_clock_fit_add(&fit, t, t + OFFSET + 2000000);
	assert_in_range(ll_clock_fit_to_card(&fit, t) - t - OFFSET, 50000, 60000);
	assert_in_range(ll_clock_fit_to_card_earliest(&fit, t) - t - OFFSET, 5000, 5100);
	ll_clock_fit_add(&fit, t, t + OFFSET + 4000);
	assert_int_equal(ll_clock_fit_to_card_earliest(&fit, t), ll_clock_fit_to_card(&fit, t));
}

TEST(test_a_burst_of_late_starts_does_not_move_the_fit)
{
	struct ll_clock_fit fit = taught(10 * LL_NS_PER_S, 5000);
	int64_t before_ns = fit.offset_ns;
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t t = 10 * LL_NS_PER_S + i * LL_NS_PER_MS;
		ll_clock_fit_add(&fit, t, t + OFFSET + 2000000);
	}
	assert_true(fit.offset_ns - before_ns < 10000);
}
