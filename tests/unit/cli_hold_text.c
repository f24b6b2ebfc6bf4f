#include "hold_events.h"

#include <errno.h>

static struct test_capture log_capture;
static struct test_capture stdout_capture;

/* Log and stdout of a hold with these events and, after each, a tick a second later. */
static void run(const struct ll_hold_output_config *config, const struct ll_event *events, size_t count)
{
	struct ll_hold_output *output = NULL;
	uint64_t now_ns = LL_NS_PER_S;
	test_log_begin(&log_capture);
	test_capture_begin(&stdout_capture);
	int rc = ll_hold_output_new(config, &output, NULL);
	if (rc == 0)
		ll_hold_output_tick(output, now_ns);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		ll_hold_output_event(output, &events[i]);
		ll_hold_output_tick(output, now_ns += LL_NS_PER_S);
	}
	if (rc == 0)
		rc = ll_hold_output_finish(output, NULL);
	ll_hold_output_free(output);
	test_capture_end(&stdout_capture);
	test_log_end(&log_capture);
	assert_int_equal(rc, 0);
}

static void run_one(const struct ll_hold_config *hold, struct ll_event event)
{
	struct ll_hold_output_config config = test_config();
	config.hold = hold;
	run(&config, &event, 1);
}

TEST(start_says_what_is_held_with_what)
{
	run_one(&test_util, test_event(LL_EVENT_STATE, 1, "holding"));
	assert_contains(log_capture.text, " INFO card 0 NVIDIA H200: holding util at 50 % with a synthetic load "
					  "(payload vulkan, 50 MiB of GPU memory)\n");
}

TEST(start_says_curve_and_mode)
{
	struct ll_hold_config hold = test_util;
	hold.mode = LL_HOLD_MODE_FILL;
	hold.curve = (struct ll_curve){.kind = LL_CURVE_SINE, .low = 0.2, .high = 0.8, .period_s = 60};
	run_one(&hold, test_event(LL_EVENT_STATE, 1, "holding"));
	assert_contains(log_capture.text, "holding util along a sine of 20 to 80 % every 60 s with a synthetic load, "
					  "adding to the load of other programs (payload");
	hold.curve = (struct ll_curve){.kind = LL_CURVE_REPLAY, .low = 0.055, .high = 0.95};
	run_one(&hold, test_event(LL_EVENT_STATE, 1, "holding"));
	assert_contains(log_capture.text, "holding util as recorded, 5.5 to 95 % with");
	run_one(&test_power, test_event(LL_EVENT_STATE, 1, "holding"));
	assert_contains(log_capture.text, "holding power at 200 W with");
}

TEST(state_changes_are_a_line_each_in_the_event_s_words)
{
	struct ll_hold_output_config config = test_config();
	struct ll_event events[] = {
	    test_event(LL_EVENT_STATE, 1, "holding"),
	    test_event(LL_EVENT_SETTLE, 2, "settled after 0.4 s"),
	    test_event(LL_EVENT_LEAVE, 2, "left the level: util 82 % (target 50 %)"),
	    test_yield(3),
	    test_event(LL_EVENT_RESUME, 8, "holding again"),
	    test_event(LL_EVENT_RELEASE, 9, "context and memory given back: yielded for long"),
	    test_event(LL_EVENT_STATE, 10, "readings are back"),
	    test_event(LL_EVENT_SAMPLE, 11, ""),
	};
	run(&config, events, sizeof events / sizeof events[0]);
	assert_contains(log_capture.text, "INFO card 0: settled after 0.4 s\n");
	assert_contains(log_capture.text, "INFO card 0: left the level: util 82 % (target 50 %)\n");
	assert_contains(log_capture.text,
			"INFO card 0: yielding to foreign work: own kernel lost the card for 1.02 ms\n");
	assert_contains(log_capture.text, "INFO card 0: holding again\n");
	assert_contains(log_capture.text, "INFO card 0: context and memory given back: yielded for long\n");
	assert_contains(log_capture.text, "INFO card 0: readings are back\n");
	size_t lines = 0;
	for (const char *c = log_capture.text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 7);
}

TEST(fault_warns_and_names_the_card_once)
{
	struct ll_event event = test_event(LL_EVENT_FAULT, 1, "card 0: open context: out of memory");
	snprintf(event.hint, sizeof event.hint, "use --wait");
	run_one(&test_util, event);
	assert_contains(log_capture.text, " WARN card 0: open context: out of memory; use --wait\n");
}

TEST(periodic_line_tells_the_last_readings)
{
	struct ll_hold_output_config config = test_config();
	config.log_every_ns = 2 * LL_NS_PER_S;
	struct ll_event events[] = {test_event(LL_EVENT_SAMPLE, 1, ""), test_event(LL_EVENT_SAMPLE, 2, "")};
	run(&config, events, 2);
	const char *line = "card 0: util 50 % (target 50 %), own load 50 %, 121 W, 45 C, holding, 0 yields\n";
	assert_contains(log_capture.text, line);
	assert_null(strstr(strstr(log_capture.text, line) + 1, line));
}

/* A card that is lost would be printed as if it were alive, until the next reading. */
TEST(after_a_fault_the_last_readings_are_not_told)
{
	struct ll_hold_output_config config = test_config();
	config.log_every_ns = LL_NS_PER_S;
	struct ll_event events[] = {
	    test_event(LL_EVENT_SAMPLE, 1, ""),
	    test_event(LL_EVENT_FAULT, 2, "card gone"),
	    test_event(LL_EVENT_STATE, 3, "waits for the card"),
	};
	events[1].status.level = events[2].status.level = NAN;
	run(&config, events, 3);
	assert_contains(log_capture.text, "card 0: util unknown (target 50 %), holding, 0 yields\n");
}

TEST(periodic_line_leaves_out_what_is_not_known)
{
	struct ll_hold_output_config config = test_config();
	config.log_every_ns = LL_NS_PER_S;
	config.hold = &test_power;
	struct ll_event event = test_yield(1);
	event.status.target = 200;
	event.status.util = event.status.own_util = event.status.temperature_c = NAN;
	run(&config, &event, 1);
	assert_contains(log_capture.text, "card 0: power unknown (target 200 W), yielded (foreign work), 1 yield\n");
}

TEST(summary_is_a_block_on_stdout_and_says_synthetic_load)
{
	struct ll_hold_output_config config = test_config();
	struct ll_event events[] = {test_event(LL_EVENT_SAMPLE, 1, ""), test_summary(31)};
	run(&config, events, 2);
	assert_string_equal(stdout_capture.text,
			    "card 0 NVIDIA H200: synthetic load, held util at 50 % for 30.0 s\n"
			    "  util           mean 49.50 %, largest error 50.00 points, over 150 readings\n"
			    "  once settled   mean 49.99 %, largest error 1.00 points, over 148 readings\n"
			    "  settled        0.40 s after the first kernel\n"
			    "  yields         1, 5.2 s without load\n"
			    "  synthetic load busy 12.4 s, 3630 J of the card's 3700 J\n"
			    "  payload        vulkan, 50 MiB of GPU memory\n");
}

TEST(a_hold_that_only_yielded_names_the_program_and_the_way_out)
{
	struct ll_event event = test_summary(3);
	event.summary = (struct ll_summary_result){.yield_count = 1, .yielded_seconds = 3.0};
	run_one(&test_util, event);
	assert_contains(stdout_capture.text,
			"synthetic load, yielded the whole 3.0 s to another program; --mode fill adds to it\n");
	event.stranger = (struct ll_hold_stranger){.pid = 123, .name = "train"};
	run_one(&test_util, event);
	assert_contains(stdout_capture.text, "yielded the whole 3.0 s to train (pid 123); --mode fill adds to it\n");
	event.summary = (struct ll_summary_result){.yield_count = 1, .yielded_seconds = 2.8, .seconds = 2.9};
	run_one(&test_util, event);
	assert_contains(stdout_capture.text, "yielded 2.8 of 2.9 s to train (pid 123); --mode fill adds to it\n");
	event.summary.yielded_seconds = 2;
	run_one(&test_util, event);
	assert_contains(stdout_capture.text, "for 2.9 s\n");
	event.summary = (struct ll_summary_result){.yield_count = 1, .yielded_seconds = 3.0};
	event.stranger.others = 2;
	run_one(&test_util, event);
	assert_contains(stdout_capture.text, " to train (pid 123) and 2 others; --mode fill adds to it\n");
	struct ll_hold_config fill = test_util;
	fill.mode = LL_HOLD_MODE_FILL;
	event.summary.yield_count = 0;
	event.stranger.others = 1;
	run_one(&fill, event);
	assert_contains(stdout_capture.text,
			"added nothing: the target was no more than the load of train (pid 123) and 1 other\n");
}

static struct ll_event failed_summary(void)
{
	struct ll_event event = test_summary(1);
	event.summary = (struct ll_summary_result){.seconds = 0};
	event.code = -EIO;
	snprintf(event.text, sizeof event.text, "no memory");
	return event;
}

TEST(failure_of_the_only_card_is_left_to_main)
{
	run_one(&test_util, failed_summary());
	assert_string_equal(stdout_capture.text, "card 0 NVIDIA H200: synthetic load, no kernel ran\n"
						 "  ended by       an error\n");
	assert_null(strstr(log_capture.text, "no memory"));
}

TEST(failure_of_one_of_several_cards_is_logged_at_once)
{
	struct ll_event event = failed_summary();
	const struct ll_card *cards[] = {event.card, event.card};
	struct ll_hold_output_config config = test_config();
	config.cards = cards;
	config.count = 2;
	run(&config, &event, 1);
	assert_contains(log_capture.text, "ERROR card 0: no memory\n");
}

TEST(start_that_fails_prints_no_summary)
{
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = NULL;
	test_capture_begin(&stdout_capture);
	assert_int_equal(ll_hold_output_new(&config, &output, NULL), 0);
	ll_hold_output_free(output);
	ll_hold_output_free(NULL);
	assert_string_equal(test_capture_end(&stdout_capture), "");
}
