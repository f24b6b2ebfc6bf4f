#include "rules_plant.h"

#include <stdlib.h>

#include "rules/hold/foreign.h"

#define WINDOW (200 * MS)
#define BEGIN (1000 * S + 1234567)

/* Own kernels from `from` to `to`: each period begins with a kernel of this duty, its host a little late each time. */
static void hold(struct ll_foreign *foreign, uint64_t from, uint64_t to, uint64_t period, double duty, uint64_t *seed)
{
	for (uint64_t t = from; t + period <= to; t += period) {
		uint64_t late = (uint64_t)(plant_uniform(seed) * 0.02 * (double)period);
		ll_foreign_add_own(foreign, t + late, t + late + (uint64_t)(duty * (double)period));
	}
	ll_foreign_own_known_until(foreign, to);
}

/* The total NVML would read for a window of which own kernels took a share. */
static unsigned total_of(const struct ll_foreign *foreign, uint64_t start, uint64_t end, double extra)
{
	double ratio = ll_foreign_own_ratio(foreign, start, end) + extra;
	return (unsigned)floor(fmin(ratio, 1.0) * 100.0 + 0.5);
}

TEST(own_share_of_a_window_is_known_to_a_point_and_of_a_second_to_0_3)
{
	static const double duties[] = {0.05, 0.126, 0.5, 0.8, 0.97};
	static const uint64_t periods[] = {MS, 4 * MS, 10 * MS};
	for (size_t d = 0; d < 5; d++) {
		for (size_t p = 0; p < 3; p++) {
			struct ll_foreign foreign;
			uint64_t seed = 5;
			ll_foreign_init(&foreign, BEGIN);
			hold(&foreign, BEGIN, BEGIN + 2 * S, periods[p], duties[d], &seed);
			for (uint64_t at = BEGIN + 300 * MS; at < BEGIN + 1600 * MS; at += 10 * MS)
				assert_near(ll_foreign_own_ratio(&foreign, at, at + WINDOW), duties[d], 0.011);
			uint64_t whole = BEGIN + 300 * MS;
			assert_near(ll_foreign_own_ratio(&foreign, whole, whole + S), duties[d], 0.003);
		}
	}
}

TEST(own_load_alone_is_never_taken_for_foreign)
{
	static const uint64_t periods[] = {MS, 4 * MS, 10 * MS};
	uint64_t seed = 21;
	for (int round = 0; round < 300; round++) {
		struct ll_foreign foreign;
		double duty = 0.01 + 0.98 * plant_uniform(&seed);
		ll_foreign_init(&foreign, BEGIN);
		/* Holding begins, pauses and goes on: windows hang over each edge. */
		uint64_t pause = BEGIN + S + (uint64_t)(plant_uniform(&seed) * (double)WINDOW);
		hold(&foreign, BEGIN + 500 * MS, pause, periods[round % 3], duty, &seed);
		hold(&foreign, pause + 700 * MS, BEGIN + 4 * S, periods[round % 3], duty, &seed);
		for (int i = 1; i < 17; i++) {
			uint64_t start = BEGIN + (uint64_t)i * WINDOW;
			/* NVML's own window lies up to 8 ms off, counts 0.4 % more and cuts or rounds. */
			uint64_t shift = (uint64_t)(16e6 * plant_uniform(&seed));
			uint64_t place = start + shift - 8 * MS;
			double true_share = ll_foreign_own_ratio(&foreign, place, place + WINDOW);
			double percent = true_share > 0.0 ? fmin(true_share * 100.0 + 0.4, 100.0) : 0.0;
			unsigned total = (unsigned)(i % 2 ? percent : percent + 0.5);
			struct ll_foreign_verdict verdict;
			ll_foreign_judge(&foreign, start, start + WINDOW, total, &verdict);
			assert_int_equal(verdict.state, LL_FOREIGN_QUIET);
			assert_between(verdict.foreign_ratio, 0.0, verdict.uncertainty_ratio + 0.005);
		}
	}
}

TEST(foreign_share_is_found_within_its_uncertainty)
{
	struct ll_foreign foreign;
	uint64_t seed = 8;
	ll_foreign_init(&foreign, BEGIN);
	hold(&foreign, BEGIN, BEGIN + 5 * S, 10 * MS, 0.3, &seed);
	for (int i = 1; i < 20; i++) {
		uint64_t start = BEGIN + (uint64_t)i * WINDOW;
		struct ll_foreign_verdict verdict;
		ll_foreign_judge(&foreign, start, start + WINDOW, total_of(&foreign, start, start + WINDOW, 0.2),
				 &verdict);
		assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
		assert_near(verdict.foreign_ratio, 0.2, verdict.uncertainty_ratio);
		assert_between(verdict.uncertainty_ratio, 0.0, 0.03);
		assert_false(verdict.is_own_idle);
	}
}

TEST(threshold_while_holding_is_4_points)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict verdict;
	ll_foreign_init(&foreign, 1000 * S);
	for (uint64_t t = 1000 * S; t < 1002 * S; t += 10 * MS)
		ll_foreign_add_own(&foreign, t, t + 5 * MS);
	ll_foreign_own_known_until(&foreign, 1002 * S);
	ll_foreign_judge(&foreign, 1001 * S, 1001 * S + WINDOW, 54, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_QUIET);
	ll_foreign_judge(&foreign, 1001 * S, 1001 * S + WINDOW, 55, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
	ll_foreign_judge(&foreign, 1001 * S, 1001 * S + WINDOW, 40, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_QUIET);
	assert_near(verdict.foreign_ratio, 0.0, 0.0);
}

TEST(anything_over_0_is_foreign_while_not_holding)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict verdict;
	uint64_t seed = 4;
	ll_foreign_init(&foreign, BEGIN);
	hold(&foreign, BEGIN, BEGIN + S, 10 * MS, 0.5, &seed);
	ll_foreign_own_known_until(&foreign, BEGIN + 2 * S);
	ll_foreign_judge(&foreign, BEGIN + S + 20 * MS, BEGIN + S + 220 * MS, 1, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
	assert_true(verdict.is_own_idle);
	ll_foreign_judge(&foreign, BEGIN + S + 20 * MS, BEGIN + S + 220 * MS, 0, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_QUIET);
	/* Right after the last kernel the window may still show it. */
	ll_foreign_judge(&foreign, BEGIN + S + 5 * MS, BEGIN + S + 205 * MS, 1, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_QUIET);
	assert_false(verdict.is_own_idle);
}

TEST(windows_not_fully_known_are_not_judged)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict verdict;
	uint64_t seed = 4;
	ll_foreign_init(&foreign, BEGIN);
	hold(&foreign, BEGIN, BEGIN + S, 10 * MS, 0.5, &seed);
	uint64_t end = BEGIN + S;
	ll_foreign_judge(&foreign, end - WINDOW, end, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
	ll_foreign_judge(&foreign, end - WINDOW + 1, end + 1, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	assert_true(isnan(verdict.foreign_ratio) && isnan(verdict.own_ratio));
	ll_foreign_judge(&foreign, BEGIN - WINDOW, BEGIN, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	ll_foreign_judge(&foreign, end, end, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	ll_foreign_judge(&foreign, 0, WINDOW, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	/* The start may lie up to 10 ms before what is told. */
	ll_foreign_judge(&foreign, BEGIN + 6 * MS, BEGIN + 206 * MS, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	ll_foreign_judge(&foreign, BEGIN + 16 * MS, BEGIN + 216 * MS, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
	assert_true(isnan(ll_foreign_own_ratio(&foreign, BEGIN - MS, BEGIN + S / 2)));
	/* Known for less than that after the end, it is judged by what there is. */
	ll_foreign_judge(&foreign, end - WINDOW - 3 * MS, end - 3 * MS, 90, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
}

TEST(edge_of_holding_makes_the_share_less_certain)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict inside;
	struct ll_foreign_verdict edge;
	ll_foreign_init(&foreign, 1000 * S);
	ll_foreign_add_own(&foreign, 1001 * S, 1002 * S);
	ll_foreign_own_known_until(&foreign, 1003 * S);
	ll_foreign_judge(&foreign, 1001 * S + 400 * MS, 1001 * S + 600 * MS, 100, &inside);
	assert_near(inside.uncertainty_ratio, 0.01, 1e-9);
	ll_foreign_judge(&foreign, 1002 * S - 200 * MS, 1002 * S, 100, &edge);
	assert_near(edge.uncertainty_ratio, 0.06, 1e-9);
	ll_foreign_judge(&foreign, 1001 * S - 200 * MS, 1001 * S, 5, &edge);
	assert_near(edge.uncertainty_ratio, 0.06, 1e-9);
	assert_int_equal(edge.state, LL_FOREIGN_QUIET);
}

TEST(opening_a_context_blinds_the_windows_it_touches)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict verdict;
	ll_foreign_init(&foreign, BEGIN);
	ll_foreign_add_unknown(&foreign, BEGIN + S, BEGIN + S + 150 * MS);
	ll_foreign_own_known_until(&foreign, BEGIN + 3 * S);
	ll_foreign_judge(&foreign, BEGIN + S - 100 * MS, BEGIN + S + 100 * MS, 30, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	ll_foreign_add_own(&foreign, BEGIN + S, BEGIN + S + 150 * MS);
	ll_foreign_judge(&foreign, BEGIN + S - 100 * MS, BEGIN + S + 100 * MS, 30, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	ll_foreign_judge(&foreign, BEGIN + S + 170 * MS, BEGIN + S + 370 * MS, 30, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
	ll_foreign_judge(&foreign, BEGIN + S - 220 * MS, BEGIN + S - 20 * MS, 30, &verdict);
	assert_int_equal(verdict.state, LL_FOREIGN_SEEN);
}

TEST(last_20_s_are_kept_and_older_forgotten)
{
	struct ll_foreign foreign;
	uint64_t seed = 6;
	ll_foreign_init(&foreign, BEGIN);
	hold(&foreign, BEGIN, BEGIN + 100 * S, 10 * MS, 0.5, &seed);
	uint64_t end = BEGIN + 100 * S;
	assert_near(ll_foreign_own_ratio(&foreign, end - 19 * S, end), 0.5, 0.001);
	assert_true(isnan(ll_foreign_own_ratio(&foreign, end - 21 * S, end - 20 * S)));
	/* An old kernel told late changes nothing that is kept. */
	ll_foreign_add_own(&foreign, BEGIN, BEGIN + S);
	assert_near(ll_foreign_own_ratio(&foreign, end - 19 * S, end), 0.5, 0.001);
	/* After a long silence the ring holds silence, not what was in the slots before. */
	ll_foreign_own_known_until(&foreign, end + 1000 * S);
	assert_near(ll_foreign_own_ratio(&foreign, end + 985 * S, end + 1000 * S), 0.0, 0.0);
	ll_foreign_own_known_until(&foreign, end);
	assert_true(!isnan(ll_foreign_own_ratio(&foreign, end + 999 * S, end + 1000 * S)));
}

TEST(overlapping_and_empty_intervals_stay_within_1)
{
	struct ll_foreign foreign;
	ll_foreign_init(&foreign, 1000 * S);
	ll_foreign_add_own(&foreign, 1000 * S, 1001 * S);
	ll_foreign_add_own(&foreign, 1000 * S, 1001 * S);
	ll_foreign_add_own(&foreign, 1001 * S + 5, 1001 * S + 5);
	ll_foreign_add_own(&foreign, 1001 * S + 9, 1001 * S + 5);
	ll_foreign_own_known_until(&foreign, 1002 * S);
	assert_near(ll_foreign_own_ratio(&foreign, 1000 * S, 1001 * S), 1.0, 1e-9);
	assert_near(ll_foreign_own_ratio(&foreign, 1001 * S, 1002 * S), 0.0, 1e-9);
}

/* A driver gives the last value again some tenths of a millisecond later: in so short a window the own load is all or
 * nothing. */
TEST(a_sliver_of_a_window_is_not_judged)
{
	struct ll_foreign foreign;
	struct ll_foreign_verdict verdict;
	uint64_t seed = 9;
	ll_foreign_init(&foreign, BEGIN);
	hold(&foreign, BEGIN, BEGIN + S, 2 * MS, 0.5, &seed);
	for (uint64_t at = BEGIN + S / 2; at < BEGIN + S / 2 + 20 * MS; at += MS / 3) {
		ll_foreign_judge(&foreign, at, at + MS / 3, 50, &verdict);
		assert_int_equal(verdict.state, LL_FOREIGN_UNKNOWN);
	}
}
