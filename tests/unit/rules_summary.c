#include "rules_plant.h"

#include <stdbool.h>

#include "rules/hold/summary.h"

#define WINDOW (200 * MS)
#define BEGIN (50 * S)

static struct ll_summary summary;
static uint64_t now;

static int begin(void **state)
{
	(void)state;
	const struct ll_summary_config config = {.band = 0.01, .step_limit = 0.01};
	ll_summary_init(&summary, &config);
	now = BEGIN;
	return 0;
}

TEST_EACH(begin, NULL);

static bool add_percent(double percent, double target)
{
	const struct ll_summary_sample sample = {
	    .start_ns = now, .end_ns = now + WINDOW, .value = percent / 100.0, .target = target / 100.0};
	now += WINDOW;
	return ll_summary_add(&summary, &sample);
}

static void add_many(int count, double percent, double target)
{
	for (int i = 0; i < count; i++)
		assert_true(add_percent(percent, target));
}

static struct ll_summary_result result(void)
{
	struct ll_summary_result account;
	ll_summary_compute(&summary, now, &account);
	return account;
}

TEST(nothing_run_gives_nothing)
{
	assert_false(add_percent(50, 50));
	struct ll_summary_result account = result();
	assert_near(account.seconds, 0.0, 0.0);
	assert_int_equal(account.level.sample_count, 0);
	assert_true(isnan(account.level.mean_value) && isnan(account.level.max_abs_error) &&
		    isnan(account.settle_seconds));
	assert_false(account.has_settled);
}

TEST(settling_is_the_first_sample_of_a_run_inside)
{
	ll_summary_hold(&summary, now);
	add_many(1, 20, 50);
	add_many(1, 48.9, 50);
	add_many(10, 51, 50);
	add_many(10, 50, 50);
	struct ll_summary_result account = result();
	assert_true(account.has_settled);
	assert_near(account.settle_seconds, 0.6, 1e-9);
	assert_int_equal(account.level.sample_count, 20);
	assert_near(account.level.mean_value, 0.505, 1e-9);
	assert_near(account.level.mean_error, 0.005, 1e-9);
	assert_near(account.level.max_abs_error, 0.01, 1e-9);
	assert_near(account.seconds, 22 * 0.2, 1e-9);
}

TEST(later_sample_outside_moves_settling_while_60_s_last)
{
	ll_summary_hold(&summary, now);
	add_many(100, 50, 50);
	add_many(1, 53, 50);
	add_many(50, 49, 50);
	struct ll_summary_result account = result();
	assert_near(account.settle_seconds, 102 * 0.2, 1e-9);
	assert_int_equal(account.level.sample_count, 50);
	assert_near(account.level.mean_error, -0.01, 1e-9);
	assert_near(account.level.max_abs_error, 0.01, 1e-9);
}

TEST(after_60_s_inside_settling_stands_and_errors_count)
{
	ll_summary_hold(&summary, now);
	add_many(3, 10, 50);
	add_many(310, 50, 50);
	add_many(1, 57, 50);
	add_many(10, 50, 50);
	struct ll_summary_result account = result();
	assert_near(account.settle_seconds, 0.8, 1e-9);
	assert_int_equal(account.level.sample_count, 321);
	assert_near(account.level.max_abs_error, 0.07, 1e-9);
	assert_near(account.level.mean_error, 0.07 / 321, 1e-9);
	/* those before it settled are in the account of all */
	assert_int_equal(account.of_all.sample_count, 324);
	assert_near(account.of_all.max_abs_error, 0.40, 1e-9);
	assert_near(account.of_all.mean_value, (3 * 0.10 + 310 * 0.50 + 0.57 + 10 * 0.50) / 324, 1e-9);
}

TEST(never_settled_is_null_and_shows_every_error)
{
	ll_summary_hold(&summary, now);
	add_many(50, 50, 50);
	add_many(1, 52, 50);
	struct ll_summary_result account = result();
	assert_false(account.has_settled);
	assert_true(isnan(account.settle_seconds));
	assert_int_equal(account.level.sample_count, 51);
	assert_near(account.level.max_abs_error, 0.02, 1e-9);
	assert_near(account.level.mean_error, 0.02 / 51, 1e-9);
}

TEST(inside_is_counted_from_the_last_sample_outside_also_after_60_s)
{
	ll_summary_hold(&summary, now);
	add_many(2, 20, 50);
	assert_int_equal(result().inside_count, 0);
	assert_near(result().recent_error, -0.3, 1e-9);
	add_many(310, 50, 50);
	assert_int_equal(result().inside_count, 310);
	assert_near(result().inside_seconds, 0.6, 1e-9);
	add_many(1, 57, 50);
	assert_int_equal(result().inside_count, 0);
	add_many(3, 50, 50);
	assert_int_equal(result().inside_count, 3);
	assert_near(result().inside_seconds, 314 * 0.2, 1e-9);
	assert_near(result().settle_seconds, 0.6, 1e-9);
}

TEST(an_average_lets_samples_of_bursts_make_up_for_each_other)
{
	const struct ll_summary_config config = {.band = 0.04, .step_limit = 0.01, .average = 5};
	ll_summary_init(&summary, &config);
	ll_summary_hold(&summary, now);
	for (int i = 0; i < 20; i++)
		assert_true(add_percent(i % 5 == 3 ? 66 : 47, 50));
	assert_near(result().settle_seconds, 0.2, 1e-9);
	assert_int_equal(result().inside_count, 20);
	assert_near(result().level.max_abs_error, 0.16, 1e-9);
	add_many(2, 66, 50); /* 47 47 66 66 66 */
	assert_int_equal(result().inside_count, 0);
	assert_near(result().recent_error, (3 * 0.16 - 2 * 0.03) / 5, 1e-9);
	/* What was before a stop does not count. */
	ll_summary_stop(&summary, now, true);
	ll_summary_hold(&summary, now);
	add_many(1, 50, 50);
	assert_int_equal(result().inside_count, 1);
	assert_near(result().recent_error, 0, 1e-9);
}

TEST(time_that_others_take_from_the_start_on_is_yielded)
{
	ll_summary_keep(&summary, now);
	now += 2 * S;
	ll_summary_keep(&summary, now); /* it tried again */
	now += S;
	assert_int_equal(result().yield_count, 2);
	assert_near(result().yielded_seconds, 3, 1e-9);
	assert_near(result().seconds, 0, 0);
	ll_summary_hold(&summary, now);
	now += S;
	ll_summary_keep(&summary, now); /* no longer kept from the start */
	assert_int_equal(result().yield_count, 2);
	assert_near(result().yielded_seconds, 3, 1e-9);
	assert_near(result().seconds, 1, 1e-9);
}

TEST(one_point_off_is_inside_for_every_whole_percent)
{
	ll_summary_hold(&summary, now);
	for (int target = 1; target <= 99; target++) {
		add_many(1, target + 1, target);
		add_many(1, target - 1, target);
	}
	assert_near(result().settle_seconds, 0.2, 1e-9);
}

TEST(yielded_time_is_left_out_and_counted)
{
	ll_summary_hold(&summary, now);
	add_many(10, 50, 50);
	ll_summary_stop(&summary, now + 100 * MS, true);
	assert_false(add_percent(95, 50));
	assert_false(add_percent(95, 50));
	ll_summary_stop(&summary, now, true);
	ll_summary_hold(&summary, now + 100 * MS);
	assert_false(add_percent(25, 50));
	add_many(10, 50, 50);
	ll_summary_stop(&summary, now, true);
	ll_summary_hold(&summary, now + 50 * MS);
	ll_summary_stop(&summary, now + 100 * MS, false);
	now += S;
	struct ll_summary_result account = result();
	assert_int_equal(account.yield_count, 2);
	assert_near(account.yielded_seconds, 0.4 + 0.05 + 0.9, 1e-9);
	assert_int_equal(account.level.sample_count, 20);
	assert_near(account.level.max_abs_error, 0.0, 1e-9);
	assert_near(account.settle_seconds, 0.2, 1e-9);
	assert_near(account.seconds, 23 * 0.2 + 1.0, 1e-9);
}

TEST(window_that_hangs_over_a_whole_yield_is_left_out)
{
	ll_summary_hold(&summary, now);
	ll_summary_stop(&summary, now + 50 * MS, true);
	ll_summary_hold(&summary, now + 60 * MS);
	assert_false(add_percent(45, 50));
	assert_true(add_percent(50, 50));
}

TEST(first_kernel_counts_from_its_own_instant)
{
	assert_false(add_percent(0, 50));
	ll_summary_hold(&summary, now + 150 * MS);
	ll_summary_hold(&summary, now + 170 * MS);
	assert_false(add_percent(12, 50));
	add_many(5, 50, 50);
	assert_near(result().settle_seconds, 0.25, 1e-9);
	assert_near(result().seconds, 1.05, 1e-9);
}

TEST(curve_is_judged_by_the_target_of_the_moment_and_steps_are_left_out)
{
	ll_summary_hold(&summary, now);
	for (int i = 0; i < 100; i++)
		add_many(1, 20 + i * 0.3, 20 + i * 0.3 - 0.5);
	struct ll_summary_sample step = {
	    .start_ns = now, .end_ns = now + WINDOW, .value = 0.6, .target = 0.5, .largest_step = 0.6};
	assert_false(ll_summary_add(&summary, &step));
	step.largest_step = 0.0101;
	assert_false(ll_summary_add(&summary, &step));
	step.largest_step = 0.01;
	step.value = 0.5;
	assert_true(ll_summary_add(&summary, &step));
	struct ll_summary_result account = result();
	assert_int_equal(account.level.sample_count, 101);
	assert_near(account.settle_seconds, 0.2, 1e-9);
	assert_near(account.level.mean_error, 0.005 * 100 / 101, 1e-9);
	assert_near(account.level.max_abs_error, 0.005, 1e-9);
}

TEST(slow_meter_is_given_time_after_a_start)
{
	const struct ll_summary_config config = {.band = 4.0, .step_limit = 4.0, .guard_ns = 3 * S};
	ll_summary_init(&summary, &config);
	ll_summary_hold(&summary, BEGIN);
	struct ll_summary_sample sample = {.value = 150.0, .target = 200.0};
	sample.start_ns = BEGIN + 2900 * MS;
	sample.end_ns = sample.start_ns + 100 * MS;
	assert_false(ll_summary_add(&summary, &sample));
	sample.start_ns += 100 * MS;
	sample.end_ns += 100 * MS;
	sample.value = 203.0;
	assert_true(ll_summary_add(&summary, &sample));
	now = sample.end_ns;
	assert_near(result().level.mean_error, 3.0, 1e-9);
	assert_near(result().settle_seconds, 3.1, 1e-9);
}

TEST(bad_samples_are_not_judged)
{
	ll_summary_hold(&summary, now);
	struct ll_summary_sample sample = {.start_ns = now, .end_ns = now, .value = 0.5, .target = 0.5};
	assert_false(ll_summary_add(&summary, &sample));
	sample.end_ns = now + WINDOW;
	sample.value = (double)NAN;
	assert_false(ll_summary_add(&summary, &sample));
	assert_int_equal(result().level.sample_count, 0);
}

TEST(busy_seconds_and_joules_add_up)
{
	ll_summary_hold(&summary, now);
	for (int i = 0; i < 1000; i++)
		ll_summary_add_busy(&summary, 5 * MS);
	ll_summary_add_energy(&summary, 70.0, true);
	ll_summary_add_energy(&summary, 30.0, true);
	ll_summary_add_energy(&summary, 40.0, false);
	struct ll_summary_result account = result();
	assert_near(account.synthetic_busy_seconds, 5.0, 1e-9);
	assert_near(account.energy_joules, 140.0, 1e-9);
	assert_near(account.synthetic_joules, 100.0, 1e-9);
}
