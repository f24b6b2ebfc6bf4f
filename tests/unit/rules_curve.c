#include "rules_plant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/hold/curve.h"

static struct ll_curve parse(const char *text)
{
	struct ll_curve curve;
	struct ll_err err = {.code = 0};
	int r = ll_curve_parse(text, &curve, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return curve;
}

static struct ll_curve parse_replay(const char *csv)
{
	struct ll_curve curve;
	struct ll_err err = {.code = 0};
	int r = ll_curve_parse_replay("f.csv", csv, strlen(csv), &curve, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return curve;
}

TEST(constant_stays)
{
	struct ll_curve curve;
	struct ll_curve_window window;
	ll_curve_init_constant(&curve, 0.5);
	assert_near(ll_curve_at(&curve, 0.0), 0.5, 0.0);
	assert_near(ll_curve_at(&curve, 1e9), 0.5, 0.0);
	ll_curve_find_window(&curve, 3.0, 4.0, &window);
	assert_near(window.mean, 0.5, 0.0);
	assert_near(window.largest_step, 0.0, 0.0);
	ll_curve_fini(&curve);
	ll_curve_fini(NULL);
}

TEST(sine_starts_half_way_and_rises)
{
	struct ll_curve curve = parse("sine:20-80@60s");
	assert_near(ll_curve_at(&curve, 0.0), 0.50, 1e-9);
	assert_near(ll_curve_at(&curve, 15.0), 0.80, 1e-9);
	assert_near(ll_curve_at(&curve, 30.0), 0.50, 1e-9);
	assert_near(ll_curve_at(&curve, 45.0), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 600000.0 + 15.0), 0.80, 1e-6);
	assert_near(ll_curve_at(&curve, -7.0), 0.50, 1e-9);
}

TEST(square_is_low_then_high)
{
	struct ll_curve curve = parse("square:20%-80%@1m");
	assert_near(ll_curve_at(&curve, 0.0), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 29.999), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 30.0), 0.80, 1e-9);
	assert_near(ll_curve_at(&curve, 59.999), 0.80, 1e-9);
	assert_near(ll_curve_at(&curve, 60.0), 0.20, 1e-9);
}

TEST(sawtooth_rises_and_falls_back)
{
	struct ll_curve curve = parse("sawtooth:20-80@60s");
	assert_near(ll_curve_at(&curve, 0.0), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 30.0), 0.50, 1e-9);
	assert_near(ll_curve_at(&curve, 59.999), 0.80, 1e-4);
	assert_near(ll_curve_at(&curve, 60.0), 0.20, 1e-9);
}

TEST(replay_holds_each_row_until_the_next_and_the_last_for_ever)
{
	struct ll_curve curve = parse_replay("# recorded\n"
					     "time_s, target\r\n"
					     "\n"
					     " 1 , 20\n"
					     "2.5,80\r\n"
					     "# and then\n"
					     "1e1,12.6");
	assert_int_equal(curve.point_count, 3);
	assert_near(ll_curve_at(&curve, 0.0), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 2.4999), 0.20, 1e-9);
	assert_near(ll_curve_at(&curve, 2.5), 0.80, 1e-9);
	assert_near(ll_curve_at(&curve, 9.9), 0.80, 1e-9);
	assert_near(ll_curve_at(&curve, 10.0), 0.126, 1e-9);
	assert_near(ll_curve_at(&curve, 1e8), 0.126, 1e-9);
	assert_near(curve.low, 0.126, 1e-9);
	assert_near(curve.high, 0.80, 1e-9);
	ll_curve_fini(&curve);
	ll_curve_fini(&curve);
}

TEST(long_replay_finds_every_row)
{
	enum { ROWS = 5000 };
	char *csv = malloc(ROWS * 16);
	assert_non_null(csv);
	int n = 0;
	for (int i = 0; i < ROWS; i++)
		n += snprintf(csv + n, 16, "%d,%d\n", i, 1 + i % 99);
	struct ll_curve curve = parse_replay(csv);
	free(csv);
	assert_int_equal(curve.point_count, ROWS);
	for (int i = 0; i < ROWS; i++)
		assert_near(ll_curve_at(&curve, i + 0.5), (1 + i % 99) / 100.0, 1e-9);
	ll_curve_fini(&curve);
}

/* The window's figures against a fine sampling of ll_curve_at, at many places and lengths. */
static void check_windows(const struct ll_curve *curve, double step_wanted)
{
	uint64_t seed = 11;
	double largest = 0.0;
	for (int i = 0; i < 300; i++) {
		enum { N = 4000 };
		double from = 200.0 * plant_uniform(&seed);
		double length = i % 3 == 0 ? 0.2 : 150.0 * plant_uniform(&seed);
		struct ll_curve_window window;
		ll_curve_find_window(curve, from, from + length, &window);
		double sum = 0.0;
		double min = 1.0;
		double max = 0.0;
		for (int k = 0; k < N; k++) {
			double value = ll_curve_at(curve, from + length * (k + 0.5) / N);
			sum += value;
			min = fmin(min, value);
			max = fmax(max, value);
		}
		assert_near(window.mean, sum / N, 0.002);
		if (window.largest_step == 0.0 && length < 1.0)
			assert_between(max - min, 0.0, 0.02);
		largest = fmax(largest, window.largest_step);
	}
	assert_near(largest, step_wanted, 1e-9);
}

TEST(windows_tell_mean_and_steps)
{
	struct ll_curve sine = parse("sine:20-80@60s");
	struct ll_curve square = parse("square:20-80@60s");
	struct ll_curve sawtooth = parse("sawtooth:20-80@60s");
	struct ll_curve replay = parse_replay("0,20\n50,60\n50.5,10\n100,11\n");
	check_windows(&sine, 0.0);
	check_windows(&square, 0.6);
	check_windows(&sawtooth, 0.6);
	check_windows(&replay, 0.5);
	ll_curve_fini(&replay);
}

TEST(step_belongs_to_the_window_that_ends_with_it)
{
	struct ll_curve curve = parse("square:20-80@60s");
	struct ll_curve_window window;
	ll_curve_find_window(&curve, 29.0, 29.9, &window);
	assert_near(window.largest_step, 0.0, 0.0);
	ll_curve_find_window(&curve, 29.9, 30.1, &window);
	assert_near(window.largest_step, 0.6, 1e-9);
	assert_near(window.mean, 0.5, 1e-6);
	ll_curve_find_window(&curve, 30.0, 30.2, &window);
	assert_near(window.largest_step, 0.0, 0.0);
	assert_near(window.mean, 0.8, 1e-9);
	ll_curve_find_window(&curve, 5.0, 5.0, &window);
	assert_near(window.mean, 0.2, 1e-9);
	ll_curve_find_window(&curve, 89.9, 90.1, &window);
	assert_near(window.largest_step, 0.6, 1e-9);
	/* Numbers that are exact in binary: the step is at the very end. */
	struct ll_curve exact = parse("square:20-80@64s");
	ll_curve_find_window(&exact, 31.5, 32.0, &window);
	assert_near(window.largest_step, 0.6, 1e-9);
	assert_near(window.mean, 0.2, 1e-9);
	struct ll_curve replay = parse_replay("0,20\n32,80\n");
	ll_curve_find_window(&replay, 31.5, 32.0, &window);
	assert_near(window.largest_step, 0.6, 1e-9);
	assert_near(window.mean, 0.2, 1e-9);
	ll_curve_fini(&replay);
}

TEST(whole_range_of_levels_is_taken)
{
	struct ll_curve sine = parse("sine:1-99@60s");
	assert_near(sine.low, 0.01, 1e-9);
	assert_near(sine.high, 0.99, 1e-9);
	struct ll_curve replay = parse_replay("0,1\n1,99\n2,50\n");
	assert_near(replay.low, 0.01, 1e-9);
	assert_near(replay.high, 0.99, 1e-9);
	ll_curve_fini(&replay);
}

TEST(blanks_are_passed_over)
{
	struct ll_curve curve = parse_replay("\t # indented\n \t \n\t0\t,\t20\t\n  ");
	assert_int_equal(curve.point_count, 1);
	ll_curve_fini(&curve);
	for (int blanks = 0; blanks < 200; blanks++) {
		char row[256];
		snprintf(row, sizeof row, "0,%*s20\n", blanks, "");
		if (ll_curve_parse_replay("f.csv", row, strlen(row), &curve, NULL) == 0)
			ll_curve_fini(&curve);
		else
			assert_true(blanks > 100);
	}
}

TEST(bad_curves_are_refused_with_the_reason)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
	    {"triangle:20-80@60s", "replay:FILE.csv"},
	    {"triangle:20-80@60s", "sine"},
	    {"triangle:20-80@60s", "square"},
	    {"triangle:20-80@60s", "sawtooth"},
	    {"", "unknown curve"},
	    {"sin:20-80@60s", "unknown curve"},
	    {"constant:50", "unknown curve"},
	    {"replay:", "file"},
	    {"replay", "file"},
	    {"sine", "levels"},
	    {"sine:", "period"},
	    {"sine:20-80", "period"},
	    {"sine:50@60s", "levels"},
	    {"sine:0-80@60s", "1 to 99"},
	    {"sine:0.5-80@60s", "1 to 99"},
	    {"sine:20-100@60s", "1 to 99"},
	    {"sine:80-20@60s", "below"},
	    {"sine:50-50@60s", "below"},
	    {"sine:a-80@60s", "number"},
	    {"sine:20-@60s", "number"},
	    {"sine:-20-80@60s", "number"},
	    {"sine:20-nan@60s", "number"},
	    {"sine:20-80@", "duration"},
	    {"sine:20-80@x", "duration"},
	    {"sine:20-80@-5s", "duration"},
	    {"sine:20-80@0s", "over 0"},
	    {"sine:20-80@60s@60s", "duration"},
	    {"sine:00000000000000000000000000000000000020-80@60s", "number"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ll_err err = {.code = 0};
		struct ll_curve curve;
		memset(&curve, 0x5a, sizeof curve);
		struct ll_curve before = curve;
		assert_int_equal(ll_curve_parse(cases[i].text, &curve, &err), -EINVAL);
		if (!strstr(err.text, cases[i].why))
			fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.text, cases[i].why);
		assert_memory_equal(&curve, &before, sizeof curve);
	}
	assert_int_equal(ll_curve_parse("nonsense", &(struct ll_curve){0}, NULL), -EINVAL);
}

TEST(bad_replays_name_file_and_line)
{
	static const struct {
		const char *csv;
		const char *where;
		const char *why;
	} cases[] = {
	    {"", "f.csv:1:", "no rows"},
	    {"# nothing\n\n", "f.csv:2:", "no rows"},
	    {"time_s,target\n", "f.csv:1:", "no rows"},
	    {"time_s,targets\n0,20\n", "f.csv:1:", "two numbers"},
	    {"time_s,targe\n0,20\n", "f.csv:1:", "two numbers"},
	    {"0,20\ntime_s,target\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1,\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1,30,40\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1,thirty\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1,0x20\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1,nan\n", "f.csv:2:", "two numbers"},
	    {"0,20\ninf,20\n", "f.csv:2:", "two numbers"},
	    {"0,20\n1 2,20\n", "f.csv:2:", "two numbers"},
	    {"\x7f\x45\x4c\x46\x02\x01\n", "f.csv:1:", "two numbers"},
	    {"0,20\n# c\n\n1,0\n", "f.csv:4:", "1 and 99"},
	    {"0,100\n", "f.csv:1:", "1 and 99"},
	    {"0,0.5\n", "f.csv:1:", "1 and 99"},
	    {"-1,20\n", "f.csv:1:", "10^9"},
	    {"1e300,20\n", "f.csv:1:", "10^9"},
	    {"0,20\n5,30\n5,40\n", "f.csv:3:", "not after"},
	    {"0,20\n5,30\n4,40\n", "f.csv:3:", "not after"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ll_err err = {.code = 0};
		struct ll_curve curve;
		const char *csv = cases[i].csv;
		assert_int_equal(ll_curve_parse_replay("f.csv", csv, strlen(csv), &curve, &err), -EINVAL);
		if (strncmp(err.text, cases[i].where, strlen(cases[i].where)) != 0 || !strstr(err.text, cases[i].why))
			fail_msg("case %zu: '%s' does not say '%s ... %s'", i, err.text, cases[i].where, cases[i].why);
	}
}

TEST(replay_text_may_hold_anything)
{
	struct ll_curve curve;
	struct ll_err err;
	assert_int_equal(ll_curve_parse_replay("f", "0,2\0,3\n", 7, &curve, &err), -EINVAL);
	char long_line[400];
	memset(long_line, '1', sizeof long_line);
	assert_int_equal(ll_curve_parse_replay("f", long_line, sizeof long_line, &curve, &err), -EINVAL);
	uint64_t seed = 3;
	static const char alphabet[] = "0123456789,.-+eE \t\r\n#\0time_s,target\xef\xbb\xbf";
	for (int round = 0; round < 20000; round++) {
		char text[64];
		size_t n = (size_t)(plant_uniform(&seed) * sizeof text);
		for (size_t i = 0; i < n; i++)
			text[i] = alphabet[(size_t)(plant_uniform(&seed) * (sizeof alphabet - 1))];
		if (ll_curve_parse_replay("f", text, n, &curve, NULL) < 0)
			continue;
		assert_between(ll_curve_at(&curve, 5.0), 0.01, 0.99);
		ll_curve_fini(&curve);
	}
}

TEST(byte_order_mark_is_passed_over)
{
	struct ll_curve curve = parse_replay("\xef\xbb\xbftime_s,target\n0,20\n");
	assert_near(ll_curve_at(&curve, 0.0), 0.2, 1e-9);
	ll_curve_fini(&curve);
}

TEST(replay_path_is_told_from_other_curves)
{
	assert_string_equal(ll_curve_replay_path("replay:a:b.csv"), "a:b.csv");
	assert_null(ll_curve_replay_path("replay:"));
	assert_null(ll_curve_replay_path("sine:20-80@60s"));
	assert_string_equal(ll_curve_kind_name(LL_CURVE_SAWTOOTH), "sawtooth");
}
