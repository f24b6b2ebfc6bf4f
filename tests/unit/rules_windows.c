#include "test.h"

#include <math.h>

#include "rules/share/windows.h"

static double part(const struct ll_windows_job *job, uint64_t period_ns)
{
	return (double)job->length_ns / (double)period_ns;
}

static void assert_part(const struct ll_windows_job *job, uint64_t period_ns, double wanted)
{
	assert_true(fabs(part(job, period_ns) - wanted) < 0.001);
}

TEST(caps_below_the_card_are_given_as_they_are)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000, .cap_permille = 600, .is_windowed = true},
					{.weight_permille = 1000, .cap_permille = 300, .is_windowed = true}};
	uint64_t period_ns = ll_windows_divide(jobs, 2);
	assert_part(&jobs[0], period_ns, 0.6);
	assert_part(&jobs[1], period_ns, 0.3);
	/* One after the other. */
	assert_int_equal(jobs[0].offset_ns, 0);
	assert_int_equal(jobs[1].offset_ns, jobs[0].length_ns);
	assert_int_equal(period_ns, 2 * LL_WINDOWS_EACH_NS);
}

TEST(jobs_without_a_window_have_what_the_windows_leave)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000},
					{.weight_permille = 1000, .cap_permille = 300, .is_windowed = true},
					/* it has a cap, and does not reach it */
					{.weight_permille = 1000, .cap_permille = 300}};
	uint64_t period_ns = ll_windows_divide(jobs, 3);
	assert_part(&jobs[1], period_ns, 0.3);
	assert_part(&jobs[0], period_ns, 0.7);
	assert_int_equal(jobs[0].offset_ns, jobs[1].length_ns);
	assert_int_equal(jobs[2].offset_ns, jobs[0].offset_ns);
	assert_int_equal(jobs[2].length_ns, jobs[0].length_ns);
}

TEST(caps_above_the_card_shrink_by_weight)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000, .cap_permille = 700, .is_windowed = true},
					{.weight_permille = 3000, .cap_permille = 900, .is_windowed = true}};
	uint64_t period_ns = ll_windows_divide(jobs, 2);
	assert_part(&jobs[0], period_ns, 0.25);
	assert_part(&jobs[1], period_ns, 0.75);
}

TEST(what_a_small_cap_leaves_goes_to_the_others)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000, .cap_permille = 100, .is_windowed = true},
					{.weight_permille = 1000, .cap_permille = 800, .is_windowed = true},
					{.weight_permille = 1000, .cap_permille = 800, .is_windowed = true}};
	uint64_t period_ns = ll_windows_divide(jobs, 3);
	assert_part(&jobs[0], period_ns, 0.1);
	assert_part(&jobs[1], period_ns, 0.45);
	assert_part(&jobs[2], period_ns, 0.45);
}

/* A cap of 90 % does not keep the card from a job without a cap. */
TEST(a_large_cap_leaves_the_others_their_weights)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000, .cap_permille = 900, .is_windowed = true},
					{.weight_permille = 1000}};
	uint64_t period_ns = ll_windows_divide(jobs, 2);
	assert_part(&jobs[0], period_ns, 0.5);
	assert_part(&jobs[1], period_ns, 0.5);
}

TEST(a_small_cap_has_a_longer_period)
{
	struct ll_windows_job job = {.weight_permille = 1000, .cap_permille = 10, .is_windowed = true};
	uint64_t period_ns = ll_windows_divide(&job, 1);
	assert_int_equal(job.length_ns, LL_WINDOWS_LEAST_NS);
	assert_part(&job, period_ns, 0.01);
	job.cap_permille = 1;
	assert_int_equal(ll_windows_divide(&job, 1), LL_WINDOWS_PERIOD_MOST_NS);
	assert_part(&job, LL_WINDOWS_PERIOD_MOST_NS, 0.001);
}

TEST(without_a_window_there_is_no_period)
{
	struct ll_windows_job jobs[] = {{.weight_permille = 1000, .cap_permille = 300}, {.weight_permille = 1000}};
	assert_int_equal(ll_windows_divide(jobs, 2), 0);
	assert_int_equal(ll_windows_divide(jobs, 0), 0);
}
