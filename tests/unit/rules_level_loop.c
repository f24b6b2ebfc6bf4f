#include "rules_plant.h"

#include <stdbool.h>

#include "rules/hold/level.h"

/*
 * A card and its meter: the level follows the duty at once, the meter shows it through a first-order lag, or
 * averaged over the last second, or averaged over the reading's own window. Time goes in steps of 10 ms.
 */
enum meter { METER_LAG, METER_AVERAGE, METER_WINDOW };

enum { STEP_MS = 10, HISTORY = 100 };

struct plant {
	enum meter meter;
	double gain;
	double floor;
	double bend;  /* part of the gain lost at duty 1: the plant is only about linear */
	double lag_s; /* METER_LAG */
	double noise; /* deviation of a reading */
	uint64_t seed;
	uint64_t now_ns;
	double shown;
	double past[HISTORY];
	unsigned steps;
};

static double level_of(const struct plant *plant, double duty)
{
	return plant->floor + plant->gain * duty * (1.0 - plant->bend * duty);
}

static void pass_time(struct plant *plant, double duty, unsigned ms)
{
	for (unsigned t = 0; t < ms; t += STEP_MS) {
		double level = level_of(plant, duty);
		plant->shown += (level - plant->shown) * (1.0 - exp(-0.001 * STEP_MS / plant->lag_s));
		plant->past[plant->steps++ % HISTORY] = level;
		plant->now_ns += STEP_MS * MS;
	}
}

static double read_meter(struct plant *plant, unsigned window_ms)
{
	double noise = plant->noise * plant_normal(&plant->seed);
	if (plant->meter == METER_LAG)
		return plant->shown + noise;
	unsigned n = plant->meter == METER_WINDOW ? window_ms / STEP_MS : HISTORY;
	double sum = 0.0;
	for (unsigned i = 0; i < n; i++)
		sum += plant->past[(plant->steps - 1 - i) % HISTORY];
	return sum / n + noise;
}

static void settle_idle(struct plant *plant)
{
	plant->now_ns = 10 * S;
	plant->shown = plant->floor;
	for (unsigned i = 0; i < HISTORY; i++)
		plant->past[i] = plant->floor;
}

struct outcome {
	double overshoot; /* part of the step, of the true level */
	double settle_s;  /* from which on the true level stays within the tolerance */
	double mean;      /* of 60 s of true level */
	double level;
};

/* Follows the loop for some seconds from a true level of `from`. */
static struct outcome follow(struct plant *plant, struct ll_level_loop *loop, double from, unsigned seconds)
{
	unsigned interval_ms = (unsigned)lround(loop->config.interval_s * 1000.0);
	struct outcome outcome = {.settle_s = 0.0};
	uint64_t begin = plant->now_ns;
	unsigned count = 0;
	double target = loop->target;
	for (unsigned t = 0; t < seconds * 1000; t += interval_ms) {
		pass_time(plant, loop->duty, interval_ms);
		ll_level_loop_update(loop, plant->now_ns, read_meter(plant, interval_ms));
		double level = level_of(plant, loop->duty);
		outcome.overshoot = fmax(outcome.overshoot, (level - target) / (target - from));
		if (fabs(level - target) > loop->config.tolerance)
			outcome.settle_s = (double)(plant->now_ns - begin) / 1e9;
		if (t + 60000 >= seconds * 1000) {
			outcome.mean += level;
			count++;
		}
		outcome.level = level;
	}
	outcome.mean /= count;
	return outcome;
}

static struct ll_level_loop start(struct plant *plant, const struct ll_level_loop_config *config, double target)
{
	struct ll_level_loop loop;
	settle_idle(plant);
	ll_level_loop_init(&loop, config, target);
	ll_level_loop_resume(&loop, plant->now_ns);
	return loop;
}

static const double gain_factors[] = {0.5, 0.8, 1.0, 1.4, 2.0};

enum { GAINS = sizeof gain_factors / sizeof *gain_factors };

/* A GPM plant whose true gain is factor times the guess of 1. */
static struct plant gpm_plant(double factor, double noise)
{
	return (struct plant){
	    .meter = METER_WINDOW, .gain = factor, .floor = 0.004, .bend = 0.1, .lag_s = 1, .noise = noise, .seed = 5};
}

/* An H200 in a power test: 121 W with a context, about 300 W more at full duty; the floor told is 3 W off. */
static struct plant power_plant(enum meter meter, double factor, double noise)
{
	return (struct plant){.meter = meter,
			      .gain = 300.0 * factor,
			      .floor = 124.0,
			      .bend = 0.1,
			      .lag_s = 1.0,
			      .noise = noise,
			      .seed = 9};
}

static struct ll_level_loop_config power_config(void)
{
	return ll_level_loop_power_config(121.0, 421.0, 0.1);
}

TEST(gpm_settles_in_2_s_without_overshoot_and_holds_the_mean)
{
	struct ll_level_loop_config config = ll_level_loop_gpm_config(1.0, 0.1);
	for (int i = 0; i < GAINS; i++) {
		struct plant plant = gpm_plant(gain_factors[i], 0.0);
		struct ll_level_loop loop = start(&plant, &config, 0.38);
		struct outcome outcome = follow(&plant, &loop, plant.floor, 70);
		assert_between(outcome.overshoot, -1.0, 0.05);
		assert_between(outcome.settle_s, 0.0, 2.0);
		assert_near(outcome.mean, 0.38, 0.001);
		ll_level_loop_set_target(&loop, 0.20);
		outcome = follow(&plant, &loop, 0.38, 70);
		assert_between(outcome.overshoot, -1.0, 0.05);
		assert_between(outcome.settle_s, 0.0, 2.0);
		assert_near(outcome.mean, 0.20, 0.001);
	}
}

TEST(gpm_holds_the_mean_within_1_point_through_noise)
{
	struct ll_level_loop_config config = ll_level_loop_gpm_config(1.0, 0.1);
	for (int i = 0; i < GAINS; i++) {
		struct plant plant = gpm_plant(gain_factors[i], 0.01);
		struct ll_level_loop loop = start(&plant, &config, 0.38);
		struct outcome outcome = follow(&plant, &loop, plant.floor, 65);
		assert_near(outcome.mean, 0.38, 0.003);
		assert_near(outcome.level, 0.38, 0.02);
	}
}

TEST(power_settles_in_10_s_without_overshoot_whatever_its_meter)
{
	struct ll_level_loop_config config = power_config();
	for (int i = 0; i < GAINS; i++) {
		for (enum meter meter = METER_LAG; meter <= METER_AVERAGE; meter++) {
			struct plant plant = power_plant(meter, gain_factors[i], 0.0);
			struct ll_level_loop loop = start(&plant, &config, 240.0);
			struct outcome outcome = follow(&plant, &loop, plant.floor, 70);
			assert_between(outcome.overshoot, -1.0, 0.05);
			assert_between(outcome.settle_s, 0.0, 10.0);
			assert_near(outcome.mean, 240.0, 1.0);
			ll_level_loop_set_target(&loop, 180.0);
			outcome = follow(&plant, &loop, 240.0, 70);
			assert_between(outcome.overshoot, -1.0, 0.05);
			assert_between(outcome.settle_s, 0.0, 10.0);
			assert_near(outcome.mean, 180.0, 1.0);
		}
	}
}

TEST(power_holds_the_mean_within_2_percent_through_noise)
{
	struct ll_level_loop_config config = power_config();
	for (int i = 0; i < GAINS; i++) {
		for (int k = 0; k < 3; k++) {
			double target = 150.0 + 50.0 * k;
			struct plant plant = power_plant(METER_AVERAGE, gain_factors[i], 2.0);
			struct ll_level_loop loop = start(&plant, &config, target);
			struct outcome outcome = follow(&plant, &loop, plant.floor, 72);
			assert_near(outcome.mean, target, 0.01 * target);
			assert_near(outcome.level, target, 0.02 * target);
		}
	}
}

/* The plants are hard enough: the guess alone, without the loop, misses by far. */
TEST(guess_alone_misses)
{
	struct plant plant = power_plant(METER_LAG, 0.8, 0.0);
	double duty = (240.0 - 121.0) / 300.0;
	assert_true(fabs(level_of(&plant, duty) - 240.0) > 10.0);
}

/* Runs until a limit is reported; returns the seconds that the duty had been at it. */
static double seconds_to_report(struct plant *plant, struct ll_level_loop *loop, double limit)
{
	uint64_t since = 0;
	double reach = -1.0;
	for (int i = 0; i < 600; i++) {
		pass_time(plant, loop->duty, 100);
		ll_level_loop_update(loop, plant->now_ns, read_meter(plant, 100));
		if (loop->duty != limit)
			since = 0;
		else if (since == 0)
			since = plant->now_ns;
		if (ll_level_loop_state(loop, &reach) != LL_LEVEL_TRACKING)
			return (double)(plant->now_ns - since) / 1e9;
		assert_true(reach == -1.0);
	}
	fail_msg("never reported");
	return 0.0;
}

TEST(target_above_the_ceiling_is_reported_with_what_is_reached)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_LAG, 1.09, 1.5);
	double ceiling = level_of(&plant, 1.0);
	struct ll_level_loop loop = start(&plant, &config, 700.0);
	assert_between(seconds_to_report(&plant, &loop, 1.0), 8.0, 16.0);
	follow(&plant, &loop, plant.floor, 5);
	double reach = 0.0;
	assert_int_equal(ll_level_loop_state(&loop, &reach), LL_LEVEL_TARGET_TOO_HIGH);
	assert_near(reach, ceiling, 2.0);
	assert_true(loop.duty == 1.0);

	config = ll_level_loop_gpm_config(1.0, 0.1);
	plant = gpm_plant(0.8, 0.005);
	loop = start(&plant, &config, 0.9);
	assert_between(seconds_to_report(&plant, &loop, 1.0), 5.0, 7.0);
}

TEST(reachable_target_is_never_reported)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_LAG, 1.0, 1.5);
	struct ll_level_loop loop = start(&plant, &config, level_of(&plant, 0.97));
	for (int i = 0; i < 120; i++) {
		follow(&plant, &loop, plant.floor, 1);
		assert_int_equal(ll_level_loop_state(&loop, NULL), LL_LEVEL_TRACKING);
	}
}

TEST(target_below_the_floor_is_reported)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_AVERAGE, 1.0, 1.5);
	struct ll_level_loop loop = start(&plant, &config, 100.0);
	follow(&plant, &loop, plant.floor, 30);
	double reach = 0.0;
	assert_int_equal(ll_level_loop_state(&loop, &reach), LL_LEVEL_TARGET_TOO_LOW);
	assert_near(reach, plant.floor, 2.0);
	assert_true(loop.duty == 0.0);
}

TEST(long_saturation_does_not_wind_up)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_LAG, 1.0, 0.0);
	struct ll_level_loop loop = start(&plant, &config, 700.0);
	follow(&plant, &loop, plant.floor, 600);
	ll_level_loop_set_target(&loop, 250.0);
	struct outcome outcome = follow(&plant, &loop, level_of(&plant, 1.0), 70);
	assert_between(outcome.settle_s, 0.0, 10.0);
	assert_between(outcome.overshoot, -1.0, 0.05);
	assert_int_equal(ll_level_loop_state(&loop, NULL), LL_LEVEL_TRACKING);
}

TEST(readings_that_show_a_pause_are_ignored)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_LAG, 1.0, 0.0);
	struct ll_level_loop loop = start(&plant, &config, 240.0);
	follow(&plant, &loop, plant.floor, 60);
	double before = loop.duty;
	pass_time(&plant, 0.0, 10000);
	ll_level_loop_resume(&loop, plant.now_ns);
	assert_true(loop.duty == before);
	for (int i = 0; i < 28; i++) {
		pass_time(&plant, loop.duty, 100);
		assert_true(ll_level_loop_update(&loop, plant.now_ns, read_meter(&plant, 100)) == before);
	}
	struct outcome outcome = follow(&plant, &loop, plant.floor, 60);
	assert_near(outcome.mean, 240.0, 1.0);
	assert_between(outcome.settle_s, 0.0, 0.0);
}

TEST(duty_follows_a_curve_of_20_s)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_AVERAGE, 0.8, 1.0);
	struct ll_level_loop loop = start(&plant, &config, 200.0);
	double worst = 0.0;
	for (int i = 0; i < 2400; i++) {
		ll_level_loop_set_target(&loop, 200.0 + 40.0 * sin(6.283185307 * i * 0.1 / 20.0));
		pass_time(&plant, loop.duty, 100);
		ll_level_loop_update(&loop, plant.now_ns, read_meter(&plant, 100));
		if (i > 200)
			worst = fmax(worst, fabs(level_of(&plant, loop.duty) - loop.target));
	}
	assert_between(worst, 0.0, 3.5);
}

/* The caller that learns its target late sets it after resuming: the first duty is the same. */
TEST(target_set_after_the_start_gives_the_same_first_duty)
{
	struct ll_level_loop_config config = power_config();
	struct plant plant = power_plant(METER_LAG, 0.8, 0.0);
	double first = start(&plant, &config, 240.0).duty;
	assert_between(first, 0.1, 0.3);
	struct ll_level_loop loop = start(&plant, &config, 0.0);
	assert_near(ll_level_loop_set_target(&loop, 240.0), first, 1e-9);
	struct outcome outcome = follow(&plant, &loop, plant.floor, 70);
	assert_between(outcome.overshoot, -1.0, 0.05);
	assert_between(outcome.settle_s, 0.0, 10.0);
}

/* What the jumps cannot do: the card warms up, or a fan starts, long after the last step. */
TEST(drift_of_the_floor_is_corrected_in_seconds)
{
	struct ll_level_loop_config config = ll_level_loop_gpm_config(1.0, 0.1);
	struct plant plant = gpm_plant(0.8, 0.0);
	struct ll_level_loop loop = start(&plant, &config, 0.4);
	follow(&plant, &loop, plant.floor, 60);
	plant.floor += 0.05;
	struct outcome outcome = follow(&plant, &loop, 0.45, 60);
	assert_between(outcome.settle_s, 0.1, 1.5);
	assert_between(outcome.overshoot, -1.0, 0.05);

	config = power_config();
	for (enum meter meter = METER_LAG; meter <= METER_AVERAGE; meter++) {
		plant = power_plant(meter, 1.0, 0.0);
		loop = start(&plant, &config, 240.0);
		follow(&plant, &loop, plant.floor, 60);
		plant.floor += 20.0;
		outcome = follow(&plant, &loop, 260.0, 60);
		assert_between(outcome.settle_s, 0.1, 5.0);
		assert_between(outcome.overshoot, -1.0, 0.20);
	}
}

TEST(missing_and_stale_readings_change_nothing)
{
	struct ll_level_loop_config config = ll_level_loop_gpm_config(1.0, 0.1);
	struct plant plant = gpm_plant(1.0, 0.0);
	struct ll_level_loop loop = start(&plant, &config, 0.5);
	follow(&plant, &loop, plant.floor, 10);
	double before = loop.duty;
	assert_true(ll_level_loop_update(&loop, plant.now_ns + 100 * MS, (double)NAN) == before);
	assert_true(ll_level_loop_update(&loop, plant.now_ns, 0.0) == before);
	assert_true(ll_level_loop_update(&loop, plant.now_ns - S, 0.0) == before);
	assert_true(ll_level_loop_update(&loop, plant.now_ns + 100 * MS, 0.0) > before);
	/* A minute without readings is not a minute of being wrong. */
	before = loop.duty;
	ll_level_loop_update(&loop, plant.now_ns + 60 * S, 0.4);
	assert_between(loop.duty - before, 0.01, 0.2);
}
