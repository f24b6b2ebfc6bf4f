/*
 * hold_events.h - events as a governor would put them, and what the outputs of `hold` make of them on stdout and in the
 * log, for the tests of src/hold/command.
 */
#ifndef LOADLINE_TESTS_UNIT_HOLD_EVENTS_H
#define LOADLINE_TESTS_UNIT_HOLD_EVENTS_H

#include "test.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hold/command/internal.h"

static const struct ll_card test_card = {
    .label = "0",
    .uuid = "GPU-11111111-2222-3333-4444-555555555555",
    .name = "NVIDIA H200",
};

static const struct ll_card test_slice = {
    .index = 1, .slice = 2, .label = "1:2", .uuid = "MIG-1", .name = "say \"A100\"\\1g\n", .is_mig = true};

static const struct ll_card *const test_cards[] = {&test_card, &test_slice};

static const struct ll_hold_config test_util = {
    .metric = LL_METRIC_UTIL,
    .curve = {.kind = LL_CURVE_CONSTANT, .low = 0.5, .high = 0.5},
};

static const struct ll_hold_config test_power = {.metric = LL_METRIC_POWER, .target_watts = 200};

/* A hold of one card, util at 50 %; tests change what they need. */
__attribute__((unused)) static struct ll_hold_output_config test_config(void)
{
	return (struct ll_hold_output_config){.hold = &test_util, .cards = test_cards, .count = 1};
}

__attribute__((unused)) static struct ll_event test_event(enum ll_event_kind kind, double time_s, const char *text)
{
	struct ll_event event = {
	    .kind = kind,
	    .card = &test_card,
	    .time_s = time_s,
	    .wall_ns = UINT64_C(1769860800250000000), /* 2026-01-31T12:00:00.25Z */
	    .status =
		{
		    .state = LL_HOLD_HOLDING,
		    .reason = LL_HOLD_REASON_QUIET,
		    .level = kind == LL_EVENT_SAMPLE ? 0.5 : NAN,
		    .target = 0.5,
		    .command = 0.501,
		    .util = 0.5,
		    .own_util = 0.4975,
		    .sm = NAN,
		    .occupancy = NAN,
		    .tensor = NAN,
		    .dram = NAN,
		    .power_watts = 121.2,
		    .temperature_c = 45,
		    .memory_bytes = UINT64_C(50) << 20,
		    .synthetic_busy_ns = 600 * LL_NS_PER_MS,
		    .synthetic_joules = 72.5,
		    .energy_joules = 145,
		    .payload = "vulkan",
		},
	};
	snprintf(event.text, sizeof event.text, "%s", text);
	return event;
}

__attribute__((unused)) static struct ll_event test_yield(double time_s)
{
	struct ll_event event =
	    test_event(LL_EVENT_YIELD, time_s, "yielding to foreign work: own kernel lost the card for 1.02 ms");
	event.status.state = LL_HOLD_YIELDED;
	event.status.reason = LL_HOLD_REASON_FOREIGN;
	event.status.sensor = LL_SENSOR_GAP;
	event.status.is_foreign = true;
	event.status.yields = 1;
	return event;
}

/* As the governor puts it: the context is gone, so are memory and payload. */
__attribute__((unused)) static struct ll_event test_summary(double time_s)
{
	struct ll_event event = test_event(LL_EVENT_SUMMARY, time_s, "");
	event.status.state = LL_HOLD_ENDED;
	event.status.reason = LL_HOLD_REASON_REQUEST;
	event.status.memory_bytes = 0;
	event.status.payload[0] = '\0';
	event.summary = (struct ll_summary_result){
	    .seconds = 30,
	    .level = {.sample_count = 148, .mean_value = 0.49987, .mean_error = -0.00013, .max_abs_error = 0.01},
	    .of_all = {.sample_count = 150, .mean_value = 0.495, .mean_error = -0.005, .max_abs_error = 0.5},
	    .has_settled = true,
	    .settle_seconds = 0.4,
	    .yield_count = 1,
	    .yielded_seconds = 5.2,
	    .synthetic_busy_seconds = 12.4,
	    .energy_joules = 3700,
	    .synthetic_joules = 3630,
	};
	return event;
}

/* What a descriptor is given from begin to end. */
struct test_capture {
	int fd;
	int saved_fd;
	char text[64 * 1024];
};

__attribute__((unused)) static void test_capture_begin(struct test_capture *capture)
{
	fflush(stdout);
	capture->fd = memfd_create("capture", 0);
	assert_true(capture->fd >= 0);
	capture->saved_fd = dup(STDOUT_FILENO);
	dup2(capture->fd, STDOUT_FILENO);
}

__attribute__((unused)) static const char *test_capture_read(struct test_capture *capture)
{
	ssize_t n = pread(capture->fd, capture->text, sizeof capture->text - 1, 0);
	assert_true(n >= 0);
	capture->text[n] = '\0';
	close(capture->fd);
	return capture->text;
}

__attribute__((unused)) static const char *test_capture_end(struct test_capture *capture)
{
	fflush(stdout);
	dup2(capture->saved_fd, STDOUT_FILENO);
	close(capture->saved_fd);
	return test_capture_read(capture);
}

__attribute__((unused)) static void test_log_begin(struct test_capture *capture)
{
	capture->fd = memfd_create("log", 0);
	assert_true(capture->fd >= 0);
	ll_log_set_fd(capture->fd);
}

__attribute__((unused)) static const char *test_log_end(struct test_capture *capture)
{
	ll_log_set_fd(STDERR_FILENO);
	return test_capture_read(capture);
}

#define assert_contains(text, part)                                                                                    \
	do {                                                                                                           \
		if (!strstr((text), (part)))                                                                           \
			fail_msg("'%s' is not in:\n%s", (part), (text));                                               \
	} while (0)

#define assert_lacks(text, part)                                                                                       \
	do {                                                                                                           \
		if (strstr((text), (part)))                                                                            \
			fail_msg("'%s' is in:\n%s", (part), (text));                                                   \
	} while (0)

#endif
