/* Statements and picture from made-up measurements: nothing is said that was not measured. */
#include "test.h"

#include "probe/probe.h"
#include "probe_world.h"

static struct ll_spread exactly(double value)
{
	return (struct ll_spread){.count = 5, .median = value, .low = value, .high = value, .min = value, .max = value};
}

static struct ll_probe_result result_of(enum ll_probe_parallel parallel, struct ll_probe_under under, bool is_full,
					bool has_priorities, enum ll_probe_word word)
{
	return (struct ll_probe_result){
	    .cell = {.parallel = parallel,
		     .under = under,
		     .is_full = is_full,
		     .has_priorities = has_priorities,
		     .connections = 8},
	    .load = {.parties = 2, .kernels = 8, .length_ns = 1000 * US},
	    .word = word,
	    .runs = 5,
	    .agreeing = 5,
	    .overlap = exactly(word == LL_PROBE_CONCURRENT_WORD ? 0.99 : 0),
	    .share = exactly(0.5),
	    .window_ns = exactly(17e6),
	    .lost = exactly(0.06),
	    .step_ns = 32,
	    .card_sms = 132,
	    .sm_count = is_full ? 132 : 1,
	};
}

static const struct ll_probe_under plain = {.manner = LL_PROBE_DEFAULT}, mps = {.manner = LL_PROBE_MPS};

static struct ll_probe_report report_of(const struct ll_probe_result *results, size_t count)
{
	return (struct ll_probe_report){
	    .card_label = "0",
	    .card_name = "NVIDIA <Test> & \"Card\"",
	    .driver_version = "580.1",
	    .sm_count = 132,
	    .results = results,
	    .count = count,
	};
}

/* The text of the statement of that name, or NULL; until the next call. */
static const char *say(const struct ll_probe_report *report, const char *name)
{
	static char text[1000];
	struct ll_probe_findings findings;
	bool is_there = false;
	assert_int_equal(ll_probe_findings_make(report, &findings), 0);
	for (size_t i = 0; i < findings.count; i++) {
		assert_non_null(strstr(findings.items[i].command, "loadline probe"));
		if (strcmp(findings.items[i].name, name) != 0)
			continue;
		is_there = true;
		snprintf(text, sizeof text, "%s", findings.items[i].text.buf);
	}
	ll_probe_findings_fini(&findings);
	return is_there ? text : NULL;
}

static void assert_says(const struct ll_probe_report *report, const char *name, const char *part)
{
	const char *text = say(report, name);
	assert_non_null(text);
	if (!strstr(text, part))
		fail_msg("'%s' does not contain '%s'", text, part);
}

TEST(nothing_measured_nothing_said)
{
	struct ll_probe_report report = report_of(NULL, 0);
	struct ll_probe_findings findings;
	assert_int_equal(ll_probe_findings_make(&report, &findings), 0);
	assert_int_equal(findings.count, 0);
	struct ll_probe_result skipped = result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_TIME_SLICED);
	skipped.is_skipped = true;
	report = report_of(&skipped, 1);
	assert_null(say(&report, "contexts"));
}

TEST(a_statement_says_what_was_seen_also_where_that_is_unusual)
{
	struct ll_probe_result result = result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_TIME_SLICED);
	struct ll_probe_report report = report_of(&result, 1);
	result.slice_ns = exactly(2.09e6);
	result.switch_ns = exactly(0.14e6);
	assert_says(&report, "contexts", "One context at a time");
	assert_says(&report, "contexts", "slice 2.09 ms, 140 us empty at each change");
	result = result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_CONCURRENT_WORD);
	assert_says(&report, "contexts", "have the card together: concurrent, overlap 99.0 %");
	result = result_of(LL_PROBE_PROCESSES, mps, false, false, LL_PROBE_TIME_SLICED);
	assert_null(say(&report, "contexts"));
	assert_says(&report, "mps", "As clients of MPS, small kernels of several processes are time-sliced");
	result = result_of(LL_PROBE_PROCESSES, mps, false, false, LL_PROBE_REFUSED);
	snprintf(result.why, sizeof result.why, "make a context: CUDA_ERROR_MPS_CONNECTION_FAILED (805)");
	assert_says(&report, "mps", "refused (make a context: CUDA_ERROR_MPS_CONNECTION_FAILED (805))");
}

TEST(the_price_needs_both_sides)
{
	struct ll_probe_result both[] = {
	    result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_TIME_SLICED),
	    result_of(LL_PROBE_PROCESSES, mps, false, false, LL_PROBE_CONCURRENT_WORD),
	};
	struct ll_probe_report report = report_of(both, 1);
	assert_null(say(&report, "mps-price"));
	report.count = 2;
	both[1].window_ns = exactly(8e6);
	both[1].lost = exactly(0);
	assert_says(&report, "mps-price", "took 8.00 ms instead of 17.00; without MPS 6.0 % of the time");
	assert_null(strstr(say(&report, "mps-price"), "MiB"));
	report.memories[0] = (struct ll_probe_memory){
	    .is_known = true, .under = plain, .first_bytes = 529 << 20, .each_bytes = 526 << 20};
	report.memories[1] =
	    (struct ll_probe_memory){.is_known = true, .under = mps, .first_bytes = 589 << 20, .each_bytes = 257 << 20};
	assert_says(&report, "mps-price", "257 MiB of the card's memory with MPS and 526 without");
}

TEST(a_priority_is_told_from_equal_and_different_together)
{
	struct ll_probe_result both[] = {
	    result_of(LL_PROBE_STREAMS, plain, true, false, LL_PROBE_SERIALISED),
	    result_of(LL_PROBE_STREAMS, plain, true, true, LL_PROBE_SERIALISED),
	};
	struct ll_probe_report report = report_of(both, 1);
	assert_null(say(&report, "priority"));
	both[1].share = exactly(0.82);
	report.count = 2;
	assert_says(&report, "priority", "50 % of the time with equal priorities, 82 % with the highest");
}

TEST(preemption_has_three_outcomes)
{
	struct ll_probe_report report = report_of(NULL, 0);
	report.arrival = (struct ll_probe_arrival){
	    .is_known = true, .runs = 5, .round_ns = exactly(500e3), .equal_wait_ns = exactly(3.5e6)};
	report.arrival.high_wait_ns = exactly(40e3);
	assert_says(&report, "preemption", "were preempted");
	report.arrival.high_wait_ns = exactly(505e3);
	assert_says(&report, "preemption", "it waits for running blocks, which had 500 us to go");
	report.arrival.high_wait_ns = exactly(3.5e6);
	assert_says(&report, "preemption", "it waits for the whole kernel");
}

TEST(an_idle_context_costs_time_only_where_that_is_more_than_the_scatter)
{
	struct ll_probe_report report = report_of(NULL, 0);
	report.idling = (struct ll_probe_idling){.is_known = true,
						 .runs = 5,
						 .alone_ns = exactly(8e6),
						 .beside_ns = exactly(8.01e6),
						 .memory_bytes = 500 << 20};
	assert_says(&report, "idle-context", "costs no time");
	assert_says(&report, "idle-context", "500 MiB");
	report.idling.beside_ns = exactly(8.8e6);
	assert_says(&report, "idle-context", "costs time: the same kernels took 8.000 ms alone and 8.800 ms beside it");
	report.idling.alone_ns.high = 9.5e6;
	assert_says(&report, "idle-context", "costs no time");
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

TEST(the_picture_has_a_bar_for_each_stretch_and_escapes_names)
{
	struct ll_probe_kernel *kernels = calloc(2, sizeof *kernels);
	struct ll_probe_result result = result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_TIME_SLICED);
	struct ll_probe_report report = report_of(&result, 1);
	struct ll_strbuf svg = LL_STRBUF_INIT;
	kernels[0] = kernel_of(0, 0, 6000);
	interrupt(&kernels[0], 2000, 2000);
	kernels[1] = kernel_of(1, 2100, 3900);
	result.kernels = kernels;
	result.kernel_count = 2;
	ll_probe_svg(&report, &svg);
	assert_false(svg.failed);
	assert_non_null(strstr(svg.buf, "NVIDIA &lt;Test&gt; &amp; &quot;Card&quot;"));
	assert_null(strstr(svg.buf, "<Test>"));
	/* Two stretches of the first and one for the legend, one of the second, one hole and one for the legend. */
	assert_int_equal(count_of(svg.buf, "<rect class=\"p0\""), 3);
	assert_int_equal(count_of(svg.buf, "<rect class=\"p1\""), 1);
	assert_int_equal(count_of(svg.buf, "<rect class=\"away\""), 2);
	assert_non_null(strstr(svg.buf, ">time-sliced</tspan>"));
	assert_non_null(strstr(svg.buf, ">process 1</text>"));
	assert_non_null(strstr(svg.buf, "prefers-color-scheme:dark"));
	ll_strbuf_fini(&svg);
	free(kernels);
}

TEST(a_refused_cell_is_a_panel_with_the_drivers_words)
{
	struct ll_probe_result result = result_of(LL_PROBE_PROCESSES, plain, false, false, LL_PROBE_REFUSED);
	struct ll_probe_report report = report_of(&result, 1);
	struct ll_strbuf svg = LL_STRBUF_INIT;
	snprintf(result.why, sizeof result.why, "make a context: <46>\x01");
	ll_probe_svg(&report, &svg);
	assert_non_null(strstr(svg.buf, ">refused</tspan>"));
	assert_non_null(strstr(svg.buf, "make a context: &lt;46&gt; <"));
	ll_strbuf_fini(&svg);
}

/* The widest line of that kind in the panels, in letters. */
static size_t widest(const char *svg, const char *beginning)
{
	size_t most = 0;
	for (const char *at = strstr(svg, "<g class=\"panel\">"); (at = strstr(at, beginning)); at++) {
		size_t length = strcspn(strchr(at, '>') + 1, "<");
		most = length > most ? length : most;
	}
	return most;
}

TEST(a_caption_wider_than_the_picture_is_broken)
{
	struct ll_probe_result result = result_of(LL_PROBE_PROCESSES, plain, false, true, LL_PROBE_TIME_SLICED);
	struct ll_probe_report report = report_of(&result, 1);
	struct ll_strbuf svg = LL_STRBUF_INIT;
	result.slice_ns = result.switch_ns = (struct ll_spread){.count = 1, .median = 2e6};
	ll_probe_svg(&report, &svg);
	assert_non_null(strstr(svg.buf, "all wanted the card</text>"));
	assert_in_range(widest(svg.buf, "<text class=\"caption\" x=\"24\""), 60, 150);
	ll_strbuf_reset(&svg);
	result.word = LL_PROBE_REFUSED;
	memset(result.why, 'x', sizeof result.why - 1);
	ll_probe_svg(&report, &svg);
	assert_in_range(widest(svg.buf, "<text class=\"caption\" x=\"24\""), 60, 150);
	ll_strbuf_fini(&svg);
}

TEST(of_a_whole_matrix_a_few_cells_are_drawn)
{
	struct ll_probe_result results[30];
	struct ll_strbuf svg = LL_STRBUF_INIT;
	static const unsigned connections[] = {1, 8, 32};
	for (size_t i = 0; i < 30; i++) {
		results[i] = result_of(LL_PROBE_STREAMS, plain, i % 2, i % 5 == 4, LL_PROBE_SERIALISED);
		results[i].cell.connections = connections[i / 10];
	}
	struct ll_probe_report report = report_of(results, 30);
	ll_probe_svg(&report, &svg);
	assert_int_equal(count_of(svg.buf, "<g class=\"panel\">"), 8);
	assert_int_equal(count_of(svg.buf, "equal priorities, 8 connections"), 8);
	ll_strbuf_fini(&svg);
}

TEST(the_first_kernels_numbers_are_counted)
{
	int32_t numbers[LL_FIRST_NUMBERS];
	for (int i = 0; i < LL_FIRST_NUMBERS; i++)
		numbers[i] = i < 256 ? i : LL_FIRST_UNTOUCHED;
	assert_int_equal(ll_probe_first_written(numbers), 256);
	assert_true(ll_probe_first_is_in_order(numbers));
	numbers[300] = 300;
	assert_int_equal(ll_probe_first_written(numbers), 257);
	assert_false(ll_probe_first_is_in_order(numbers));
}
