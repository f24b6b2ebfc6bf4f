/* How a card is shared is measured: mixes whose jobs get on at given rates by slices and by visits. */
#include <stdlib.h>
#include <string.h>

#include "rules/share/regime.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

enum { MOST = 70 };

/* A job: launches a second alone, and the part of that which it does in each way. */
struct player {
	double alone_per_s, slices, visits;
	double visited; /* of the time; 0: as much as its visits need */
	double done, visited_ns;
	bool is_away;
	struct ll_regime_job job;
};

struct mix {
	struct ll_regime regime;
	struct ll_regime replay; /* takes the steps alone that did something */
	unsigned long steps, moved;
	struct player players[MOST];
	size_t count;
	uint64_t now_ns, visits_ns, flips;
	double deep_s; /* what is queued while the card is shared by slices takes so long */
	uint64_t slices_since_ns, visits_since_ns;
};

static struct player *join(struct mix *mix, double alone_per_s, double slices, double visits)
{
	struct player *player = &mix->players[mix->count++];
	*player = (struct player){.alone_per_s = alone_per_s, .slices = slices, .visits = visits};
	player->job = (struct ll_regime_job){.id = mix->count, .weight_permille = 1000, .processes = 1};
	return player;
}

static void get_on(struct mix *mix, uint64_t ns)
{
	double sum = 0;
	bool visits = mix->regime.gives_visits;
	for (size_t i = 0; i < mix->count; i++)
		sum += mix->players[i].is_away ? 0 : mix->players[i].visits;
	for (size_t i = 0; i < mix->count; i++) {
		struct player *player = &mix->players[i];
		player->done += player->alone_per_s * (visits ? player->visits : player->slices) * (double)ns / 1e9;
		double visited = player->visited > 0 ? player->visited : player->visits / (sum > 1 ? sum : 1);
		player->visited_ns += visits ? (double)ns * visited : 0;
		player->job.completed = (uint64_t)player->done;
		player->job.visited_ns = (uint64_t)player->visited_ns;
		bool is_deep = visits && mix->now_ns < mix->visits_since_ns + (uint64_t)(mix->deep_s * 1e9);
		player->job.queued_launches = is_deep || !visits ? (uint64_t)(mix->deep_s * player->alone_per_s) : 0;
	}
}

static void step(struct mix *mix, const struct ll_regime_job *jobs, size_t count)
{
	struct ll_regime *regime = &mix->regime, *replay = &mix->replay;
	ll_regime_step(regime, jobs, count, mix->now_ns);
	mix->steps++;
	if (regime->moves) {
		mix->moved++;
		ll_regime_step(replay, jobs, count, mix->now_ns);
		assert_int_equal(replay->moves, regime->moves);
	}
	assert_int_equal(replay->gives_visits, regime->gives_visits);
	assert_int_equal(replay->why, regime->why);
	assert_memory_equal(&replay->gain, &regime->gain, sizeof regime->gain);
}

static void play(struct mix *mix, uint64_t ns)
{
	for (uint64_t until_ns = mix->now_ns + ns; mix->now_ns < until_ns; mix->now_ns += 5 * MS) {
		struct ll_regime_job jobs[MOST];
		size_t count = 0;
		bool was = mix->regime.gives_visits;
		for (size_t i = 0; i < mix->count; i++) {
			if (!mix->players[i].is_away)
				jobs[count++] = mix->players[i].job;
		}
		step(mix, jobs, count);
		if (!was && mix->regime.gives_visits)
			mix->visits_since_ns = mix->now_ns;
		mix->flips += was != mix->regime.gives_visits;
		mix->visits_ns += mix->regime.gives_visits ? 5 * MS : 0;
		get_on(mix, 5 * MS);
	}
}

static int setup(void **state)
{
	struct mix *mix = calloc(1, sizeof *mix);
	if (!mix)
		return -1;
	mix->now_ns = S;
	*state = mix;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

TEST_EACH(setup, teardown);

TEST_GIVEN(struct mix *mix, programs_that_launch_ahead_share_by_slices)
{
	join(mix, 5000, 0.5, 0.4);
	join(mix, 300, 0.9, 0.4);
	play(mix, 60 * S);
	assert_int_equal(mix->visits_ns, 0);
	assert_int_equal(mix->regime.why, LL_REGIME_NO_REASON);
}

TEST_GIVEN(struct mix *mix, two_that_wait_for_each_launch_are_visited_within_three_seconds)
{
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	play(mix, 3 * S);
	assert_true(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_PAYS);
	assert_true(mix->regime.gain > 1.6 && mix->regime.gain < 1.8);
	mix->visits_ns = 0;
	play(mix, 100 * S);
	assert_true(mix->visits_ns > 97 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, visits_that_do_not_pay_are_undone_and_tried_seldom)
{
	join(mix, 2000, 0.62, 0.49)->job.waits = true;
	join(mix, 9000, 0.94, 0.90);
	play(mix, 600 * S);
	assert_false(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_PAYS_NOT);
	assert_true(mix->flips >= 8 && mix->flips <= 10); /* at 0.5, 10, 40, 130 and 430 s: each there and back */
	assert_true(mix->visits_ns < 3 * S);
}

TEST_GIVEN(struct mix *mix, a_waiter_beside_a_flood_is_visited_although_the_flood_loses_half)
{
	join(mix, 40000, 0.05, 0.45)->job.waits = true;
	join(mix, 5000, 0.95, 0.50);
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, nobody_falls_below_its_share_for_the_others_gain)
{
	join(mix, 40000, 0.05, 0.60)->job.waits = true;
	join(mix, 5000, 0.60, 0.30);
	play(mix, 5 * S);
	assert_true(mix->regime.gain > LL_REGIME_GAIN);
	assert_false(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_PAYS_NOT);
}

TEST_GIVEN(struct mix *mix, a_visit_less_than_its_share_is_no_sign)
{
	join(mix, 20000, 0.02, 0.20)->job.waits = true;
	for (int i = 0; i < 3; i++)
		join(mix, 1000, 0.27, 0.20);
	join(mix, 1000, 0.27, 0.178);
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, who_is_limited_by_its_host_is_not_owed_what_it_does_while_it_is_visited)
{
	join(mix, 10000, 0.03, 0.33)->job.waits = true;
	join(mix, 5000, 0.58, 0.36);
	join(mix, 50000, 0.86, 0.60)->visited = 0.25; /* it launches ahead meanwhile: 2.4 times its speed alone */
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, who_is_limited_by_its_host_does_not_fall_below_its_share)
{
	join(mix, 10000, 0.03, 0.40)->job.waits = true;
	join(mix, 50000, 0.86, 0.40)->visited = 0.2;
	play(mix, 5 * S);
	assert_true(mix->regime.gain > LL_REGIME_GAIN);
	assert_false(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, a_gain_of_fifteen_percent_is_kept_after_twice_as_many_blocks)
{
	join(mix, 20000, 0.30, 0.53)->job.waits = true;
	join(mix, 20000, 0.65, 0.49);
	play(mix, 4 * S);
	assert_true(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_PAYS);
	assert_true(mix->regime.gain > LL_REGIME_GAIN_LONG && mix->regime.gain < LL_REGIME_GAIN);
	assert_int_equal(mix->flips, 5); /* slices, visits, slices, visits, slices, visits */
}

TEST_GIVEN(struct mix *mix, a_gain_of_seven_percent_is_not_chased)
{
	join(mix, 20000, 0.30, 0.45)->job.waits = true;
	join(mix, 20000, 0.65, 0.496);
	play(mix, 4 * S);
	assert_false(mix->regime.gives_visits);
	assert_int_equal(mix->flips, 2);
}

TEST_GIVEN(struct mix *mix, weights_between_floods_bring_visits)
{
	join(mix, 5000, 0.47, 0.68)->job.weight_permille = 7000;
	join(mix, 5000, 0.47, 0.29)->job.weight_permille = 3000;
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, unequal_numbers_of_processes_are_a_reason_too)
{
	join(mix, 5000, 0.76, 0.48)->job.processes = 4;
	join(mix, 5000, 0.19, 0.48);
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, weights_do_not_bind_programs_that_leave_the_card_idle)
{
	join(mix, 3000, 0.92, 0.55)->job.weight_permille = 7000;
	join(mix, 3000, 0.90, 0.30)->job.weight_permille = 3000;
	play(mix, 5 * S);
	assert_false(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_PAYS_NOT);
}

TEST_GIVEN(struct mix *mix, what_is_queued_too_deep_is_not_waited_for)
{
	mix->deep_s = 9;
	join(mix, 3000, 0.2, 0.5)->job.waits = true;
	join(mix, 3000, 0.5, 0.5);
	play(mix, 7 * S);
	assert_int_equal(mix->regime.why, LL_REGIME_TOO_DEEP);
	assert_false(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, who_asked_for_shares_waits_longer_for_what_is_queued)
{
	mix->deep_s = 9;
	join(mix, 300, 0.47, 0.68)->job.weight_permille = 7000;
	join(mix, 300, 0.47, 0.29)->job.weight_permille = 3000;
	play(mix, 50 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, a_mix_that_changes_is_measured_anew)
{
	struct player *waiter = join(mix, 40000, 0.09, 0.49);
	join(mix, 40000, 0.50, 0.49);
	play(mix, 20 * S);
	assert_false(mix->regime.gives_visits);
	waiter->job.waits = true;
	play(mix, 3 * S);
	assert_true(mix->regime.gives_visits);
	waiter->job.waits = false;
	play(mix, 5 * MS);
	assert_false(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_NO_REASON);
	waiter->job.waits = true;
	play(mix, 3 * S);
	assert_true(mix->regime.gives_visits);
	waiter->is_away = true;
	play(mix, 5 * MS);
	assert_false(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, measuring_has_its_price_and_no_more)
{
	struct player *waiter = join(mix, 40000, 0.9, 0.3);
	waiter->job.waits = true;
	join(mix, 40000, 0.9, 0.3);
	for (int i = 0; i < 100; i++) { /* another one comes and goes */
		if (i % 2 == 0)
			join(mix, 1000, 0.9, 0.1);
		else
			mix->players[mix->count - 1].is_away = true;
		if (mix->count == MOST)
			break;
		play(mix, 3 * S);
	}
	assert_true(mix->visits_ns < 3 * S + mix->now_ns / 50);
}

TEST_GIVEN(struct mix *mix, who_asks_for_shares_is_not_kept_waiting_for_what_others_measured)
{
	join(mix, 40000, 0.9, 0.3)->job.waits = true;
	join(mix, 40000, 0.9, 0.3);
	for (unsigned i = 0; i < 5; i++) { /* it is measured as often as may be */
		join(mix, 1000, 0.9, 0.1);
		play(mix, 3 * S);
	}
	for (size_t i = 0; i < mix->count; i++)
		mix->players[i].is_away = true;
	join(mix, 5000, 0.47, 0.68)->job.weight_permille = 7000;
	join(mix, 5000, 0.47, 0.29)->job.weight_permille = 3000;
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, a_measurement_ends_when_a_job_leaves)
{
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	struct player *third = join(mix, 40000, 0.09, 0.49);
	while (mix->regime.why != LL_REGIME_MEASURES)
		play(mix, 5 * MS);
	third->is_away = true;
	play(mix, 5 * MS);
	assert_int_not_equal(mix->regime.why, LL_REGIME_MEASURES);
	play(mix, 3 * S);
	assert_true(mix->regime.gives_visits);
}

TEST_GIVEN(struct mix *mix, more_jobs_than_can_be_measured_are_visited_if_one_waits)
{
	for (int i = 0; i < MOST; i++)
		join(mix, 1000, 0.01, 0.01);
	play(mix, S);
	assert_false(mix->regime.gives_visits);
	mix->players[3].job.waits = true;
	play(mix, S);
	assert_true(mix->regime.gives_visits);
	assert_int_equal(mix->regime.why, LL_REGIME_TOO_MANY);
}

TEST_GIVEN(struct mix *mix, who_completes_nothing_in_either_way_is_left_out)
{
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 0, 0, 0);
	play(mix, 5 * S);
	assert_true(mix->regime.gives_visits);
}

/* Jobs that come, go, and wait or do not: 12 mixes and more, of which not all are kept. */
TEST_GIVEN(struct mix *mix, the_steps_that_did_something_replay_alone)
{
	uint64_t random = 39;
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 40000, 0.09, 0.49)->job.waits = true;
	join(mix, 5000, 0.8, 0.4)->job.weight_permille = 3000;
	join(mix, 3000, 0.5, 0.3);
	for (int i = 0; i < 400; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		struct player *player = &mix->players[(random >> 33) % mix->count];
		if (random >> 40 & 1)
			player->is_away = !player->is_away;
		else
			player->job.waits = !player->job.waits;
		mix->deep_s = random >> 41 & 3 ? 0 : 6;
		play(mix, (random >> 45) % 6000 * MS);
	}
	assert_true(mix->moved > 500);
	assert_true(mix->moved < mix->steps / 20);
}

TEST_GIVEN(struct mix *mix, a_verdict_tells_what_each_job_did_in_both_ways)
{
	join(mix, 40000, 0.05, 0.45)->job.waits = true;
	join(mix, 5000, 0.95, 0.50);
	while (!(mix->regime.moves & LL_REGIME_MOVE_VERDICT) && mix->now_ns < 10 * S)
		play(mix, 5 * MS);
	struct ll_regime_rates first = ll_regime_rates_of(&mix->regime, 0),
			       second = ll_regime_rates_of(&mix->regime, 1);
	assert_float_equal(first.slices, 2000, 100);
	assert_float_equal(first.visits, 18000, 500);
	assert_float_equal(first.alone, 40000, 2000);
	assert_float_equal(second.slices, 4750, 100);
	assert_float_equal(second.visits, 2500, 100);
	assert_float_equal(second.alone, 5000, 250);
}
