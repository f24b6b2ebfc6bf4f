#include "hold/governor_state.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/translate.h"
#include "hold/hold_socket.h"
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

static void report_target(struct ll_governor *gov)
{
	const struct ll_hold_config *hold = gov->config.hold;
	const char *metric = ll_metric_name(hold->metric);
	if (hold->metric == LL_METRIC_POWER)
		ll_hold_socket_set_target_watts(gov->config.hold_socket, metric, (unsigned)lround(gov->target));
	else
		ll_hold_socket_set_target(gov->config.hold_socket, metric, (unsigned)lround(gov->target * 1000));
}

/* ---- deciding ---- */

/* CLOCK_BOOTTIME goes on in suspend, CLOCK_MONOTONIC does not. */
static bool has_slept(struct ll_governor *gov)
{
	int64_t asleep_ns = (int64_t)(ll_boot_ns() - ll_now_ns());
	bool slept = asleep_ns > gov->asleep_ns + (int64_t)SLEPT_NS;
	gov->asleep_ns = asleep_ns;
	if (slept)
		ll_governor_tell(gov, LL_EVENT_FAULT, "the machine slept; timers start again");
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
	ll_governor_act(gov, now_ns);
}

static void find_target(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_hold_config *hold = gov->config.hold;
	double before = gov->target;
	bool is_curve = hold->curve.kind != LL_CURVE_CONSTANT && hold->metric != LL_METRIC_POWER;
	if (is_curve && !gov->verdict.is_idle_target)
		gov->target = ll_curve_at(&hold->curve,
					  gov->first_kernel_ns ? ll_governor_seconds(gov->first_kernel_ns, now_ns) : 0);
	else
		gov->target = gov->verdict.target;
	if (!(gov->target == before))
		report_target(gov);
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
		ll_governor_tell(gov, LL_EVENT_STATE, "holding");
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

static void end_with(struct ll_governor *gov, const struct ll_err *why)
{
	if (gov->is_ending)
		return;
	gov->code = why->code;
	gov->end_err = *why;
	gov->is_ending = true;
}

static bool is_since(uint64_t since_ns, uint64_t after_ns, uint64_t now_ns)
{
	return since_ns && now_ns >= since_ns + after_ns;
}

/* Ends the hold if the reading that its loop needs is gone: the level would be arbitrary. */
static void watch_level(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_err err = {0};
	const char *label = gov->config.card->label;
	if (is_since(gov->sense.missing_since_ns, MISSING_AFTER_NS, now_ns))
		ll_err_set(&err, -ENOSYS,
			   "card %s: its GPM no longer gives the %s reading, so the level cannot be held", label,
			   ll_metric_name(gov->config.hold->metric));
	else if (is_since(gov->sense.unread_since_ns, UNREAD_AFTER_NS, now_ns))
		ll_err_set(&err, -ENOSYS, "card %s: its GPM no longer answers, so the level cannot be held", label);
	else
		return;
	end_with(gov, &err);
}

/* Failing readings are reported once, and again when they are back. A card that is gone ends the hold. */
static void watch_faults(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_sense *sense = &gov->sense;
	call_worker(gov, now_ns);
	if (sense->fault_xid) {
		ll_governor_tell(gov, LL_EVENT_FAULT, "Xid %llu: %s", (unsigned long long)sense->fault_xid,
				 ll_xid_text(sense->fault_xid));
		sense->fault_xid = 0;
	}
	bool is_blind = sense->failing_since_ns != 0;
	if (is_blind && !gov->has_said_blind)
		ll_governor_tell_err(gov, LL_EVENT_FAULT, &sense->last_err);
	if (!is_blind && gov->has_said_blind)
		ll_governor_tell(gov, LL_EVENT_STATE, "readings are back");
	gov->has_said_blind = is_blind;
	/* gone_since_ns can be later than now_ns, which was taken at the beginning of the tick. */
	if (sense->gone_since_ns && now_ns > sense->gone_since_ns + GONE_AFTER_NS) {
		struct ll_err err = {0};
		ll_err_set(&err, -EIO, "card %s: gone: %s", gov->config.card->label, sense->last_err.text);
		end_with(gov, &err);
	}
	watch_level(gov, now_ns);
}

/* ---- the loop ---- */

static void tick_governor(struct ll_governor *gov)
{
	uint64_t now_ns = ll_now_ns();
	ll_pacer_read_report(gov->pacer, &gov->report);
	ll_governor_watch_context(gov, now_ns);
	ll_sense_tick(&gov->sense, gov->pacer, &gov->report, gov->held_since_ns);
	watch_faults(gov, now_ns);
	decide_action(gov, now_ns);
	drive_load(gov, now_ns);
	ll_governor_tell_samples(gov);
	ll_governor_tell_reach(gov);
	ll_governor_account(gov);
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
	struct pollfd pfd = {.fd = gov->wake_fd, .events = POLLIN};
	if (!gov->held_since_ns && is_resting(gov, ll_now_ns()))
		ll_pacer_rest(gov->pacer);
	if (poll(&pfd, 1, tick_ms(gov)) > 0) {
		uint64_t count;
		ssize_t n = read(gov->wake_fd, &count, sizeof count);
		(void)n;
	}
}

/* The account ends when the hold is told to, not when its context is closed. */
static void finish_governor(struct ll_governor *gov)
{
	uint64_t end_ns = ll_now_ns();
	ll_pacer_read_report(gov->pacer, &gov->report);
	ll_sense_read_energy(&gov->sense);
	ll_governor_account(gov);
	ll_summary_stop(&gov->summary, end_ns, false);
	bool has_closed = ll_pacer_free(gov->pacer, LL_PACER_CLOSE_WITHIN_NS);
	if (!has_closed && gov->code == 0) {
		gov->code = -EIO;
		ll_err_set(&gov->end_err, -EIO,
			   "card %s: the driver hung: the process with the context had to be killed",
			   gov->config.card->label);
	}
	struct ll_event event = ll_governor_event(gov, LL_EVENT_SUMMARY);
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

static struct ll_hold_policy_config policy_config(const struct ll_hold_config *hold)
{
	bool is_power = hold->metric == LL_METRIC_POWER;
	return (struct ll_hold_policy_config){
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
	struct ll_hold_policy_config policy = policy_config(hold);
	ll_hold_policy_init(&gov->policy, &policy);
	bool is_power = hold->metric == LL_METRIC_POWER;
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
	if (rc < 0) {
		destroy_governor(gov);
		return rc;
	}
	init_parts(gov);
	rc = start_pacer(gov, err);
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
	uint64_t one = 1;
	ssize_t n = write(governor->wake_fd, &one, sizeof one);
	(void)n;
}

bool ll_governor_free(struct ll_governor *governor, uint64_t deadline_ns)
{
	if (!governor)
		return true;
	if (!governor->has_thread)
		ll_pacer_free(governor->pacer, 0);
	/* Not pthread_clockjoin_np: ThreadSanitizer does not know it. */
	while (governor->has_thread && pthread_tryjoin_np(governor->thread, NULL) != 0) {
		if (ll_now_ns() >= deadline_ns)
			return false;
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	destroy_governor(governor);
	return true;
}
