#include "hold/command/internal.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/common/table.h"
#include "hold/command/words.h"

/* A line waits this long for a reader that does not read. Samples do not wait. The hold must end within a second. */
enum { PATIENCE_MS = 200 };

struct json_sink {
	struct ll_hold_sink sink;
	struct ll_err err;          /* stdout's first error; no line is printed after it */
	bool has_said_slow;         /* dropped lines have been warned of once */
	double first_kernel_time[]; /* for each card; NAN before its first kernel */
};

/* Whole percentages print without decimals ("50"), as NVML gives them. */
static json_t *make_rounded(double value, int decimals)
{
	if (isfinite(value) && value == rint(value) && fabs(value) < 1e15)
		return json_integer((json_int_t)value);
	return ll_json_real(value, decimals);
}

/* "PREFIX_METRIC_UNIT": value in percent or watts. */
static void set_level(json_t *object, const char *prefix, enum ll_metric metric, const char *name, double value)
{
	char key[64];
	snprintf(key, sizeof key, "%s%s%s", prefix, name, ll_hold_unit_word(metric));
	json_object_set_new(object, key, make_rounded(round(value * ll_metric_scale(metric) * 100) / 100, 2));
}

static void set_metric(json_t *object, const char *prefix, enum ll_metric metric, double value)
{
	char name[32];
	snprintf(name, sizeof name, "%s_", ll_metric_name(metric));
	set_level(object, prefix, metric, name, value);
}

static json_t *new_line(const struct ll_event *event)
{
	json_t *object = json_object();
	json_object_set_new(object, "event", json_string(ll_event_name(event->kind)));
	if (event->kind != LL_EVENT_SUMMARY)
		json_object_set_new(object, "time_s", ll_json_real(event->time_s, 3));
	json_object_set_new(object, "card", json_integer(event->card->index));
	if (event->card->is_mig)
		json_object_set_new(object, "slice", json_integer(event->card->slice));
	return object;
}

/* What the log and the metrics say too: the load is no real work, and the card may be none. */
static void set_kind(json_t *object, const struct ll_event *event)
{
	json_object_set_new(object, "synthetic", json_true());
	json_object_set_new(object, "simulated", json_boolean(ll_hold_is_simulated(event->card)));
}

static void set_other_metrics(json_t *object, enum ll_metric held, const struct ll_hold_status *status)
{
	const double values[] = {
	    [LL_METRIC_UTIL] = status->util,           [LL_METRIC_SM] = status->sm,
	    [LL_METRIC_OCCUPANCY] = status->occupancy, [LL_METRIC_TENSOR] = status->tensor,
	    [LL_METRIC_DRAM] = status->dram,           [LL_METRIC_POWER] = status->power_watts,
	};
	for (int metric = LL_METRIC_UTIL; metric <= LL_METRIC_POWER; metric++) {
		if ((enum ll_metric)metric != held)
			set_metric(object, "", (enum ll_metric)metric, values[metric]);
	}
}

static json_t *sample_line(const struct ll_hold_config *hold, const struct ll_event *event)
{
	const struct ll_hold_status *status = &event->status;
	json_t *object = new_line(event);
	set_metric(object, "", hold->metric, status->level);
	set_level(object, "target_", hold->metric, "", status->target);
	json_object_set_new(object, "foreign", json_boolean(status->is_foreign));
	json_object_set_new(object, "state", json_string(ll_hold_state_name(status->state)));
	set_kind(object, event);
	json_object_set_new(object, "own_util_percent", make_rounded(round(status->own_util * 10000) / 100, 2));
	set_other_metrics(object, hold->metric, status);
	json_object_set_new(object, "temperature_celsius", make_rounded(status->temperature_c, 1));
	json_object_set_new(object, "duty_percent", ll_json_real(status->command * 100, 2));
	json_object_set_new(object, "idle_target", json_boolean(status->is_idle_target));
	json_object_set_new(object, "payload", ll_json_known(*status->payload, status->payload));
	json_object_set_new(object, "memory_bytes", json_integer((json_int_t)status->memory_bytes));
	json_object_set_new(object, "yields", json_integer((json_int_t)status->yields));
	json_object_set_new(object, "synthetic_busy_seconds", ll_json_real((double)status->synthetic_busy_ns / 1e9, 3));
	json_object_set_new(object, "synthetic_joules", ll_json_real(status->synthetic_joules, 3));
	json_object_set_new(object, "energy_joules", ll_json_real(status->energy_joules, 3));
	return object;
}

static json_t *change_line(const struct ll_event *event)
{
	const struct ll_hold_status *status = &event->status;
	json_t *object = new_line(event);
	json_object_set_new(object, "uuid", json_string(event->card->uuid));
	json_object_set_new(object, "state", json_string(ll_hold_state_name(status->state)));
	set_kind(object, event);
	if (event->kind == LL_EVENT_SETTLE)
		json_object_set_new(object, "settle_seconds", ll_json_real(event->settle_s, 3));
	if (event->kind == LL_EVENT_YIELD) {
		bool has_sensor = status->sensor != LL_SENSOR_NONE;
		json_object_set_new(object, "sensor",
				    has_sensor ? json_string(ll_hold_sensor_name(status->sensor)) : json_null());
	}
	if (event->kind == LL_EVENT_YIELD || event->kind == LL_EVENT_RESUME || event->kind == LL_EVENT_RELEASE)
		json_object_set_new(object, "reason", json_string(ll_hold_reason_text(status->reason)));
	json_object_set_new(object, "text", ll_json_known(*event->text, event->text));
	if (event->kind == LL_EVENT_FAULT) {
		char hint[2 * sizeof event->hint];
		ll_advice_copy(hint, sizeof hint, event->hint);
		json_object_set_new(object, "hint", ll_json_known(*hint, hint));
	}
	json_object_set_new(object, "yields", json_integer((json_int_t)status->yields));
	return object;
}

static void set_goal(json_t *object, const struct ll_hold_config *hold)
{
	json_object_set_new(object, "metric", json_string(ll_metric_name(hold->metric)));
	bool is_power = hold->metric == LL_METRIC_POWER;
	bool is_constant = is_power || hold->curve.kind == LL_CURVE_CONSTANT;
	json_object_set_new(object, "curve", json_string(is_power ? "constant" : ll_curve_kind_name(hold->curve.kind)));
	double target = is_power ? hold->target_watts : hold->curve.high;
	set_level(object, "target_", hold->metric, "", is_constant ? target : NAN);
}

static json_t *stranger_or_null(const struct ll_hold_stranger *stranger)
{
	if (!stranger->pid)
		return json_null();
	return json_pack("{s:s, s:i, s:i}", "name", stranger->name, "pid", (int)stranger->pid, "others",
			 (int)stranger->others);
}

/* "PREFIX_METRIC_UNIT" or "PREFIX_UNIT". Means are rounded to four digits, which is more than NVML's readings have. */
static void set_error(json_t *object, enum ll_metric metric, const char *prefix, const char *name,
		      const struct ll_summary_level *level, double value)
{
	char key[64];
	snprintf(key, sizeof key, "%s%s_%s", prefix, name, ll_hold_unit_word(metric));
	json_object_set_new(object, key, ll_json_real(level->sample_count ? value * ll_metric_scale(metric) : NAN, 4));
}

static void set_account(json_t *object, const struct ll_hold_config *hold, const struct ll_event *event)
{
	const struct ll_summary_result *result = &event->summary;
	const struct ll_summary_level *level = &result->level, *of_all = &result->of_all;
	json_object_set_new(object, "seconds", ll_json_real(result->seconds, 3));
	set_error(object, hold->metric, "mean_", ll_metric_name(hold->metric), level, level->mean_value);
	set_error(object, hold->metric, "max_abs_error", "", level, level->max_abs_error);
	json_object_set_new(object, "settle_seconds",
			    result->has_settled ? ll_json_real(result->settle_seconds, 3) : json_null());
	json_object_set_new(object, "yields", json_integer((json_int_t)result->yield_count));
	json_object_set_new(object, "synthetic_busy_seconds", ll_json_real(result->synthetic_busy_seconds, 3));
	json_object_set_new(object, "payload", ll_json_known(*event->status.payload, event->status.payload));
	json_object_set_new(object, "memory_bytes", json_integer((json_int_t)event->status.memory_bytes));
	json_object_set_new(object, "energy_joules", ll_json_real(result->energy_joules, 3));
	set_kind(object, event);
	json_object_set_new(object, "synthetic_joules", ll_json_real(result->synthetic_joules, 3));
	json_object_set_new(object, "yielded_seconds", ll_json_real(result->yielded_seconds, 3));
	json_object_set_new(object, "yielded_to", stranger_or_null(&event->stranger));
	json_object_set_new(object, "samples", json_integer((json_int_t)level->sample_count));
	set_error(object, hold->metric, "mean_error", "", level, level->mean_error);
	json_object_set_new(object, "all_samples", json_integer((json_int_t)of_all->sample_count));
	set_error(object, hold->metric, "all_mean_", ll_metric_name(hold->metric), of_all, of_all->mean_value);
	set_error(object, hold->metric, "all_max_abs_error", "", of_all, of_all->max_abs_error);
}

static json_t *summary_line(const struct ll_hold_config *hold, const struct ll_event *event, double first_kernel_time)
{
	json_t *object = new_line(event);
	set_account(object, hold, event);
	set_goal(object, hold);
	json_object_set_new(object, "first_kernel_time_s", ll_json_real(first_kernel_time, 3));
	json_object_set_new(object, "time_s", ll_json_real(event->time_s, 3));
	json_object_set_new(object, "uuid", json_string(event->card->uuid));
	json_object_set_new(object, "name", json_string(event->card->name));
	json_object_set_new(object, "exit_code", json_integer(ll_err_exit_code(event->code)));
	json_object_set_new(object, "exit_reason", json_string(event->code < 0 ? event->text : "told to end"));
	return object;
}

/* Looks whether stdout takes a line now. A pipe that poll reports as writable takes a whole line without blocking. So a
 * reader that has stopped reading cannot keep the hold from ending. */
static bool is_stdout_ready(enum ll_event_kind kind)
{
	struct pollfd pfd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&pfd, 1, kind == LL_EVENT_SAMPLE ? 0 : PATIENCE_MS) != 0;
}

static void print_line(struct json_sink *self, enum ll_event_kind kind, json_t *object)
{
	if (self->err.code < 0) {
		json_decref(object);
		return;
	}
	if (!is_stdout_ready(kind)) {
		json_decref(object);
		if (!self->has_said_slow)
			ll_warn("standard output is not read: lines are left out");
		self->has_said_slow = true;
		return;
	}
	if (ll_json_line(object, &self->err) < 0)
		ll_warn("%s; no more JSON lines, the hold goes on", self->err.text);
}

static void json_event(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot)
{
	struct json_sink *self = (struct json_sink *)sink;
	const struct ll_hold_config *hold = sink->config->hold;
	double *first_kernel_time = &self->first_kernel_time[slot];
	switch (event->kind) {
	case LL_EVENT_STATE: /* state changes are in the log, not in the JSON lines */
		if (isnan(*first_kernel_time) && event->status.state == LL_HOLD_HOLDING)
			*first_kernel_time = event->time_s;
		break;
	case LL_EVENT_SAMPLE:
		print_line(self, event->kind, sample_line(hold, event));
		break;
	case LL_EVENT_SUMMARY:
		print_line(self, event->kind, summary_line(hold, event, *first_kernel_time));
		break;
	default:
		print_line(self, event->kind, change_line(event));
		break;
	}
}

static int json_finish(struct ll_hold_sink *sink, struct ll_err *err)
{
	const struct json_sink *self = (const struct json_sink *)sink;
	return self->err.code < 0 ? ll_err_set(err, self->err.code, "%s", self->err.text) : 0;
}

int ll_hold_json_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err)
{
	static const struct ll_hold_sink_ops ops = {
	    .event = json_event,
	    .finish = json_finish,
	};
	struct json_sink *self = ll_hold_sink_new(&ops, config, sizeof *self, sizeof self->first_kernel_time[0]);
	if (!self)
		return ll_err_set(err, -ENOMEM, "JSON: out of memory");
	for (size_t i = 0; i < config->count; i++)
		self->first_kernel_time[i] = NAN;
	*ret_sink = &self->sink;
	return 0;
}
