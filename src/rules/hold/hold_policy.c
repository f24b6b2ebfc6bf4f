#include "rules/hold/hold_policy.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/translate.h"

#define DEFAULT_BLIND_AFTER_NS (5 * LL_NS_PER_S)
#define DEFAULT_BACK_OFF_NS (30 * LL_NS_PER_S)
#define DEFAULT_GAP_NS (5 * LL_NS_PER_S)
#define DEFAULT_HYSTERESIS_C 5.0

static const char *const reason_texts[] = {
    [LL_HOLD_REASON_START] = N_("just started"),
    [LL_HOLD_REASON_QUIET] = N_("no foreign work"),
    [LL_HOLD_REASON_FOREIGN] = N_("foreign work"),
    [LL_HOLD_REASON_BLIND] = N_("no sensor of foreign work answers"),
    [LL_HOLD_REASON_TOO_HOT] = N_("too hot"),
    [LL_HOLD_REASON_SLOWDOWN] = N_("the card slows itself down"),
    [LL_HOLD_REASON_LOST] = N_("the context is lost"),
    [LL_HOLD_REASON_OPEN_FAILED] = N_("no context could be made"),
    [LL_HOLD_REASON_LONG_YIELD] = N_("yielded for long"),
    [LL_HOLD_REASON_REQUEST] = N_("told to end"),
};

static const char *const sensor_names[] = {
    [LL_SENSOR_NONE] = "none",         [LL_SENSOR_LATE] = "late",       [LL_SENSOR_GAP] = "gap",
    [LL_SENSOR_GOVERNED] = "governed", [LL_SENSOR_PROCESS] = "process", [LL_SENSOR_MEMORY] = "memory",
    [LL_SENSOR_UTIL] = "util",
};

static const char *const state_names[] = {
    [LL_HOLD_RELEASED] = N_("released"), [LL_HOLD_OPENING] = N_("opening"), [LL_HOLD_YIELDED] = N_("yielded"),
    [LL_HOLD_HOLDING] = N_("holding"),   [LL_HOLD_ENDED] = N_("ended"),
};

const char *ll_hold_reason_text(enum ll_hold_reason reason)
{
	return reason_texts[reason];
}

const char *ll_hold_sensor_name(enum ll_hold_sensor sensor)
{
	return sensor_names[sensor];
}

const char *ll_hold_state_name(enum ll_hold_state state)
{
	return state_names[state];
}

static uint64_t or_default(uint64_t value_ns, uint64_t default_ns)
{
	return value_ns > 0 ? value_ns : default_ns;
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A duration may be "for ever", so the sum saturates. */
static uint64_t add_duration(uint64_t instant_ns, uint64_t duration_ns)
{
	return duration_ns > UINT64_MAX - instant_ns ? UINT64_MAX : instant_ns + duration_ns;
}

void ll_hold_policy_init(struct ll_hold_policy *policy, const struct ll_hold_policy_config *config)
{
	*policy = (struct ll_hold_policy){
	    .config = *config, .state = LL_HOLD_RELEASED, .reason = LL_HOLD_REASON_START, .sensor = LL_SENSOR_NONE};
	struct ll_hold_policy_config *own = &policy->config;
	own->blind_after_ns = or_default(own->blind_after_ns, DEFAULT_BLIND_AFTER_NS);
	own->back_off_ns = or_default(own->back_off_ns, DEFAULT_BACK_OFF_NS);
	own->gap_ns = or_default(own->gap_ns, DEFAULT_GAP_NS);
	if (own->hysteresis_c <= 0.0)
		own->hysteresis_c = DEFAULT_HYSTERESIS_C;
}

static void restart_timers(struct ll_hold_policy *policy, uint64_t now_ns)
{
	policy->begin_ns = now_ns;
	policy->readings_ns = now_ns;
	policy->has_readings = false;
	policy->stopped_ns = now_ns;
	if (policy->quiet_since_ns != 0)
		policy->quiet_since_ns = now_ns;
	if (policy->has_trouble)
		policy->trouble_ns = now_ns;
}

/* Readings come late, and rarely while stopped. So only time up to looked_until_ns counts as quiet. */
static bool has_been_quiet(const struct ll_hold_input *input, uint64_t now_ns, uint64_t since_ns, uint64_t for_ns)
{
	uint64_t until_ns = input->looked_until_ns > 0 ? min_ns(input->looked_until_ns, now_ns) : now_ns;
	return until_ns >= since_ns && until_ns - since_ns >= for_ns;
}

/* True: foreign work was seen since the last tick. */
static bool take_foreign(struct ll_hold_policy *policy, const struct ll_hold_input *input, uint64_t now_ns)
{
	uint64_t seen_ns = min_ns(input->foreign_seen_ns, now_ns);
	if (seen_ns <= policy->foreign_ns)
		return false;
	policy->foreign_ns = seen_ns;
	policy->quiet_since_ns = max_ns(policy->quiet_since_ns, seen_ns);
	policy->sensor = input->foreign_sensor;
	return true;
}

/* A reading from before a sleep does not count. One from before the first tick does. */
static void take_readings(struct ll_hold_policy *policy, const struct ll_hold_input *input, bool is_first,
			  uint64_t now_ns)
{
	uint64_t seen_ns = min_ns(input->readings_seen_ns, now_ns);
	if (seen_ns == 0 || (!is_first && seen_ns < policy->readings_ns))
		return;
	policy->readings_ns = seen_ns;
	policy->has_readings = true;
}

static void take_trouble(struct ll_hold_policy *policy, const struct ll_hold_input *input, uint64_t now_ns)
{
	const struct ll_hold_policy_config *config = &policy->config;
	if (config->max_temperature_c > 0.0 && !isnan(input->temperature_c)) {
		if (input->temperature_c >= config->max_temperature_c)
			policy->is_hot = true;
		else if (input->temperature_c <= config->max_temperature_c - config->hysteresis_c)
			policy->is_hot = false;
	}
	if (policy->is_hot || input->is_slowdown) {
		policy->has_trouble = true;
		policy->trouble = policy->is_hot ? LL_HOLD_REASON_TOO_HOT : LL_HOLD_REASON_SLOWDOWN;
		policy->trouble_ns = now_ns;
	} else if (policy->has_trouble && now_ns - policy->trouble_ns >= config->back_off_ns) {
		policy->has_trouble = false;
	}
}

static bool has_sight(const struct ll_hold_policy *policy, uint64_t now_ns)
{
	const struct ll_hold_policy_config *config = &policy->config;
	if (config->mode == LL_HOLD_MODE_IGNORE)
		return true;
	if (config->mode == LL_HOLD_MODE_YIELD && config->has_kernel_sensor)
		return true;
	bool is_blind = now_ns - policy->readings_ns > config->blind_after_ns;
	/* A load that holds may go on without readings for a while. One that does not hold may not start. */
	return !is_blind && (policy->has_readings || policy->state == LL_HOLD_HOLDING);
}

/* Returns what forbids kernels now; LL_HOLD_REASON_QUIET: nothing. */
static enum ll_hold_reason find_obstacle(const struct ll_hold_policy *policy, uint64_t now_ns)
{
	if (policy->has_trouble)
		return policy->trouble;
	if (policy->config.mode == LL_HOLD_MODE_YIELD && policy->quiet_since_ns != 0)
		return LL_HOLD_REASON_FOREIGN;
	if (!has_sight(policy, now_ns))
		return LL_HOLD_REASON_BLIND;
	return LL_HOLD_REASON_QUIET;
}

static enum ll_hold_action move_to(struct ll_hold_policy *policy, enum ll_hold_state state, enum ll_hold_reason reason,
				   enum ll_hold_action action)
{
	policy->state = state;
	policy->reason = reason;
	return action;
}

static enum ll_hold_action tick_ended(struct ll_hold_policy *policy, bool is_open)
{
	if (!is_open || policy->has_closed)
		return LL_HOLD_ACT_NONE;
	policy->has_closed = true;
	return LL_HOLD_ACT_RELEASE;
}

static enum ll_hold_action end_hold(struct ll_hold_policy *policy, bool is_open)
{
	bool was_holding = policy->state == LL_HOLD_HOLDING;
	move_to(policy, LL_HOLD_ENDED, LL_HOLD_REASON_REQUEST, LL_HOLD_ACT_NONE);
	return was_holding ? LL_HOLD_ACT_STOP : tick_ended(policy, is_open);
}

/* A bystander is tried at once only one time in back_off: if it fails more often, it may be the cause. */
static uint64_t next_try_ns(struct ll_hold_policy *policy, bool is_bystander, uint64_t now_ns)
{
	uint64_t back_off_ns = policy->config.back_off_ns;
	if (!is_bystander || (policy->at_once_ns != 0 && now_ns - policy->at_once_ns < back_off_ns))
		return add_duration(now_ns, back_off_ns);
	policy->at_once_ns = now_ns;
	return now_ns;
}

static enum ll_hold_action release_lost(struct ll_hold_policy *policy, bool is_bystander, uint64_t now_ns)
{
	policy->retry_ns = next_try_ns(policy, is_bystander, now_ns);
	return move_to(policy, LL_HOLD_RELEASED, LL_HOLD_REASON_LOST, LL_HOLD_ACT_RELEASE);
}

static enum ll_hold_action tick_released(struct ll_hold_policy *policy, enum ll_hold_reason obstacle, uint64_t now_ns)
{
	if (obstacle == LL_HOLD_REASON_QUIET && now_ns >= policy->retry_ns)
		return move_to(policy, LL_HOLD_OPENING, LL_HOLD_REASON_QUIET, LL_HOLD_ACT_REOPEN);
	bool keeps_reason = policy->reason == LL_HOLD_REASON_LONG_YIELD || policy->reason == LL_HOLD_REASON_LOST ||
			    policy->reason == LL_HOLD_REASON_OPEN_FAILED;
	if (!keeps_reason)
		policy->reason = obstacle;
	return LL_HOLD_ACT_NONE;
}

static enum ll_hold_action tick_opening(struct ll_hold_policy *policy, const struct ll_hold_input *input,
					enum ll_hold_reason obstacle, uint64_t now_ns)
{
	if (input->has_open_failed) {
		policy->retry_ns = next_try_ns(policy, input->is_bystander, now_ns);
		return move_to(policy, LL_HOLD_RELEASED, LL_HOLD_REASON_OPEN_FAILED, LL_HOLD_ACT_NONE);
	}
	if (!input->is_open)
		return LL_HOLD_ACT_NONE;
	if (obstacle == LL_HOLD_REASON_QUIET)
		return move_to(policy, LL_HOLD_HOLDING, LL_HOLD_REASON_QUIET, LL_HOLD_ACT_START);
	policy->stopped_ns = now_ns;
	return move_to(policy, LL_HOLD_YIELDED, obstacle, LL_HOLD_ACT_NONE);
}

static enum ll_hold_action tick_yielded(struct ll_hold_policy *policy, const struct ll_hold_input *input,
					enum ll_hold_reason obstacle, uint64_t now_ns)
{
	if (!input->is_open)
		return release_lost(policy, input->is_bystander, now_ns);
	if (obstacle == LL_HOLD_REASON_QUIET)
		return move_to(policy, LL_HOLD_HOLDING, LL_HOLD_REASON_QUIET, LL_HOLD_ACT_START);
	policy->reason = obstacle;
	uint64_t release_after_ns = policy->config.release_after_ns;
	if (release_after_ns > 0 && now_ns - policy->stopped_ns >= release_after_ns)
		return move_to(policy, LL_HOLD_RELEASED, LL_HOLD_REASON_LONG_YIELD, LL_HOLD_ACT_RELEASE);
	return LL_HOLD_ACT_NONE;
}

static enum ll_hold_action tick_holding(struct ll_hold_policy *policy, const struct ll_hold_input *input,
					enum ll_hold_reason obstacle, uint64_t now_ns)
{
	if (!input->is_open)
		return release_lost(policy, input->is_bystander, now_ns);
	if (obstacle == LL_HOLD_REASON_QUIET)
		return LL_HOLD_ACT_NONE;
	policy->stopped_ns = now_ns;
	return move_to(policy, LL_HOLD_YIELDED, obstacle, LL_HOLD_ACT_STOP);
}

static enum ll_hold_action decide_action(struct ll_hold_policy *policy, const struct ll_hold_input *input,
					 uint64_t now_ns)
{
	if (policy->state == LL_HOLD_ENDED)
		return tick_ended(policy, input->is_open);
	if (input->is_end_requested)
		return end_hold(policy, input->is_open);
	enum ll_hold_reason obstacle = find_obstacle(policy, now_ns);
	switch (policy->state) {
	case LL_HOLD_RELEASED:
		return tick_released(policy, obstacle, now_ns);
	case LL_HOLD_OPENING:
		return tick_opening(policy, input, obstacle, now_ns);
	case LL_HOLD_YIELDED:
		return tick_yielded(policy, input, obstacle, now_ns);
	default:
		return tick_holding(policy, input, obstacle, now_ns);
	}
}

/* Returns since when the card is idle: since the timers started, or since foreign work was last seen. */
static uint64_t idle_since(const struct ll_hold_policy *policy)
{
	return max_ns(policy->begin_ns, policy->foreign_ns);
}

static uint64_t find_next(const struct ll_hold_policy *policy, uint64_t now_ns)
{
	const struct ll_hold_policy_config *config = &policy->config;
	uint64_t timers[] = {
	    policy->quiet_since_ns != 0 ? add_duration(policy->quiet_since_ns, config->resume_after_ns) : 0,
	    policy->has_trouble ? add_duration(policy->trouble_ns, config->back_off_ns) : 0,
	    policy->retry_ns,
	    add_duration(policy->readings_ns, config->blind_after_ns + 1),
	    config->has_idle_target ? add_duration(idle_since(policy), config->idle_after_ns) : 0,
	    policy->state == LL_HOLD_YIELDED && config->release_after_ns > 0
		? add_duration(policy->stopped_ns, config->release_after_ns)
		: 0,
	};
	uint64_t next_ns = add_duration(now_ns, config->gap_ns / 2);
	for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
		if (timers[i] > now_ns)
			next_ns = min_ns(next_ns, timers[i]);
	}
	return next_ns;
}

void ll_hold_policy_tick(struct ll_hold_policy *policy, const struct ll_hold_input *input,
			 struct ll_hold_verdict *ret_verdict)
{
	const struct ll_hold_policy_config *config = &policy->config;
	uint64_t now_ns = max_ns(input->now_ns, policy->last_ns);
	bool has_slept = input->has_slept || now_ns - policy->last_ns > config->gap_ns;
	bool is_first = !policy->has_ticked;
	if (is_first || has_slept)
		restart_timers(policy, now_ns);
	policy->has_ticked = true;
	policy->last_ns = now_ns;
	bool is_foreign_new = take_foreign(policy, input, now_ns);
	if (!is_foreign_new && policy->quiet_since_ns != 0 &&
	    has_been_quiet(input, now_ns, policy->quiet_since_ns, config->resume_after_ns))
		policy->quiet_since_ns = 0;
	take_readings(policy, input, is_first, now_ns);
	take_trouble(policy, input, now_ns);
	enum ll_hold_action action = decide_action(policy, input, now_ns);
	bool is_idle =
	    config->has_idle_target && has_been_quiet(input, now_ns, idle_since(policy), config->idle_after_ns);
	*ret_verdict = (struct ll_hold_verdict){
	    .action = action,
	    .state = policy->state,
	    .reason = policy->reason,
	    .sensor = policy->reason == LL_HOLD_REASON_FOREIGN ? policy->sensor : LL_SENSOR_NONE,
	    .is_idle_target = is_idle,
	    .target = is_idle ? config->idle_target : config->target,
	    .next_ns = find_next(policy, now_ns),
	};
}
