/* The slice of the lower classes, and the part of the time in which they are off, by how fast the higher class is. */
#include <math.h>

#include "rules/share/class_slices.h"

#include "rules_plant.h"

/* Speed of the higher class beside a slice of the lower ones, of its speed alone. */
typedef double speed_fn(unsigned slice_us);

static struct ll_class_slices slices;
static struct ll_lever_gauge gauge;
static uint64_t now_ns;
static unsigned least_us, most_us;
static double lost; /* of its speed alone, while the phases change */

/* As the lever does: what is older than some 5 s counts little. */
static void forget_some(void)
{
	static const double keep = 0.998;
	for (int way = LL_LEVER_OPEN; way <= LL_LEVER_HELD; way++) {
		gauge.seconds[way] *= keep;
		gauge.launches[way] *= keep;
		gauge.all_seconds[way] *= keep;
	}
	gauge.all_launches *= keep;
}

/* Runs for so many seconds of work of the higher class, a tenth of it without the others. */
static void work_for(double seconds, speed_fn *speed, unsigned slowdown_permille)
{
	struct ll_lever_job job = {.gauge = &gauge, .id = 1, .slowdown_permille = slowdown_permille, .has_work = true};
	for (unsigned steps = (unsigned)lrint(seconds * 100); steps > 0; steps--) {
		double open = speed(slices.slice_us ? slices.slice_us : LL_CLASS_SLICE_US);
		forget_some();
		gauge.seconds[LL_LEVER_HELD] += 0.001;
		gauge.launches[LL_LEVER_HELD] += 10;
		gauge.seconds[LL_LEVER_OPEN] += 0.009;
		gauge.launches[LL_LEVER_OPEN] += 90 * open;
		gauge.all_seconds[LL_LEVER_HELD] += 0.001;
		gauge.all_seconds[LL_LEVER_OPEN] += 0.009;
		gauge.all_launches += 10 + 90 * open - 100 * lost;
		now_ns += 10 * MS;
		ll_class_slices_step(&slices, &job, 1, now_ns);
		least_us = slices.slice_us < least_us ? slices.slice_us : least_us;
		most_us = slices.slice_us > most_us ? slices.slice_us : most_us;
	}
}

static int begin(void **state)
{
	(void)state;
	slices = (struct ll_class_slices){0};
	gauge = (struct ll_lever_gauge){0};
	now_ns = 0;
	lost = 0;
	least_us = UINT32_MAX;
	most_us = 0;
	return 0;
}

/* Two programs that launch ahead: the higher one has slices of 8 ms, and a change takes 0.2 ms. */
static double flood_beside(unsigned slice_us)
{
	return 8000.0 / (8000 + slice_us + 400);
}

/* A program that waits for each launch: for a slice, each time. */
static double waiter_beside(unsigned slice_us)
{
	return 1000.0 / (1000 + slice_us);
}

static double as_alone(unsigned slice_us)
{
	(void)slice_us;
	return 1;
}

static double half_whatever(unsigned slice_us)
{
	(void)slice_us;
	return 0.5;
}

TEST_EACH(begin, NULL);

TEST(the_first_slice_is_short_and_both_speeds_are_measured_soon)
{
	work_for(0.01, flood_beside, 1300);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_US);
	assert_true(slices.part >= 0.1);
	work_for(5, flood_beside, 1300);
	assert_true(slices.part <= LL_LEVER_LEAST);
}

TEST(the_lower_ones_have_the_longest_slice_that_the_higher_class_accepts)
{
	work_for(60, flood_beside, 1200); /* 1 ms makes it 1.175 times as slow, 2 ms 1.3 times */
	assert_int_equal(slices.slice_us, 1000);
	assert_int_equal(most_us, LL_CLASS_SLICE_MOST_US);
	assert_true(slices.part <= LL_LEVER_LEAST);
}

TEST(a_higher_class_that_loses_nothing_gives_a_longer_slice_to_the_lower_ones)
{
	work_for(60, as_alone, 1300);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_MOST_US);
	assert_true(slices.part <= LL_LEVER_LEAST);
}

TEST(a_slice_that_was_too_long_is_not_tried_again)
{
	work_for(60, waiter_beside, 1300); /* 250 us make it 1.25 times as slow */
	assert_int_equal(slices.slice_us, 250);
	unsigned stays_us = slices.slice_us;
	least_us = UINT32_MAX;
	most_us = 0;
	work_for(60, waiter_beside, 1300);
	assert_int_equal(least_us, stays_us);
	assert_int_equal(most_us, stays_us);
}

TEST(where_slices_change_nothing_the_lower_ones_have_the_longest_and_the_rest_is_time_off)
{
	work_for(60, half_whatever, 1300);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_MOST_US);
	assert_near(slices.part + (1 - slices.part) * 0.5, 1 / 1.3, 0.01);
}

TEST(what_is_lost_while_they_leave_and_return_is_made_up_for)
{
	lost = 0.1;
	work_for(60, half_whatever, 1300);
	assert_near(slices.part + (1 - slices.part) * 0.5 - lost, 1 / 1.3, 0.01);
}

TEST(slices_are_searched_again_when_much_less_is_left)
{
	work_for(60, as_alone, 1300);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_MOST_US);
	work_for(60, waiter_beside, 1300);
	assert_int_equal(slices.slice_us, 250);
}

TEST(where_the_shortest_slice_is_not_enough_the_lower_classes_are_off_for_the_rest)
{
	work_for(120, waiter_beside, 1050);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_LEAST_US);
	double open = waiter_beside(LL_CLASS_SLICE_LEAST_US);
	assert_near(slices.part + (1 - slices.part) * open, 1 / 1.05, 0.01);
}

TEST(without_work_nothing_is_checked)
{
	struct ll_lever_job idle = {.gauge = &gauge, .id = 1, .slowdown_permille = 1000};
	gauge.seconds[LL_LEVER_HELD] = gauge.seconds[LL_LEVER_OPEN] = 1;
	gauge.launches[LL_LEVER_HELD] = 1000;
	gauge.launches[LL_LEVER_OPEN] = 100;
	for (unsigned i = 0; i < 1000; i++)
		ll_class_slices_step(&slices, &idle, 1, now_ns += 100 * MS);
	assert_int_equal(slices.slice_us, LL_CLASS_SLICE_US);
}
