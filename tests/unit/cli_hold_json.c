#include "hold_events.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>

/* The lines that a JSON output prints for some events. */
static json_t *lines_of(const struct ll_hold_config *hold, const struct ll_event *events, size_t count)
{
	static struct test_capture capture;
	static struct test_capture log;
	struct ll_hold_output_config config = test_config();
	config.is_json = true;
	config.hold = hold;
	config.count = 2;
	struct ll_hold_output *output = NULL;
	test_log_begin(&log);
	test_capture_begin(&capture);
	int rc = ll_hold_output_new(&config, &output, NULL);
	for (size_t i = 0; rc == 0 && i < count; i++)
		ll_hold_output_event(output, &events[i]);
	int finish_rc = rc == 0 ? ll_hold_output_finish(output, NULL) : rc;
	ll_hold_output_free(output);
	const char *text = test_capture_end(&capture);
	test_log_end(&log);
	assert_int_equal(finish_rc, 0);
	json_t *lines = json_array();
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		json_error_t error;
		json_t *object = json_loads(line, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
		if (!object)
			fail_msg("%s: %s", error.text, line);
		json_array_append_new(lines, object);
	}
	return lines;
}

static json_t *line_of(const struct ll_hold_config *hold, const struct ll_event *event)
{
	json_t *lines = lines_of(hold, event, 1);
	assert_int_equal(json_array_size(lines), 1);
	json_t *line = json_incref(json_array_get(lines, 0));
	json_decref(lines);
	return line;
}

/* The line has all of the wanted keys, with these values. */
static void assert_has(json_t *line, const char *wanted_text)
{
	json_t *wanted = json_loads(wanted_text, 0, NULL);
	assert_non_null(wanted);
	const char *key;
	json_t *value;
	json_object_foreach(wanted, key, value)
	{
		json_t *found = json_object_get(line, key);
		bool is_same = json_is_number(value) && json_is_number(found)
				   ? fabs(json_number_value(value) - json_number_value(found)) < 1e-9
				   : json_equal(value, found);
		if (!is_same) {
			char *text = json_dumps(line, JSON_COMPACT);
			fail_msg("%s is not as in %s: %s", key, wanted_text, text);
		}
	}
	json_decref(wanted);
	json_decref(line);
}

TEST(sample_has_the_contract_s_keys_first_and_whole_percents)
{
	static struct test_capture capture;
	struct ll_hold_output_config config = test_config();
	config.is_json = true;
	struct ll_hold_output *output = NULL;
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	test_capture_begin(&capture);
	assert_int_equal(ll_hold_output_new(&config, &output, NULL), 0);
	ll_hold_output_event(output, &event);
	ll_hold_output_free(output);
	const char *text = test_capture_end(&capture);
	const char *begin = "{\"event\":\"sample\",\"time_s\":1.2,\"card\":0,\"util_percent\":50,\"target_percent\":50,"
			    "\"foreign\":false,";
	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
}

TEST(sample_tells_readings_and_its_own_part)
{
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	assert_has(line_of(&test_util, &event),
		   "{\"synthetic\":true,\"simulated\":false,\"own_util_percent\":49.75,\"power_watts\":121.2,"
		   "\"temperature_celsius\":45,"
		   "\"state\":\"holding\",\"sm_percent\":null,\"occupancy_percent\":null,\"tensor_percent\":null,"
		   "\"dram_percent\":null,\"payload\":\"vulkan\","
		   "\"memory_bytes\":52428800,\"synthetic_busy_seconds\":0.6,\"synthetic_joules\":72.5,"
		   "\"energy_joules\":145,\"duty_percent\":50.1,\"yields\":0}");
}

TEST(sample_of_sm_has_the_level_under_its_name)
{
	struct ll_hold_config hold = test_util;
	hold.metric = LL_METRIC_SM;
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	event.status.level = 0.2513;
	event.status.sm = 0.9;
	event.status.util = 1;
	assert_has(line_of(&hold, &event), "{\"sm_percent\":25.13,\"target_percent\":50,\"util_percent\":100}");
}

TEST(sample_of_power_has_watts)
{
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	event.status.level = 198.5;
	event.status.target = 200;
	assert_has(line_of(&test_power, &event), "{\"power_watts\":198.5,\"target_watts\":200,\"util_percent\":50}");
}

TEST(yield_tells_sensor_reason_and_card)
{
	struct ll_event event = test_yield(2);
	assert_has(line_of(&test_util, &event),
		   "{\"event\":\"yield\",\"time_s\":2,\"card\":0,\"uuid\":\"GPU-11111111-2222-3333-4444-555555555555\","
		   "\"sensor\":\"gap\",\"reason\":\"foreign work\",\"state\":\"yielded\",\"synthetic\":true,"
		   "\"text\":\"yielding to foreign work: own kernel lost the card for 1.02 ms\"}");
}

TEST(slice_names_its_number_on_the_card)
{
	struct ll_event event = test_event(LL_EVENT_RESUME, 2, "holding again");
	event.card = &test_slice;
	assert_has(line_of(&test_util, &event), "{\"event\":\"resume\",\"card\":1,\"slice\":2,\"uuid\":\"MIG-1\"}");
}

TEST(fault_carries_text_and_hint)
{
	struct ll_event event = test_event(LL_EVENT_FAULT, 2, "no \"memory\"");
	assert_has(line_of(&test_util, &event), "{\"event\":\"fault\",\"text\":\"no \\\"memory\\\"\",\"hint\":null}");
	snprintf(event.hint, sizeof event.hint, "wait");
	assert_has(line_of(&test_util, &event), "{\"hint\":\"wait\"}");
}

TEST(settle_tells_when)
{
	struct ll_event event = test_event(LL_EVENT_SETTLE, 1.4, "settled after 0.4 s");
	event.settle_s = 0.4;
	assert_has(line_of(&test_util, &event), "{\"event\":\"settle\",\"settle_seconds\":0.4}");
}

TEST(summary_is_last_and_remembers_payload_and_memory)
{
	struct ll_event events[] = {
	    test_event(LL_EVENT_STATE, 0.8, "holding"),
	    test_event(LL_EVENT_SAMPLE, 1.2, ""),
	    test_summary(31),
	};
	json_t *lines = lines_of(&test_util, events, 3);
	assert_int_equal(json_array_size(lines), 2);
	assert_has(json_incref(json_array_get(lines, 1)),
		   "{\"event\":\"summary\",\"card\":0,\"seconds\":30,\"mean_util_percent\":49.987,"
		   "\"max_abs_error_percent\":1,\"settle_seconds\":0.4,\"yields\":1,\"synthetic_busy_seconds\":12.4,"
		   "\"payload\":\"vulkan\",\"memory_bytes\":52428800,\"energy_joules\":3700,\"synthetic\":true,"
		   "\"synthetic_joules\":3630,\"yielded_seconds\":5.2,\"exit_code\":0,\"exit_reason\":\"told to end\","
		   "\"metric\":\"util\",\"target_percent\":50,\"samples\":148,\"all_samples\":150,"
		   "\"all_mean_util_percent\":49.5,\"all_max_abs_error_percent\":50,\"first_kernel_time_s\":0.8}");
	json_decref(lines);
}

TEST(summary_of_a_hold_that_never_held_has_nulls)
{
	struct ll_event event = test_summary(1);
	event.summary = (struct ll_summary_result){.settle_seconds = NAN};
	event.code = -EIO;
	snprintf(event.text, sizeof event.text, "card 0: gone");
	assert_has(
	    line_of(&test_power, &event),
	    "{\"seconds\":0,\"mean_power_watts\":null,\"max_abs_error_watts\":null,\"settle_seconds\":null,"
	    "\"yielded_to\":null,\"payload\":null,\"memory_bytes\":0,\"exit_code\":1,\"exit_reason\":\"card 0: gone\","
	    "\"target_watts\":200,\"first_kernel_time_s\":null}");
}

TEST(summary_names_the_program_that_it_yielded_to)
{
	struct ll_event event = test_summary(3);
	event.summary = (struct ll_summary_result){.yield_count = 1, .yielded_seconds = 3.0, .settle_seconds = NAN};
	event.stranger = (struct ll_hold_stranger){.pid = 123, .name = "train", .others = 1};
	assert_has(line_of(&test_util, &event), "{\"yields\":1,\"yielded_seconds\":3,\"exit_code\":0,"
						"\"yielded_to\":{\"name\":\"train\",\"pid\":123,\"others\":1}}");
}

/* Feeds samples to an output whose stdout is fd; returns what finish said. */
static int feed_into(int fd, size_t samples, struct ll_err *err, struct test_capture *log)
{
	struct ll_hold_output_config config = test_config();
	config.is_json = true;
	struct ll_hold_output *output = NULL;
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	fflush(stdout);
	int saved_fd = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	test_log_begin(log);
	int rc = ll_hold_output_new(&config, &output, err);
	for (size_t i = 0; rc == 0 && i < samples; i++)
		ll_hold_output_event(output, &event);
	if (rc == 0)
		rc = ll_hold_output_finish(output, err);
	ll_hold_output_free(output);
	dup2(saved_fd, STDOUT_FILENO);
	close(saved_fd);
	clearerr(stdout);
	return rc;
}

TEST(reader_that_does_not_read_does_not_stop_the_hold)
{
	static struct test_capture log;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(feed_into(fds[1], 2000, NULL, &log), 0); /* 2000 lines are far more than a pipe holds */
	const char *text = test_log_end(&log);
	assert_contains(text, "WARN standard output is not read: lines are left out\n");
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	close(fds[0]);
	close(fds[1]);
}

TEST(full_stdout_warns_once_and_fails_at_the_end)
{
	static struct test_capture log;
	struct ll_err err = {0};
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(feed_into(fd, 3, &err, &log), -EIO);
	const char *text = test_log_end(&log);
	assert_contains(text, "the hold goes on\n");
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	assert_contains(err.text, "standard output");
	close(fd);
}
