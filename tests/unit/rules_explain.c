/* Steps as loadlined recorded them on the simulator, each half a second long, and what is named for them. */
#include <math.h>
#include <string.h>

#include "rules/explain/explain.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define STEP (500 * MS)

enum phase { WORK, HOST, COPIES, IDLE, SHARED, CLASS, CAP, ROOM, EVICTED, SPACE, ONE_OF_SEVERAL, PHASES };

static const struct ll_minute_step recorded[PHASES] = {
    [WORK] = {.work_ns = 489 * MS, .wanted_ns = 500 * MS, .turn_ns = 470 * MS, .has_completed = true},
    [HOST] = {.work_ns = 3 * MS, .wanted_ns = 24 * MS, .has_completed = true},
    [COPIES] = {.copied_ns = 471 * MS},
    [IDLE] = {.cpu_ns = 0},
    [SHARED] = {.work_ns = 246 * MS,
		.wanted_ns = 500 * MS,
		.turn_ns = 487 * MS,
		.others_ns = 251 * MS,
		.others_wanted_ns = 500 * MS,
		.has_completed = true},
    [CLASS] = {.work_ns = 52 * MS,
	       .wanted_ns = 500 * MS,
	       .turn_ns = 488 * MS,
	       .others_ns = 431 * MS,
	       .higher_ns = 431 * MS,
	       .others_wanted_ns = 500 * MS,
	       .has_completed = true},
    [CAP] = {.work_ns = 99 * MS, .wanted_ns = 502 * MS, .turn_ns = 494 * MS, .cap_ns = 400 * MS, .has_completed = true},
    [ROOM] = {.away = LL_MINUTE_AWAY_WAITING, .memory_ns = 500 * MS},
    [EVICTED] = {.away = LL_MINUTE_AWAY_BY_HAND},
    [SPACE] = {.work_ns = 484 * MS,
	       .wanted_ns = 500 * MS,
	       .others_ns = 480 * MS,
	       .others_wanted_ns = 500 * MS,
	       .has_completed = true,
	       .is_by_space = true},
    [ONE_OF_SEVERAL] = {.turn_ns = 490 * MS,
			.wanted_ns = 500 * MS,
			.others_ns = 495 * MS,
			.others_wanted_ns = 500 * MS,
			.is_split = true},
};

struct part {
	enum phase phase;
	unsigned steps;
};

struct story {
	struct part parts[3];
	double clock_ratio; /* 0: they are not held down */
	enum ll_cause first, second;
};

static uint64_t seed;

/* Each number differs by up to so many percent of itself; 0: as recorded. */
static uint64_t disturb(uint64_t ns, unsigned percent)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	double by = percent / 100.0 * ((double)(seed >> 33) / (double)(UINT64_C(1) << 30) - 1);
	return (uint64_t)((double)ns * (1 + by));
}

static struct ll_minute_step step_of(enum phase phase, unsigned percent)
{
	struct ll_minute_step step = recorded[phase];
	uint64_t *const numbers[] = {&step.work_ns,   &step.wanted_ns, &step.turn_ns,   &step.cap_ns,
				     &step.memory_ns, &step.copied_ns, &step.others_ns, &step.others_wanted_ns};
	bool is_higher = step.higher_ns;
	step.length_ns = disturb(STEP, percent);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = disturb(*numbers[i], percent);
	step.higher_ns = is_higher ? step.others_ns : 0;
	return step;
}

/* Goes through the parts for at least a minute. */
static size_t find(const struct story *story, unsigned percent, struct ll_cause_part causes[LL_CAUSES])
{
	struct ll_minute minute = {0};
	struct ll_minute_carry carry = {0};
	uint32_t permille[LL_TIME_PARTS];
	uint64_t now_ns = 1000 * LL_MINUTE_BIN_NS, end_ns = now_ns + 65000 * MS;
	while (now_ns < end_ns) {
		for (size_t i = 0; i < 3; i++) {
			for (unsigned j = 0; j < story->parts[i].steps; j++) {
				struct ll_minute_step step = step_of(story->parts[i].phase, percent);
				uint64_t ns[LL_TIME_PARTS], sum = 0;
				ll_minute_divide(&step, &carry, ns);
				for (size_t k = 0; k < LL_TIME_PARTS; k++)
					sum += ns[k];
				assert_true(sum <= step.length_ns + LL_MINUTE_GAP_NS);
				ll_minute_add(&minute, now_ns, ns);
				now_ns += step.length_ns;
			}
		}
	}
	ll_minute_read(&minute, now_ns, permille);
	const struct ll_cause_facts facts = {.permille = permille,
					     .clock_ratio = story->clock_ratio > 0 ? story->clock_ratio : 1,
					     .has_slowdown = story->clock_ratio > 0};
	return ll_causes_find(&facts, causes);
}

/* As recorded, and then with numbers that a busy host has turned by a tenth, a fifth, a third. */
static void check_story(const struct story *story, bool has_second)
{
	struct ll_cause_part causes[LL_CAUSES];
	for (unsigned percent = 0; percent <= 30; percent += 10) {
		for (seed = 1; seed < (percent ? 100 : 2); seed++) {
			uint64_t at = seed;
			size_t count = find(story, percent, causes);
			seed = at;
			if (count < (has_second ? 2U : 1U) || causes[0].cause != story->first ||
			    (has_second && causes[1].cause != story->second))
				fail_msg("%s was named before %s, with %u %%",
					 count ? ll_cause_name(causes[0].cause) : "nothing",
					 ll_cause_name(story->first), percent);
		}
	}
}

TEST(each_of_the_twelve_causes_is_named)
{
	static const struct story stories[] = {
	    {.parts = {{HOST, 1}}, .first = LL_CAUSE_HOST},
	    {.parts = {{COPIES, 1}}, .first = LL_CAUSE_COPIES},
	    {.parts = {{IDLE, 1}}, .first = LL_CAUSE_IDLE},
	    {.parts = {{SHARED, 1}}, .first = LL_CAUSE_SHARED},
	    {.parts = {{CLASS, 1}}, .first = LL_CAUSE_CLASS},
	    {.parts = {{CAP, 1}}, .first = LL_CAUSE_CAP},
	    {.parts = {{ROOM, 1}}, .first = LL_CAUSE_MEMORY},
	    {.parts = {{EVICTED, 1}}, .first = LL_CAUSE_EVICTED},
	    {.parts = {{SPACE, 1}}, .first = LL_CAUSE_SPACE},
	    {.parts = {{ONE_OF_SEVERAL, 1}}, .first = LL_CAUSE_PEER},
	    {.parts = {{WORK, 1}}, .clock_ratio = 0.6, .first = LL_CAUSE_CLOCKS},
	};
	struct ll_cause_part causes[LL_CAUSES];
	for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)
		check_story(&stories[i], false);
	const struct ll_cause_facts queued = {.is_queued = true};
	assert_int_equal(ll_causes_find(&queued, causes), 1);
	assert_int_equal(causes[0].cause, LL_CAUSE_QUEUE);
}

TEST(of_two_causes_the_larger_is_named_first)
{
	static const struct story stories[] = {
	    {.parts = {{HOST, 18}, {IDLE, 6}}, .first = LL_CAUSE_HOST, .second = LL_CAUSE_IDLE},
	    {.parts = {{IDLE, 18}, {HOST, 6}}, .first = LL_CAUSE_IDLE, .second = LL_CAUSE_HOST},
	    {.parts = {{IDLE, 18}, {COPIES, 6}}, .first = LL_CAUSE_IDLE, .second = LL_CAUSE_COPIES},
	    {.parts = {{COPIES, 6}, {HOST, 2}}, .first = LL_CAUSE_COPIES, .second = LL_CAUSE_HOST},
	    {.parts = {{HOST, 6}, {COPIES, 2}}, .first = LL_CAUSE_HOST, .second = LL_CAUSE_COPIES},
	    {.parts = {{SHARED, 12}, {HOST, 2}}, .first = LL_CAUSE_SHARED, .second = LL_CAUSE_HOST},
	    {.parts = {{HOST, 6}, {SHARED, 4}}, .first = LL_CAUSE_HOST, .second = LL_CAUSE_SHARED},
	    {.parts = {{CAP, 18}, {IDLE, 6}}, .first = LL_CAUSE_CAP, .second = LL_CAUSE_IDLE},
	    {.parts = {{IDLE, 18}, {CAP, 6}}, .first = LL_CAUSE_IDLE, .second = LL_CAUSE_CAP},
	    {.parts = {{CLASS, 6}, {COPIES, 2}}, .first = LL_CAUSE_CLASS, .second = LL_CAUSE_COPIES},
	    {.parts = {{SPACE, 6}, {HOST, 1}}, .first = LL_CAUSE_SPACE, .second = LL_CAUSE_HOST},
	    {.parts = {{WORK, 6}, {HOST, 1}}, .clock_ratio = 0.5, .first = LL_CAUSE_CLOCKS, .second = LL_CAUSE_HOST},
	    {.parts = {{HOST, 6}, {WORK, 4}}, .clock_ratio = 0.6, .first = LL_CAUSE_HOST, .second = LL_CAUSE_CLOCKS},
	    {.parts = {{EVICTED, 6}, {SHARED, 4}}, .first = LL_CAUSE_EVICTED, .second = LL_CAUSE_SHARED},
	    {.parts = {{ROOM, 6}, {CAP, 2}}, .first = LL_CAUSE_MEMORY, .second = LL_CAUSE_CAP},
	    {.parts = {{ONE_OF_SEVERAL, 6}, {HOST, 2}}, .first = LL_CAUSE_PEER, .second = LL_CAUSE_HOST},
	};
	for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)
		check_story(&stories[i], true);
}

TEST(host_bound_no_work_and_a_cap_are_told_apart)
{
	const struct story host = {.parts = {{HOST, 18}, {IDLE, 6}, {CAP, 3}}, .first = LL_CAUSE_HOST};
	const struct story cap = {.parts = {{CAP, 18}, {IDLE, 6}, {HOST, 3}}, .first = LL_CAUSE_CAP};
	const struct story idle = {.parts = {{IDLE, 18}, {CAP, 6}, {HOST, 3}}, .first = LL_CAUSE_IDLE};
	check_story(&host, false);
	check_story(&cap, false);
	check_story(&idle, false);
}

/* A busy host stretches the gaps of a host-bound program, at most to one shorter than LL_MINUTE_GAP_NS. */
TEST(a_short_gap_is_the_hosts_and_a_long_one_is_no_work_unless_the_program_computes)
{
	struct ll_minute_carry carry = {0};
	struct ll_minute_step gap = {.length_ns = STEP}, launch = recorded[HOST];
	uint64_t ns[LL_TIME_PARTS];
	launch.length_ns = STEP;
	for (int i = 0; i < 3; i++) {
		ll_minute_divide(&gap, &carry, ns);
		assert_int_equal(ns[LL_TIME_HOST] + ns[LL_TIME_IDLE], 0);
	}
	ll_minute_divide(&launch, &carry, ns);
	assert_int_equal(ns[LL_TIME_HOST], 3 * STEP + STEP - launch.work_ns);
	for (int i = 0; i < 4; i++)
		ll_minute_divide(&gap, &carry, ns);
	assert_int_equal(ns[LL_TIME_IDLE], 4 * STEP);
	gap.cpu_ns = STEP * 3 / 4;
	for (int i = 0; i < 4; i++)
		ll_minute_divide(&gap, &carry, ns);
	assert_int_equal(ns[LL_TIME_HOST], 4 * STEP);
}

TEST(a_kernel_that_is_told_at_its_end_is_work_and_its_end_counts_once)
{
	struct ll_minute_carry carry = {0};
	struct ll_minute_step runs = {.length_ns = STEP, .wanted_ns = STEP};
	struct ll_minute_step ends = {
	    .length_ns = STEP, .wanted_ns = STEP, .work_ns = 20 * STEP, .has_completed = true};
	uint64_t ns[LL_TIME_PARTS];
	ll_minute_divide(&runs, &carry, ns);
	assert_int_equal(ns[LL_TIME_WORK], STEP);
	ll_minute_divide(&ends, &carry, ns);
	assert_int_equal(ns[LL_TIME_WORK], STEP);
	assert_true(carry.work_ns <= 2 * STEP);
}

TEST(the_minute_forgets_what_is_older_and_says_how_much_it_knows)
{
	struct ll_minute minute = {0};
	uint64_t ns[LL_TIME_PARTS] = {[LL_TIME_HOST] = 1000 * MS}, now_ns = 7 * LL_MINUTE_BIN_NS;
	uint32_t permille[LL_TIME_PARTS];
	assert_int_equal(ll_minute_read(&minute, now_ns, permille), 0);
	ll_minute_add(&minute, now_ns, ns);
	assert_int_equal(ll_minute_read(&minute, now_ns, permille), 1000 * MS);
	assert_int_equal(permille[LL_TIME_HOST], 1000);
	ns[LL_TIME_HOST] = 0;
	ns[LL_TIME_WORK] = 3000 * MS;
	ll_minute_add(&minute, now_ns + 11 * LL_MINUTE_BIN_NS, ns);
	assert_int_equal(ll_minute_read(&minute, now_ns + 11 * LL_MINUTE_BIN_NS, permille), 4000 * MS);
	assert_int_equal(permille[LL_TIME_HOST], 250);
	assert_int_equal(ll_minute_read(&minute, now_ns + 12 * LL_MINUTE_BIN_NS, permille), 3000 * MS);
	assert_int_equal(ll_minute_read(&minute, now_ns + 100 * LL_MINUTE_BIN_NS, permille), 0);
}

TEST(what_stood_idle_is_divided_by_the_jobs_own_parts_and_is_nobodys_without_them)
{
	const uint32_t permille[2][LL_TIME_PARTS] = {
	    {[LL_TIME_WORK] = 400, [LL_TIME_HOST] = 200, [LL_TIME_SHARED] = 400},
	    {[LL_TIME_IDLE] = 300, [LL_TIME_CAP] = 100, [LL_TIME_WORK] = 600}};
	const uint32_t turns[LL_TIME_PARTS] = {[LL_TIME_WORK] = 500, [LL_TIME_CLASS] = 500}, none[LL_TIME_PARTS] = {0};
	struct ll_idle_job jobs[2] = {{.permille = permille[0]}, {.permille = permille[1]}};
	assert_true(fabs(ll_idle_divide(0.4, jobs, 2)) < 1e-9);
	assert_true(fabs(jobs[0].idle[LL_IDLE_PROGRAM] - 0.2) < 1e-9 && fabs(jobs[0].idle[LL_IDLE_WAITS]) < 1e-9);
	assert_true(fabs(jobs[1].idle[LL_IDLE_NO_WORK] - 0.3) < 1e-9);
	assert_true(fabs(jobs[1].idle[LL_IDLE_WAITS] - 0.1) < 1e-9);
	jobs[0].permille = turns;
	assert_true(fabs(ll_idle_divide(0.5, jobs, 1)) < 1e-9);
	assert_true(fabs(jobs[0].idle[LL_IDLE_WAITS] - 0.5) < 1e-9);
	jobs[0].permille = none;
	assert_true(fabs(ll_idle_divide(0, jobs, 1) - 1) < 1e-9);
	assert_true(fabs(ll_idle_divide(0.25, jobs, 0) - 0.75) < 1e-9);
	assert_true(fabs(ll_idle_divide(1.5, jobs, 0)) < 1e-9);
}
