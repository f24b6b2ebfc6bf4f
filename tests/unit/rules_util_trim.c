#include "rules_plant.h"

#include <stdbool.h>
#include <string.h>

#include "rules/hold/level.h"

#define WINDOW (200 * MS)

/* A card with its pacer and its NVML: what is lost, added, and how the reading is made whole. */
struct world {
	double loss;   /* duty that pacing loses, ratio */
	double offset; /* what NVML counts above the kernels' own records, ratio */
	double jitter; /* deviation of the own busy share of a window, ratio */
	bool is_cut;   /* NVML cuts off instead of rounding */
	bool has_own;  /* own busy shares are known */
	int latency;   /* windows until a reading is seen */
	uint64_t seed;
	uint64_t now_ns;
	struct ll_util_trim_window late[4];
	unsigned window_count;
};

static unsigned read_percent(const struct world *world, double ratio)
{
	double percent = fmin(fmax(ratio * 100.0, 0.0), 100.0);
	return (unsigned)(world->is_cut ? floor(percent) : floor(percent + 0.5));
}

/* One window at this target; the reading of an earlier one arrives. Returns the reading made. */
static unsigned hold_window(struct world *world, struct ll_util_trim *trim, double target)
{
	double command = 0.0;
	for (int i = 0; i < 20; i++)
		command += ll_util_trim_command(trim, world->now_ns + (uint64_t)i * 10 * MS, target) / 20.0;
	double own = fmin(fmax(command - world->loss + world->jitter * plant_normal(&world->seed), 0.0), 1.0);
	struct ll_util_trim_window *slot = &world->late[world->window_count % 4];
	*slot = (struct ll_util_trim_window){
	    .start_ns = world->now_ns,
	    .end_ns = world->now_ns + WINDOW,
	    .percent = read_percent(world, own + world->offset),
	    .own_busy_ratio = world->has_own ? own : (double)NAN,
	};
	unsigned percent = slot->percent;
	world->now_ns += WINDOW;
	unsigned seen = world->window_count - (unsigned)world->latency;
	if (world->window_count >= (unsigned)world->latency)
		ll_util_trim_add(trim, &world->late[seen % 4]);
	world->window_count++;
	return percent;
}

static struct world new_world(uint64_t seed)
{
	return (struct world){.has_own = true, .latency = 1, .seed = seed, .now_ns = 10 * S};
}

struct outcome {
	double mean_error;  /* points, readings from 1 s on, 60 s */
	double worst_error; /* points, same */
	double trim_low;    /* ratio, over the windows at rest after that */
	double trim_high;
};

static struct outcome run(struct world *world, double target, int windows_at_rest)
{
	struct ll_util_trim trim;
	trim = (struct ll_util_trim){0};
	struct outcome outcome = {.trim_low = 1.0, .trim_high = -1.0};
	for (int i = 0; i < 5; i++)
		hold_window(world, &trim, target);
	for (int i = 0; i < 300; i++) {
		double error = hold_window(world, &trim, target) - target * 100.0;
		outcome.mean_error += error / 300.0;
		outcome.worst_error = fmax(outcome.worst_error, fabs(error));
	}
	for (int i = 0; i < windows_at_rest; i++) {
		hold_window(world, &trim, target);
		outcome.trim_low = fmin(outcome.trim_low, ll_util_trim_value(&trim));
		outcome.trim_high = fmax(outcome.trim_high, ll_util_trim_value(&trim));
	}
	return outcome;
}

/* Every kind of card: a way to make readings whole, losses, offsets, jitter, with and without own records. */
static struct world world_of_kind(unsigned kind)
{
	struct world world = new_world(1000 + kind);
	world.is_cut = kind & 1;
	world.has_own = kind & 2;
	world.loss = kind & 4 ? 0.006 : 0.0;
	world.offset = kind & 8 ? 0.004 : 0.0;
	world.jitter = kind & 16 ? 0.003 : 0.0005;
	world.latency = kind & 32 ? 2 : 1;
	return world;
}

enum { KINDS = 64 };

TEST(mean_of_60_s_is_within_0_3_for_every_kind_of_card)
{
	static const double targets[] = {0.05, 0.126, 0.13, 0.30, 0.50, 0.605, 0.80, 0.95, 0.97};
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			struct world world = world_of_kind(kind);
			struct outcome outcome = run(&world, targets[t], 0);
			assert_between(outcome.mean_error, -0.15, 0.15);
		}
	}
}

TEST(trim_at_rest_moves_by_less_than_0_2_points)
{
	static const double targets[] = {0.126, 0.50, 0.605};
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			struct world world = world_of_kind(kind);
			struct outcome outcome = run(&world, targets[t], 3000);
			assert_between(50.0 * (outcome.trim_high - outcome.trim_low), 0.0, 0.2);
		}
	}
}

TEST(every_sample_after_1_s_is_within_1_point)
{
	static const double targets[] = {0.05, 0.13, 0.30, 0.50, 0.60, 0.80, 0.95};
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
		for (unsigned kind = 0; kind < KINDS; kind++) {
			struct world world = world_of_kind(kind);
			world.jitter = 0.0015;
			struct outcome outcome = run(&world, targets[t], 0);
			assert_between(outcome.worst_error, 0.0, 1.0 + 1e-9);
		}
	}
}

/* The plants above are hard enough: with no trim they miss the mean that the trim reaches. */
TEST(untrimmed_plant_misses_the_mean)
{
	struct world world = world_of_kind(1 | 4 | 16);
	struct ll_util_trim untaught;
	double mean_error = 0.0;
	for (int i = 0; i < 300; i++) {
		untaught = (struct ll_util_trim){0};
		mean_error += (hold_window(&world, &untaught, 0.5) - 50.0) / 300.0;
	}
	assert_true(mean_error < -0.3);
}

TEST(trim_never_passes_3_points_nor_the_command_0_to_1)
{
	struct world world = new_world(7);
	world.loss = 0.05;
	struct ll_util_trim trim;
	trim = (struct ll_util_trim){0};
	for (int i = 0; i < 600; i++)
		hold_window(&world, &trim, 0.5);
	assert_between(ll_util_trim_value(&trim), LL_UTIL_TRIM_MAX - 0.002, LL_UTIL_TRIM_MAX);
	assert_true(ll_util_trim_command(&trim, world.now_ns, 0.99) == 1.0);
	world = new_world(7);
	world.offset = 0.05;
	trim = (struct ll_util_trim){0};
	for (int i = 0; i < 600; i++)
		hold_window(&world, &trim, 0.5);
	assert_between(ll_util_trim_value(&trim), -LL_UTIL_TRIM_MAX, -LL_UTIL_TRIM_MAX + 0.002);
	assert_true(ll_util_trim_command(&trim, world.now_ns, 0.01) == 0.0);
}

/* A trim that has learned 0.6 points of loss at 50 %, and the time it has got to. */
static uint64_t teach(struct ll_util_trim *trim)
{
	struct world world = new_world(3);
	world.loss = 0.006;
	*trim = (struct ll_util_trim){0};
	for (int i = 0; i < 100; i++)
		hold_window(&world, trim, 0.5);
	assert_near(ll_util_trim_value(trim), 0.006, 0.002);
	return world.now_ns;
}

static struct ll_util_trim_window sample_at(uint64_t start_ns, unsigned percent, double own)
{
	return (struct ll_util_trim_window){
	    .start_ns = start_ns, .end_ns = start_ns + WINDOW, .percent = percent, .own_busy_ratio = own};
}

TEST(disturbed_windows_teach_nothing)
{
	struct ll_util_trim trim;
	uint64_t now = teach(&trim);
	double before = ll_util_trim_value(&trim);
	struct ll_util_trim_window marked = sample_at(now - WINDOW, 50, 0.5);
	marked.is_disturbed = true;
	assert_int_equal(ll_util_trim_add(&trim, &marked), LL_UTIL_TRIM_DISTURBED);
	struct ll_util_trim_window foreign = sample_at(now - WINDOW, 80, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &foreign), LL_UTIL_TRIM_DISTURBED);
	struct ll_util_trim_window blind = sample_at(now - WINDOW, 80, (double)NAN);
	assert_int_equal(ll_util_trim_add(&trim, &blind), LL_UTIL_TRIM_DISTURBED);
	assert_true(ll_util_trim_value(&trim) == before);
	struct ll_util_trim_window clean = sample_at(now - WINDOW, 51, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &clean), LL_UTIL_TRIM_USED);
	assert_true(ll_util_trim_value(&trim) < before);
}

TEST(step_keeps_the_trim_and_its_window_is_mixed)
{
	struct ll_util_trim trim;
	uint64_t now = teach(&trim);
	double before = ll_util_trim_value(&trim);
	uint64_t step = now + 100 * MS;
	assert_near(ll_util_trim_command(&trim, step, 0.8), 0.8 + before, 1e-12);
	struct ll_util_trim_window mixed = sample_at(now, 65, 0.65);
	assert_int_equal(ll_util_trim_add(&trim, &mixed), LL_UTIL_TRIM_MIXED);
	/* The kernels follow within a period, so a window that begins with the step is not clean either. */
	struct ll_util_trim_window early = sample_at(step, 78, 0.78);
	assert_int_equal(ll_util_trim_add(&trim, &early), LL_UTIL_TRIM_MIXED);
	assert_true(ll_util_trim_value(&trim) == before);
	struct ll_util_trim_window clean = sample_at(step + 50 * MS, 80, 0.8);
	assert_int_equal(ll_util_trim_add(&trim, &clean), LL_UTIL_TRIM_USED);
	assert_near(ll_util_trim_value(&trim), before, 0.002);
	/* NVML's stamp may be some ms off, so one that ends just before the step is not clean. */
	struct ll_util_trim_window late = sample_at(step - 10 * MS - WINDOW, 50, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &late), LL_UTIL_TRIM_MIXED);
}

TEST(loss_at_a_new_target_is_learned_in_2_s)
{
	struct ll_util_trim trim;
	struct world world = new_world(3);
	world.now_ns = teach(&trim);
	world.loss = 0.014;
	for (int i = 0; i < 12; i++)
		hold_window(&world, &trim, 0.8);
	assert_near(ll_util_trim_value(&trim), 0.014, 0.004);
}

TEST(steady_commands_do_not_push_the_past_out_of_memory)
{
	struct ll_util_trim trim;
	uint64_t now = teach(&trim);
	for (int i = 0; i < 3000; i++)
		ll_util_trim_command(&trim, now + (uint64_t)i * MS, 0.5);
	struct ll_util_trim_window old = sample_at(now + S, 50, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &old), LL_UTIL_TRIM_USED);
}

TEST(last_command_of_an_instant_counts)
{
	struct ll_util_trim trim;
	trim = (struct ll_util_trim){0};
	ll_util_trim_command(&trim, 10 * S, 0.2);
	ll_util_trim_command(&trim, 10 * S, 0.5);
	ll_util_trim_command(&trim, 9 * S, 0.8);
	struct ll_util_trim_window window = sample_at(10 * S + 50 * MS, 80, 0.79);
	assert_int_equal(ll_util_trim_add(&trim, &window), LL_UTIL_TRIM_USED);
	assert_near(trim.bias, 0.005, 1e-9);
}

TEST(windows_not_wholly_held_or_forgotten_teach_nothing)
{
	struct ll_util_trim trim;
	uint64_t now = teach(&trim);
	double before = ll_util_trim_value(&trim);
	ll_util_trim_pause(&trim, now + 150 * MS);
	struct ll_util_trim_window half = sample_at(now, 38, 0.38);
	assert_int_equal(ll_util_trim_add(&trim, &half), LL_UTIL_TRIM_NOT_HOLDING);
	uint64_t resumed = now + 5 * S;
	ll_util_trim_command(&trim, resumed, 0.5);
	struct ll_util_trim_window paused = sample_at(now + S, 0, 0.0);
	assert_int_equal(ll_util_trim_add(&trim, &paused), LL_UTIL_TRIM_NOT_HOLDING);
	struct ll_util_trim_window edge = sample_at(resumed, 50, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &edge), LL_UTIL_TRIM_NOT_HOLDING);
	struct ll_util_trim_window ancient = sample_at(S, 50, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &ancient), LL_UTIL_TRIM_NOT_HOLDING);
	struct ll_util_trim_window empty = {.start_ns = resumed + S, .end_ns = resumed + S, .percent = 50};
	assert_int_equal(ll_util_trim_add(&trim, &empty), LL_UTIL_TRIM_NOT_HOLDING);
	assert_true(ll_util_trim_value(&trim) == before);
	struct ll_util_trim_window clean = sample_at(resumed + 50 * MS, 50, 0.5);
	assert_int_equal(ll_util_trim_add(&trim, &clean), LL_UTIL_TRIM_USED);
}

TEST(slow_sine_is_trimmed_too)
{
	struct ll_util_trim trim;
	trim = (struct ll_util_trim){0};
	unsigned used = 0;
	for (int window = 0; window < 600; window++) {
		uint64_t start = 10 * S + (uint64_t)window * WINDOW;
		double command = 0.0;
		for (int i = 0; i < 20; i++) {
			double seconds = window * 0.2 + i * 0.01;
			double target = 0.5 + 0.3 * sin(6.283185307 * seconds / 60.0);
			command += ll_util_trim_command(&trim, start + (uint64_t)i * 10 * MS, target) / 20.0;
		}
		struct ll_util_trim_window sample =
		    sample_at(start, (unsigned)floor((command - 0.006) * 100.0 + 0.5), command - 0.006);
		used += ll_util_trim_add(&trim, &sample) == LL_UTIL_TRIM_USED;
	}
	assert_true(used > 300);
	assert_near(ll_util_trim_value(&trim), 0.006, 0.001);
}
