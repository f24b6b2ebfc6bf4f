#include "hold/governor.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "hold/hold.h"
#include "hold/others.h"
#include "hold/pacer.h"
#include "hold/payload.h"

#define TICK_MS 50 /* the pacer wakes the governor earlier where it matters */
#define TICK_STOPPED_MS 200
#define TICK_CURVE_MS 500 /* resting: how often the reported target is renewed from the curve */
#define LOOK_EVERY_NS                                                                                                  \
	(10 * LL_NS_PER_S) /* stopped, on a card without fault events: how often the worker checks its context */
#define ORDER_VALID_NS (2 * LL_NS_PER_S) /* the pacer stops by itself when the governor hangs for this long */
#define GONE_AFTER_NS (10 * LL_NS_PER_S) /* a card that does not answer for this long does not come back by itself */
#define MISSING_AFTER_NS (5 * LL_NS_PER_S)
#define UNREAD_AFTER_NS (15 * LL_NS_PER_S) /* longer than a card may be gone and come back */
#define SLEPT_NS (1 * LL_NS_PER_S)

struct ll_governor {
	struct ll_governor_config config;
	pthread_t thread;
	bool has_thread;
	atomic_bool is_ending;
	int wake_fd;

	struct ll_pacer *pacer;
	struct ll_sense sense;
	struct ll_drive drive;
	struct ll_hold_policy policy;
	struct ll_summary summary;
	struct ll_pacer_report report;
	struct ll_hold_verdict verdict;

	uint32_t generation;       /* of the pacer's orders */
	uint64_t held_since_ns;    /* 0: kernels are not running */
	uint64_t first_kernel_ns;  /* 0: none yet. The curve starts here. */
	uint64_t wait_until_ns;    /* --timeout: no memory for a context is a failure only after this */
	int64_t asleep_ns;         /* grows when the machine sleeps */
	uint64_t called_ns;        /* when the worker was last called to check its context */
	uint64_t busy_told_ns;     /* the part of report.busy_ns that is already in summary and hold_socket */
	double energy_told_joules; /* the same of the card's counter; NAN before the first reading */
	double target;             /* of now: ratio or watts */
	double command;            /* the duty ordered last */
	enum ll_pacer_state seen_state;
	uint32_t seen_kills;
	enum ll_hold_state last_state; /* of the tick before */
	enum ll_hold_reason last_reason;
	struct ll_hold_stranger stranger; /* that the hold last yielded to */
	bool has_settled;                 /* the event for it was put */
	bool has_left;                    /* the event that the level was left was put at least once */
	bool has_said_reach;
	bool has_said_blind;
	int code; /* the error it ends with */
	struct ll_err end_err;
};

/* ---- telling ---- */

enum { SETTLED_SAMPLES = 5 };

/* 0 if now is before start. */
static double seconds_between(uint64_t start_ns, uint64_t now_ns)
{
	return now_ns > start_ns ? (double)(now_ns - start_ns) / 1e9 : 0;
}

/* Returns an event of this kind with the status of now. The caller fills in the rest and puts it. */
static struct ll_event make_event(const struct ll_governor *gov, enum ll_event_kind kind)
{
	const struct ll_sense_values *values = &gov->sense.values;
	struct ll_summary_result account;
	ll_summary_compute(&gov->summary, ll_now_ns(), &account);
	struct ll_event event = {
	    .kind = kind,
	    .card = gov->config.card,
	    .time_s = seconds_between(gov->config.start_ns, ll_now_ns()),
	    .wall_ns = ll_wall_ns(),
	    .status =
		{
		    .state = gov->verdict.state,
		    .reason = gov->verdict.reason,
		    .sensor = gov->verdict.sensor,
		    .is_idle_target = gov->verdict.is_idle_target,
		    .is_foreign =
			gov->verdict.state != LL_HOLD_HOLDING && gov->verdict.reason == LL_HOLD_REASON_FOREIGN,
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
		},
	};
	snprintf(event.status.payload, sizeof event.status.payload, "%s", gov->report.payload_name);
	return event;
}

/* Put an event of this kind with the status of now, and this text or this error. */
__attribute__((format(printf, 3, 4))) static void tell_event(struct ll_governor *gov, enum ll_event_kind kind,
							     const char *fmt, ...)
{
	struct ll_event event = make_event(gov, kind);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(event.text, sizeof event.text, ll_translate(fmt), ap);
	va_end(ap);
	ll_event_put(gov->config.events, &event);
}

static void tell_error(struct ll_governor *gov, enum ll_event_kind kind, const struct ll_err *err)
{
	struct ll_event event = make_event(gov, kind);
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
		*ret_window = (struct ll_curve_window){.mean = gov->target};
		return;
	}
	ll_curve_find_window(&hold->curve, seconds_between(gov->first_kernel_ns, sample->start_ns),
			     seconds_between(gov->first_kernel_ns, sample->end_ns), ret_window);
}

/* has_settled changes by a line only, so that "settled" is told again only after "left the level". */
static void tell_settled(struct ll_governor *gov, double target)
{
	struct ll_summary_result result;
	ll_summary_compute(&gov->summary, ll_now_ns(), &result);
	if (!gov->has_settled && result.has_settled && result.inside_count >= SETTLED_SAMPLES) {
		struct ll_event event = make_event(gov, LL_EVENT_SETTLE);
		event.settle_s = result.inside_seconds;
		snprintf(event.text, sizeof event.text,
			 gov->has_left ? _("settled again, %.1f s after the first kernel") : _("settled after %.1f s"),
			 event.settle_s);
		ll_event_put(gov->config.events, &event);
		gov->has_settled = true;
	} else if (gov->has_settled && result.inside_count == 0) {
		enum ll_metric metric = gov->config.hold->metric;
		double scale = ll_metric_scale(metric);
		const char *unit = ll_metric_unit(metric);
		tell_event(gov, LL_EVENT_LEAVE, "left the level: %s %.0f %s (target %.0f %s)", ll_metric_name(metric),
			   (target + result.recent_error) * scale, unit, target * scale, unit);
		gov->has_settled = false;
		gov->has_left = true;
	}
}

/* Puts this tick's readings of the metric, and whether the level has settled. */
static void tell_samples(struct ll_governor *gov)
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
		struct ll_event event = make_event(gov, LL_EVENT_SAMPLE);
		uint64_t now_ns = ll_now_ns();
		event.time_s = seconds_between(gov->config.start_ns, sample->end_ns);
		event.wall_ns -= now_ns > sample->end_ns ? now_ns - sample->end_ns : 0;
		event.status.level = sample->level;
		event.status.target = window.mean;
		ll_event_add(gov->config.events, &event);
		if (is_judged)
			tell_settled(gov, window.mean);
	}
	if (gov->sense.sample_count > 0)
		ll_event_wake(gov->config.events);
}

/* Says once if the target is out of the payload's reach. */
static void tell_reach(struct ll_governor *gov)
{
	double reach = NAN;
	enum ll_level_state state = ll_drive_state(&gov->drive, &reach);
	bool is_out = state != LL_LEVEL_TRACKING && gov->verdict.state == LL_HOLD_HOLDING;
	if (is_out && !gov->has_said_reach) {
		enum ll_metric metric = gov->config.hold->metric;
		double scale = ll_metric_scale(metric);
		const char *unit = ll_metric_unit(metric);
		tell_event(gov, LL_EVENT_FAULT, "%s target %.0f %s is %s what payload %s reaches here (about %.0f %s)",
			   ll_metric_name(metric), gov->target * scale, unit,
			   state == LL_LEVEL_TARGET_TOO_HIGH ? _("above") : _("below"), gov->report.payload_name,
			   reach * scale, unit);
	}
	gov->has_said_reach = is_out;
}

static void describe_foreign(const struct ll_governor *gov, char *text, size_t size)
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
}

/* Finds out which program it yields to. */
static void find_stranger(struct ll_governor *gov)
{
	LL_SCOPE_FREE struct ll_governed *governed = NULL;
	size_t count = 0;
	/* Without a reply from loadlined, a governed program is named like any other. */
	if (gov->config.places)
		ll_governed_list(gov->config.places, gov->config.card->uuid, LL_GOVERNED_WAIT_NS, &governed, &count);
	ll_hold_stranger_find(&gov->sense.processes, gov->report.pid, governed, count, &gov->stranger);
}

/* Says why it stopped holding, or cannot start. */
static void tell_stop(struct ll_governor *gov)
{
	char why[96];
	if (gov->verdict.reason == LL_HOLD_REASON_FOREIGN) {
		find_stranger(gov);
		ll_hold_socket_add_yield(gov->config.hold_socket);
		describe_foreign(gov, why, sizeof why);
		tell_event(gov, LL_EVENT_YIELD, "yielding to foreign work: %s", why);
	} else if (gov->verdict.reason == LL_HOLD_REASON_TOO_HOT) {
		tell_event(gov, LL_EVENT_FAULT, "stopped: %.0f C is too hot (limit %.0f C)",
			   gov->sense.values.temperature_c, gov->config.hold->max_temperature_c);
	} else if (gov->verdict.reason == LL_HOLD_REASON_SLOWDOWN) {
		tell_event(gov, LL_EVENT_FAULT, "stopped: the card slows itself down (%s)",
			   gov->sense.values.slowdown_text);
	} else if (gov->verdict.reason != LL_HOLD_REASON_REQUEST) {
		tell_event(gov, LL_EVENT_FAULT, "stopped: %s", _(ll_hold_reason_text(gov->verdict.reason)));
	}
}

/* ---- the account ---- */

/* Adds the busy time and energy since the last call to summary and to the report of hold_socket. Counts as a beat. */
static void book_use(struct ll_governor *gov)
{
	uint64_t busy_ns = gov->report.busy_ns - gov->busy_told_ns;
	gov->busy_told_ns = gov->report.busy_ns;
	ll_summary_add_busy(&gov->summary, busy_ns);
	double joules = 0;
	double counter = gov->sense.values.energy_joules;
	if (!isnan(counter)) {
		if (!isnan(gov->energy_told_joules) && counter > gov->energy_told_joules)
			joules = counter - gov->energy_told_joules;
		gov->energy_told_joules = counter;
		ll_summary_add_energy(&gov->summary, joules, gov->held_since_ns != 0);
	}
	ll_hold_socket_account(gov->config.hold_socket, busy_ns, gov->held_since_ns ? (uint64_t)(joules * 1000) : 0,
			       gov->sense.values.own_memory_bytes);
}

/* ---- the policy's verdict ---- */

static void report_state(struct ll_governor *gov)
{
	static const enum ll_claim_state states[] = {
	    [LL_HOLD_RELEASED] = LL_CLAIM_RELEASED, [LL_HOLD_OPENING] = LL_CLAIM_STARTING,
	    [LL_HOLD_YIELDED] = LL_CLAIM_YIELDED,   [LL_HOLD_HOLDING] = LL_CLAIM_RUNNING,
	    [LL_HOLD_ENDED] = LL_CLAIM_ENDING,
	};
	bool is_why = gov->verdict.state == LL_HOLD_YIELDED || gov->verdict.state == LL_HOLD_RELEASED;
	ll_hold_socket_set_state(gov->config.hold_socket, states[gov->verdict.state],
				 is_why ? ll_hold_reason_text(gov->verdict.reason) : "");
}

/* Books energy and time before a change of state, because both belong to the old state. */
static void book_energy(struct ll_governor *gov)
{
	ll_sense_read_energy(&gov->sense);
	book_use(gov);
}

static void book_stop(struct ll_governor *gov, uint64_t now_ns)
{
	bool is_yield = gov->verdict.reason == LL_HOLD_REASON_FOREIGN;
	if (is_yield && !gov->first_kernel_ns)
		ll_summary_keep(&gov->summary, gov->config.start_ns);
	else
		ll_summary_stop(&gov->summary, now_ns, is_yield);
}

static void stop_holding(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_pacer_order order = {.generation = gov->generation};
	ll_pacer_send_order(gov->pacer, &order);
	ll_drive_pause(&gov->drive, now_ns);
	book_energy(gov);
	book_stop(gov, now_ns);
	gov->held_since_ns = 0;
}

/*
 * If the load cannot start, the policy has no action for that, but a new state, or a new reason not to leave RELEASED.
 * A reading that is still missing at the start is none: it comes, or watch_faults says why it does not.
 */
static void note_obstacle(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_hold_verdict *verdict = &gov->verdict;
	bool was_before_start = gov->last_state == LL_HOLD_RELEASED || gov->last_state == LL_HOLD_OPENING;
	bool is_new = verdict->state != gov->last_state || verdict->reason != gov->last_reason;
	bool is_stopped = verdict->reason == LL_HOLD_REASON_FOREIGN || verdict->reason == LL_HOLD_REASON_TOO_HOT ||
			  verdict->reason == LL_HOLD_REASON_SLOWDOWN;
	if (is_new)
		report_state(gov);
	if (!is_new || !was_before_start || !is_stopped)
		return;
	book_stop(gov, now_ns);
	tell_stop(gov);
}

static void do_action(struct ll_governor *gov, uint64_t now_ns)
{
	switch (gov->verdict.action) {
	case LL_HOLD_ACT_NONE:
		note_obstacle(gov, now_ns);
		return;
	case LL_HOLD_ACT_START:
		book_energy(gov);
		gov->generation++;
		gov->held_since_ns = now_ns;
		if (gov->first_kernel_ns)
			tell_event(gov, LL_EVENT_RESUME, "holding again");
		break;
	case LL_HOLD_ACT_STOP:
		stop_holding(gov, now_ns);
		tell_stop(gov);
		break;
	case LL_HOLD_ACT_RELEASE:
		if (gov->held_since_ns)
			stop_holding(gov, now_ns);
		ll_sense_context_changes(&gov->sense, false);
		ll_pacer_close(gov->pacer);
		if (gov->verdict.state != LL_HOLD_ENDED)
			tell_event(gov, LL_EVENT_RELEASE, "context and memory given back: %s",
				   _(ll_hold_reason_text(gov->verdict.reason)));
		break;
	case LL_HOLD_ACT_REOPEN:
		ll_sense_context_changes(&gov->sense, true);
		ll_pacer_open(gov->pacer);
		break;
	}
	report_state(gov);
}

static void act_on_verdict(struct ll_governor *gov, uint64_t now_ns)
{
	bool was_stopped = gov->last_state == LL_HOLD_YIELDED || gov->last_state == LL_HOLD_RELEASED;
	bool is_yielded = was_stopped && gov->last_reason == LL_HOLD_REASON_FOREIGN;
	bool adds_nothing = gov->config.hold->mode == LL_HOLD_MODE_FILL && !gov->first_kernel_ns;
	if (gov->verdict.state == LL_HOLD_ENDED && (is_yielded || adds_nothing))
		find_stranger(gov); /* NVML's process list was older when the yield began */
	do_action(gov, now_ns);
	gov->last_state = gov->verdict.state;
	gov->last_reason = gov->verdict.reason;
}

/* ---- the context ---- */

static void context_opened(struct ll_governor *gov)
{
	ll_sense_context_changed(&gov->sense, true);
	ll_hold_socket_set_payload(gov->config.hold_socket, gov->report.payload_name);
	uint32_t sms = gov->report.sm_count ? gov->report.sm_count : gov->config.card->sm_count;
	ll_drive_restart(&gov->drive, gov->config.hold, sms);
	tell_event(gov, LL_EVENT_STATE, "payload %s%s%s", gov->report.payload_name,
		   gov->report.slices_rc == -ECANCELED ? ""
		   : gov->report.slices_rc             ? _(", its time slices cannot be set")
						       : _(", time slices of 0.1 ms"),
		   gov->report.has_card_clock ? "" : _(" (no card clock: a calibrated loop, lateness is not seen)"));
}

/*
 * A context that cannot be made ends the hold, with three exceptions. If the card has no memory for it, the hold waits
 * as long as --timeout allows. If the card was held before, or if another card's fault ended the worker, the context is
 * made again.
 */
static void context_failed(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_err *why = &gov->report.err;
	ll_pacer_close(gov->pacer);
	bool may_wait = why->code == -ENOMEM && now_ns < gov->wait_until_ns;
	bool was_held = gov->first_kernel_ns != 0;
	if (may_wait || was_held || gov->report.is_bystander) {
		tell_error(gov, LL_EVENT_FAULT, why);
		return;
	}
	gov->code = why->code;
	gov->end_err = *why;
	gov->is_ending = true;
}

/* Reacts to a change of the payload's context: made, failed, lost or closed. */
static void watch_context(struct ll_governor *gov, uint64_t now_ns)
{
	enum ll_pacer_state state = gov->report.state;
	if (gov->report.kills != gov->seen_kills)
		tell_event(gov, LL_EVENT_FAULT, "the driver hung: the payload process had to be killed");
	gov->seen_kills = gov->report.kills;
	if (state == gov->seen_state)
		return;
	gov->seen_state = state;
	if (state == LL_PACER_OPEN)
		context_opened(gov);
	else if (state == LL_PACER_FAILED)
		context_failed(gov, now_ns);
	else if (state == LL_PACER_LOST) {
		struct ll_err err = gov->report.err;
		ll_err_wrap(&err, "context lost");
		tell_error(gov, LL_EVENT_FAULT, &err);
	} else if (state == LL_PACER_CLOSED)
		ll_sense_context_changed(&gov->sense, false);
}

/* ---- deciding ---- */

/* CLOCK_BOOTTIME goes on in suspend, CLOCK_MONOTONIC does not. */
static bool has_slept(struct ll_governor *gov)
{
	int64_t asleep_ns = (int64_t)(ll_boot_ns() - ll_now_ns());
	bool slept = asleep_ns > gov->asleep_ns + (int64_t)SLEPT_NS;
	gov->asleep_ns = asleep_ns;
	if (slept)
		tell_event(gov, LL_EVENT_FAULT, "the machine slept; timers start again");
	return slept;
}

static void decide_action(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_sense *sense = &gov->sense;
	struct ll_hold_input input = {
	    .now_ns = now_ns,
	    .foreign_seen_ns = sense->foreign_seen_ns,
	    .foreign_sensor = sense->foreign_sensor,
	    .looked_until_ns = ll_sense_looked_until_ns(sense, now_ns, gov->held_since_ns != 0),
	    .readings_seen_ns = sense->readings_seen_ns,
	    .temperature_c = sense->values.temperature_c,
	    .is_slowdown = sense->values.is_slowdown,
	    .is_open = gov->report.state == LL_PACER_OPEN,
	    /* A context that is lost between two ticks was never seen open. */
	    .has_open_failed = gov->report.state == LL_PACER_FAILED || gov->report.state == LL_PACER_LOST,
	    .is_bystander = gov->report.is_bystander,
	    .has_slept = has_slept(gov),
	    .is_end_requested = gov->is_ending,
	};
	ll_hold_policy_tick(&gov->policy, &input, &gov->verdict);
	act_on_verdict(gov, now_ns);
}

static void find_target(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_hold_config *hold = gov->config.hold;
	double before = gov->target;
	bool is_curve = hold->curve.kind != LL_CURVE_CONSTANT && hold->metric != LL_METRIC_POWER;
	if (is_curve && !gov->verdict.is_idle_target)
		gov->target =
		    ll_curve_at(&hold->curve, gov->first_kernel_ns ? seconds_between(gov->first_kernel_ns, now_ns) : 0);
	else
		gov->target = gov->verdict.target;
	if (gov->target == before)
		return;
	bool is_power = hold->metric == LL_METRIC_POWER;
	unsigned target = (unsigned)lround(is_power ? gov->target : gov->target * 1000);
	ll_hold_socket_set_target(gov->config.hold_socket, ll_metric_name(hold->metric), is_power ? 0 : target,
				  is_power ? target : 0);
}

static void drive_load(struct ll_governor *gov, uint64_t now_ns)
{
	find_target(gov, now_ns);
	for (size_t i = 0; i < gov->sense.sample_count; i++)
		ll_drive_add_sample(&gov->drive, &gov->sense.samples[i]);
	if (gov->verdict.state != LL_HOLD_HOLDING || gov->report.state != LL_PACER_OPEN)
		return;
	gov->command = ll_drive_command(&gov->drive, now_ns, gov->target);
	struct ll_pacer_order order = {
	    .is_running = true,
	    .generation = gov->generation,
	    .ratio = gov->command,
	    .kernel = gov->drive.kernel,
	    .blocks = gov->drive.blocks,
	    .threads = gov->drive.threads,
	    .valid_until_ns = now_ns + ORDER_VALID_NS,
	};
	ll_pacer_send_order(gov->pacer, &order);
	if (gov->report.first_start_ns && !gov->first_kernel_ns) {
		gov->first_kernel_ns = gov->report.first_start_ns;
		tell_event(gov, LL_EVENT_STATE, "holding");
	}
	if (gov->first_kernel_ns)
		ll_summary_hold(&gov->summary,
				gov->held_since_ns > gov->first_kernel_ns ? gov->held_since_ns : gov->first_kernel_ns);
}

/* A stopped worker sleeps until it is called. It is called after a fault event of the card, and on a card without such
 * events once in LOOK_EVERY_NS. */
static void call_worker(struct ll_governor *gov, uint64_t now_ns)
{
	bool is_blind = !gov->sense.xid && now_ns - gov->called_ns >= LOOK_EVERY_NS;
	if (gov->held_since_ns || (!gov->sense.fault_xid && !is_blind))
		return;
	gov->called_ns = now_ns;
	ll_pacer_look(gov->pacer);
}

static bool is_since(uint64_t since_ns, uint64_t after_ns, uint64_t now_ns)
{
	return since_ns && now_ns >= since_ns + after_ns;
}

/* Failing readings are reported once, and again when they are back. A card that is gone ends the hold. */
static void watch_faults(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_sense *sense = &gov->sense;
	call_worker(gov, now_ns);
	if (sense->fault_xid) {
		tell_event(gov, LL_EVENT_FAULT, "Xid %llu: %s", (unsigned long long)sense->fault_xid,
			   ll_xid_text(sense->fault_xid));
		sense->fault_xid = 0;
	}
	bool is_blind = sense->failing_since_ns != 0;
	if (is_blind && !gov->has_said_blind)
		tell_error(gov, LL_EVENT_FAULT, &sense->last_err);
	if (!is_blind && gov->has_said_blind)
		tell_event(gov, LL_EVENT_STATE, "readings are back");
	gov->has_said_blind = is_blind;
	/* Without the reading that its loop needs the level would be arbitrary. */
	const char *label = gov->config.card->label;
	struct ll_err err = {0};
	if (is_since(sense->gone_since_ns, GONE_AFTER_NS, now_ns))
		ll_err_set(&err, -EIO, "card %s: gone: %s", label, sense->last_err.text);
	else if (is_since(sense->missing_since_ns, MISSING_AFTER_NS, now_ns))
		ll_err_set(&err, -ENOSYS,
			   "card %s: its GPM no longer gives the %s reading, so the level cannot be held", label,
			   ll_metric_name(gov->config.hold->metric));
	else if (is_since(sense->unread_since_ns, UNREAD_AFTER_NS, now_ns))
		ll_err_set(&err, -ENOSYS, "card %s: its GPM no longer answers, so the level cannot be held", label);
	if (err.code && !gov->is_ending) {
		gov->code = err.code;
		gov->end_err = err;
		gov->is_ending = true;
	}
}

/* ---- the loop ---- */

static void tick_governor(struct ll_governor *gov)
{
	uint64_t now_ns = ll_now_ns();
	ll_pacer_read_report(gov->pacer, &gov->report);
	watch_context(gov, now_ns);
	ll_sense_tick(&gov->sense, gov->pacer, &gov->report, gov->held_since_ns);
	watch_faults(gov, now_ns);
	decide_action(gov, now_ns);
	drive_load(gov, now_ns);
	tell_samples(gov);
	tell_reach(gov);
	book_use(gov);
}

/* Whether things change only at known times: no context is being made or closed, and the card replies. */
static bool is_resting(const struct ll_governor *gov, uint64_t now_ns)
{
	enum ll_pacer_state state = gov->report.state;
	return ll_sense_is_resting(&gov->sense, now_ns) && gov->verdict.action == LL_HOLD_ACT_NONE &&
	       (state == LL_PACER_OPEN || state == LL_PACER_CLOSED) && !gov->sense.gone_since_ns;
}

static int tick_ms(const struct ll_governor *gov)
{
	if (gov->held_since_ns)
		return TICK_MS;
	uint64_t now_ns = ll_now_ns(), next_ns = now_ns + TICK_STOPPED_MS * LL_NS_PER_MS;
	if (is_resting(gov, now_ns)) {
		next_ns = ll_sense_next_ns(&gov->sense);
		if (gov->config.hold->curve.kind != LL_CURVE_CONSTANT &&
		    next_ns > now_ns + TICK_CURVE_MS * LL_NS_PER_MS)
			next_ns = now_ns + TICK_CURVE_MS * LL_NS_PER_MS;
	}
	if (gov->verdict.next_ns < next_ns)
		next_ns = gov->verdict.next_ns;
	return next_ns > now_ns + TICK_MS * LL_NS_PER_MS ? (int)((next_ns - now_ns) / LL_NS_PER_MS) + 1 : TICK_MS;
}

static void wait_tick(const struct ll_governor *gov)
{
	if (!gov->held_since_ns && is_resting(gov, ll_now_ns()))
		ll_pacer_rest(gov->pacer);
	ll_pacer_sleep(gov->wake_fd, tick_ms(gov));
}

/* The account ends when the hold is told to, not when its context is closed. */
static void finish_governor(struct ll_governor *gov)
{
	uint64_t end_ns = ll_now_ns();
	ll_pacer_read_report(gov->pacer, &gov->report);
	ll_sense_read_energy(&gov->sense);
	book_use(gov);
	ll_summary_stop(&gov->summary, end_ns, false);
	bool has_closed = ll_pacer_free(gov->pacer, LL_PACER_CLOSE_WITHIN_NS);
	if (!has_closed && gov->code == 0) {
		gov->code = -EIO;
		ll_err_set(&gov->end_err, -EIO,
			   "card %s: the driver hung: the process with the context had to be killed",
			   gov->config.card->label);
	}
	struct ll_event event = make_event(gov, LL_EVENT_SUMMARY);
	ll_summary_compute(&gov->summary, end_ns, &event.summary);
	event.status.yielded_seconds = event.summary.yielded_seconds;
	event.stranger = gov->stranger;
	event.code = gov->code;
	snprintf(event.text, sizeof event.text, "%s", gov->code ? gov->end_err.text : "");
	snprintf(event.hint, sizeof event.hint, "%s", gov->code ? gov->end_err.hint : "");
	ll_event_put(gov->config.events, &event);
}

static void *governor_main(void *arg)
{
	struct ll_governor *gov = arg;
	pthread_setname_np(pthread_self(), "ll-governor");
	while (gov->verdict.state != LL_HOLD_ENDED) {
		tick_governor(gov);
		if (gov->verdict.state != LL_HOLD_ENDED)
			wait_tick(gov);
	}
	finish_governor(gov);
	return NULL;
}

static int start_pacer(struct ll_governor *gov, struct ll_err *err)
{
	const struct ll_hold_config *hold = gov->config.hold;
	static const enum ll_pacer_manners manners[] = {
	    [LL_HOLD_MODE_YIELD] = LL_PACER_YIELDS,
	    [LL_HOLD_MODE_FILL] = LL_PACER_STEPS_BACK,
	    [LL_HOLD_MODE_IGNORE] = LL_PACER_STAYS,
	};
	bool is_shared = gov->config.worker != NULL;
	struct ll_pacer_config config = {
	    .card = gov->config.card,
	    .payload_ops = ll_payload_choose(is_shared ? LL_PAYLOAD_VULKAN : hold->payload),
	    .alone_ops = is_shared && hold->payload == LL_PAYLOAD_AUTO ? ll_payload_choose(LL_PAYLOAD_CUDA) : NULL,
	    .worker = gov->config.worker,
	    .payload = {.as_mps_client = hold->as_mps_client,
			.is_translated = ll_is_translated(),
			.needs_fma = hold->metric == LL_METRIC_POWER,
			.needs_wide = hold->metric == LL_METRIC_SM || hold->metric == LL_METRIC_OCCUPANCY,
			.needs_tensor = hold->metric == LL_METRIC_TENSOR,
			.needs_dram = hold->metric == LL_METRIC_DRAM,
			.max_memory_bytes = hold->max_memory_bytes},
	    .limits = {.gap_ns = LL_LIMIT_GAP_NS, .late_ns = LL_LIMIT_LATE_NS, .first_late_ns = LL_LIMIT_FIRST_LATE_NS},
	    .manners = manners[hold->mode],
	    .step_back_ns = LL_STEP_BACK_NS,
	    .jobs_places = gov->config.places,
	    .jobs_uuid = gov->config.card->uuid,
	    .wake_fd = gov->wake_fd,
	};
	return ll_pacer_new(&config, &gov->pacer, err);
}

static void destroy_governor(struct ll_governor *gov)
{
	ll_sense_fini(&gov->sense);
	if (gov->wake_fd >= 0)
		close(gov->wake_fd);
	free(gov);
}

static void init_parts(struct ll_governor *gov)
{
	const struct ll_hold_config *hold = gov->config.hold;
	bool is_power = hold->metric == LL_METRIC_POWER;
	struct ll_hold_policy_config policy = {
	    .mode = hold->mode,
	    .resume_after_ns = hold->resume_after_ns,
	    .release_after_ns = hold->release_after_ns,
	    .has_kernel_sensor = !hold->as_mps_client,
	    .max_temperature_c = hold->max_temperature_c,
	    .target = is_power ? hold->target_watts : hold->curve.high,
	    .has_idle_target = hold->has_idle_target,
	    .idle_target = hold->idle_target,
	    .idle_after_ns = hold->idle_after_ns,
	};
	ll_hold_policy_init(&gov->policy, &policy);
	/* In fill mode the other programs' work changes from window to window. So samples are averaged over a second,
	 * and the band is wider. */
	bool is_fill = hold->mode == LL_HOLD_MODE_FILL;
	struct ll_summary_config summary = {
	    .band = is_power  ? hold->target_watts * 0.02
		    : is_fill ? 0.04
			      : 0.01,
	    .average = is_fill ? LL_SUMMARY_AVERAGE_MOST : 1,
	    .step_limit = is_power ? 1 : 0.01,
	    .guard_ns = is_power ? 5 * LL_NS_PER_S : 0,
	};
	ll_summary_init(&gov->summary, &summary);
	ll_drive_init(&gov->drive, hold, gov->config.card->sm_count);
	gov->energy_told_joules = NAN;
	gov->target = NAN;
	gov->asleep_ns = (int64_t)(ll_boot_ns() - ll_now_ns());
	gov->wait_until_ns = ll_now_ns() + hold->wait_ns;
}

int ll_governor_new(const struct ll_governor_config *config, struct ll_governor **ret_governor, struct ll_err *err)
{
	struct ll_governor *gov = calloc(1, sizeof *gov);
	if (!gov)
		return ll_err_set(err, -ENOMEM, "start a governor: out of memory");
	gov->config = *config;
	gov->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct ll_sense_config sense = {
	    .card = config->card,
	    .metric = config->hold->metric,
	    .use = config->hold->as_mps_client               ? LL_SENSE_UTIL_WATCHES
		   : config->hold->mode == LL_HOLD_MODE_FILL ? LL_SENSE_UTIL_CONTROLS
							     : LL_SENSE_UTIL_TRIMS,
	    .resume_after_ns = config->hold->resume_after_ns,
	    .kernel_log = config->hold->kernel_log,
	    .watches_arrivals = config->hold->mode == LL_HOLD_MODE_YIELD,
	};
	int rc = gov->wake_fd < 0 ? ll_err_set(err, -errno, "make an eventfd: %s", strerror(errno))
				  : ll_sense_init(&gov->sense, &sense, err);
	if (rc == 0) {
		init_parts(gov);
		rc = start_pacer(gov, err);
	}
	if (rc < 0) {
		destroy_governor(gov);
		return rc;
	}
	*ret_governor = gov;
	return 0;
}

int ll_governor_start(struct ll_governor *governor, struct ll_err *err)
{
	int rc = pthread_create(&governor->thread, NULL, governor_main, governor);
	if (rc != 0)
		return ll_err_set(err, -rc, "start a governor: %s", strerror(rc));
	governor->has_thread = true;
	return 0;
}

void ll_governor_end(struct ll_governor *governor)
{
	governor->is_ending = true;
	ll_pacer_wake(governor->wake_fd);
}

bool ll_governor_free(struct ll_governor *governor, uint64_t deadline_ns)
{
	if (!governor)
		return true;
	if (!governor->has_thread)
		ll_pacer_free(governor->pacer, 0);
	if (governor->has_thread && !ll_join_until(governor->thread, deadline_ns))
		return false;
	destroy_governor(governor);
	return true;
}
