#include "base/translate.h"
#include "hold/governor_state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/scope.h"
#include "hold/governed.h"
#include "hold/hold_socket.h"

enum { SETTLED_SAMPLES = 5 };

double ll_governor_seconds(uint64_t start_ns, uint64_t now_ns)
{
	return now_ns > start_ns ? (double)(now_ns - start_ns) / 1e9 : 0;
}

static void fill_status(const struct ll_governor *gov, struct ll_hold_status *status)
{
	const struct ll_sense_values *values = &gov->sense.values;
	struct ll_summary_result account;
	ll_summary_compute(&gov->summary, ll_now_ns(), &account);
	*status = (struct ll_hold_status){
	    .state = gov->verdict.state,
	    .reason = gov->verdict.reason,
	    .sensor = gov->verdict.sensor,
	    .is_idle_target = gov->verdict.is_idle_target,
	    .is_foreign = gov->verdict.state != LL_HOLD_HOLDING && gov->verdict.reason == LL_HOLD_REASON_FOREIGN,
	    .level = NAN,
	    .target = gov->target,
	    .command = gov->held_since_ns ? gov->command : 0,
	    .util = values->util,
	    .own_util = values->own_util,
	    .sm = values->sm,
	    .occupancy = values->occupancy,
	    .tensor = values->tensor,
	    .dram = values->dram,
	    .power_watts = values->power_watts,
	    .temperature_c = values->temperature_c,
	    .memory_bytes = values->own_memory_bytes,
	    .synthetic_busy_ns = gov->report.busy_ns,
	    .synthetic_joules = account.synthetic_joules,
	    .energy_joules = account.energy_joules,
	    .yields = account.yield_count,
	    .yielded_seconds = account.yielded_seconds,
	};
	snprintf(status->payload, sizeof status->payload, "%s", gov->report.payload_name);
}

struct ll_event ll_governor_event(const struct ll_governor *gov, enum ll_event_kind kind)
{
	struct ll_event event = {
	    .kind = kind,
	    .card = gov->config.card,
	    .time_s = ll_governor_seconds(gov->config.start_ns, ll_now_ns()),
	    .wall_ns = ll_wall_ns(),
	};
	fill_status(gov, &event.status);
	return event;
}

void ll_governor_tell(struct ll_governor *gov, enum ll_event_kind kind, const char *fmt, ...)
{
	struct ll_event event = ll_governor_event(gov, kind);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(event.text, sizeof event.text, ll_translate(fmt), ap);
	va_end(ap);
	ll_event_put(gov->config.events, &event);
}

void ll_governor_tell_err(struct ll_governor *gov, enum ll_event_kind kind, const struct ll_err *err)
{
	struct ll_event event = ll_governor_event(gov, kind);
	snprintf(event.text, sizeof event.text, "%s", err->text);
	snprintf(event.hint, sizeof event.hint, "%s", err->hint);
	ll_event_put(gov->config.events, &event);
}

/* Finds the target over the window of a reading, because a curve changes while NVML averages. */
static void window_target(const struct ll_governor *gov, const struct ll_drive_sample *sample,
			  struct ll_curve_window *ret_window)
{
	const struct ll_hold_config *hold = gov->config.hold;
	if (hold->curve.kind == LL_CURVE_CONSTANT || hold->metric == LL_METRIC_POWER || gov->verdict.is_idle_target ||
	    !gov->first_kernel_ns) {
		*ret_window = (struct ll_curve_window){.mean = gov->target, .min = gov->target, .max = gov->target};
		return;
	}
	ll_curve_find_window(&hold->curve, ll_governor_seconds(gov->first_kernel_ns, sample->start_ns),
			     ll_governor_seconds(gov->first_kernel_ns, sample->end_ns), ret_window);
}

/* has_settled changes by a line only, so that "settled" is told again only after "left the level". */
static void tell_settled(struct ll_governor *gov, double target)
{
	struct ll_summary_result result;
	ll_summary_compute(&gov->summary, ll_now_ns(), &result);
	if (!gov->has_settled && result.has_settled && result.inside_count >= SETTLED_SAMPLES) {
		struct ll_event event = ll_governor_event(gov, LL_EVENT_SETTLE);
		event.settle_s = result.inside_seconds;
		snprintf(event.text, sizeof event.text,
			 gov->has_left ? _("settled again, %.1f s after the first kernel") : _("settled after %.1f s"),
			 event.settle_s);
		ll_event_put(gov->config.events, &event);
		gov->has_settled = true;
	} else if (gov->has_settled && result.inside_count == 0) {
		bool is_power = gov->config.hold->metric == LL_METRIC_POWER;
		double scale = is_power ? 1 : 100;
		const char *unit = is_power ? "W" : "%";
		ll_governor_tell(gov, LL_EVENT_LEAVE, "left the level: %s %.0f %s (target %.0f %s)",
				 ll_metric_name(gov->config.hold->metric), (target + result.recent_error) * scale, unit,
				 target * scale, unit);
		gov->has_settled = false;
		gov->has_left = true;
	}
}

void ll_governor_tell_samples(struct ll_governor *gov)
{
	for (size_t i = 0; i < gov->sense.sample_count; i++) {
		const struct ll_drive_sample *sample = &gov->sense.samples[i];
		if (sample->end_ns < gov->config.start_ns) /* a reading of the time before the start */
			continue;
		struct ll_curve_window window;
		window_target(gov, sample, &window);
		struct ll_summary_sample judged = {
		    .start_ns = sample->start_ns,
		    .end_ns = sample->end_ns,
		    .value = sample->level,
		    .target = window.mean,
		    .largest_step = window.largest_step,
		};
		bool is_judged = ll_summary_add(&gov->summary, &judged);
		struct ll_event event = ll_governor_event(gov, LL_EVENT_SAMPLE);
		uint64_t now_ns = ll_now_ns();
		event.time_s = ll_governor_seconds(gov->config.start_ns, sample->end_ns);
		event.wall_ns -= now_ns > sample->end_ns ? now_ns - sample->end_ns : 0;
		event.status.level = sample->level;
		event.status.target = window.mean;
		ll_event_add(gov->config.events, &event);
		if (is_judged)
			tell_settled(gov, window.mean);
	}
	if (gov->sense.sample_count == 0)
		return;
	ll_event_wake(gov->config.events);
}

void ll_governor_tell_reach(struct ll_governor *gov)
{
	double reach = NAN;
	enum ll_level_state state = ll_drive_state(&gov->drive, &reach);
	bool is_out = state != LL_LEVEL_TRACKING && gov->verdict.state == LL_HOLD_HOLDING;
	if (is_out && !gov->has_said_reach) {
		bool is_power = gov->config.hold->metric == LL_METRIC_POWER;
		double scale = is_power ? 1 : 100;
		ll_governor_tell(gov, LL_EVENT_FAULT,
				 "%s target %.0f %s is %s what payload %s reaches here (about %.0f %s)",
				 ll_metric_name(gov->config.hold->metric), gov->target * scale, is_power ? "W" : "%",
				 state == LL_LEVEL_TARGET_TOO_HIGH ? _("above") : _("below"), gov->report.payload_name,
				 reach * scale, is_power ? "W" : "%");
	}
	gov->has_said_reach = is_out;
}

static const char *foreign_text(const struct ll_governor *gov, char *text, size_t size)
{
	const struct ll_contention *seen = &gov->report.foreign;
	switch (gov->verdict.sensor) {
	case LL_SENSOR_GAP:
		snprintf(text, size, _("own kernel lost the card for %.2f ms"), (double)seen->gap_ns / 1e6);
		break;
	case LL_SENSOR_LATE:
		snprintf(text, size, _("own kernel started %.2f ms late"), (double)seen->late_ns / 1e6);
		break;
	case LL_SENSOR_GOVERNED:
		snprintf(text, size, _("a governed program has work"));
		break;
	case LL_SENSOR_PROCESS:
		snprintf(text, size, _("a process came to the card"));
		break;
	case LL_SENSOR_MEMORY:
		snprintf(text, size, _("another program took memory on the card"));
		break;
	case LL_SENSOR_UTIL:
		snprintf(text, size, _("%.0f %% utilisation beside our own %.0f %%"),
			 gov->sense.foreign_window.foreign_ratio * 100, gov->sense.foreign_window.own_ratio * 100);
		break;
	case LL_SENSOR_NONE:
		snprintf(text, size, _("sensor unknown"));
		break;
	}
	return text;
}

void ll_governor_find_stranger(struct ll_governor *gov)
{
	LL_SCOPE_FREE struct ll_governed *governed = NULL;
	size_t count = 0;
	/* Without a reply from loadlined, a governed program is named like any other. */
	if (gov->config.places)
		ll_governed_list(gov->config.places, gov->config.card->uuid, LL_GOVERNED_WAIT_NS, &governed, &count);
	ll_hold_stranger_find(&gov->sense.processes, gov->report.pid, governed, count, &gov->stranger);
}

void ll_governor_tell_stop(struct ll_governor *gov)
{
	char why[96];
	if (gov->verdict.reason == LL_HOLD_REASON_FOREIGN) {
		ll_governor_find_stranger(gov);
		ll_hold_socket_add_yield(gov->config.hold_socket);
		ll_governor_tell(gov, LL_EVENT_YIELD, "yielding to foreign work: %s",
				 foreign_text(gov, why, sizeof why));
	} else if (gov->verdict.reason == LL_HOLD_REASON_TOO_HOT) {
		ll_governor_tell(gov, LL_EVENT_FAULT, "stopped: %.0f C is too hot (limit %.0f C)",
				 gov->sense.values.temperature_c, gov->config.hold->max_temperature_c);
	} else if (gov->verdict.reason == LL_HOLD_REASON_SLOWDOWN) {
		ll_governor_tell(gov, LL_EVENT_FAULT, "stopped: the card slows itself down (%s)",
				 gov->sense.values.slowdown_text);
	} else if (gov->verdict.reason != LL_HOLD_REASON_REQUEST) {
		ll_governor_tell(gov, LL_EVENT_FAULT, "stopped: %s", _(ll_hold_reason_text(gov->verdict.reason)));
	}
}
