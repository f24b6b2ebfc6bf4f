#include "rules/hold/level_loop.h"

#include <math.h>

#include "base/clock.h"

/* The guessed gain may be wrong by this factor in both directions. */
#define GAIN_FACTOR 2.0
/*
 * Time constant of the closed loop, in intervals and in lags. A reading is late by about one interval, so the loop may
 * not correct faster. The meter's true lag may be half or twice the configured one.
 */
#define LAMBDA_INTERVALS 4.0
#define LAMBDA_LAGS 2.0
/* The part of a computed jump that is made at once. The loop does the rest. */
#define JUMP_PART 0.95
/* The number of jumps after a start or a step. */
#define JUMPS 2
#define DEFAULT_SATURATE_AFTER_NS (5 * LL_NS_PER_S)

static double clamp_between(double value, double min, double max)
{
	return fmin(fmax(value, min), max);
}

static double lambda_s(const struct ll_level_loop_config *config)
{
	return LAMBDA_INTERVALS * config->interval_s + LAMBDA_LAGS * config->lag_s;
}

struct ll_level_loop_config ll_level_loop_gpm_config(double gain, double interval_s)
{
	return (struct ll_level_loop_config){
	    .gain = gain,
	    .interval_s = interval_s,
	    .settle_s = interval_s,
	    .max_duty = 1.0,
	    .tolerance = 0.01,
	};
}

struct ll_level_loop_config ll_level_loop_power_config(double floor_w, double ceiling_w, double interval_s)
{
	return (struct ll_level_loop_config){
	    .gain = ceiling_w - floor_w,
	    .floor = floor_w,
	    .lag_s = 0.5,
	    .interval_s = interval_s,
	    .settle_s = 3.0,
	    .max_duty = 1.0,
	    .tolerance = 0.02 * ceiling_w,
	    .saturate_after_ns = 8 * LL_NS_PER_S,
	};
}

void ll_level_loop_init(struct ll_level_loop *loop, const struct ll_level_loop_config *config, double target)
{
	double gain = config->gain * GAIN_FACTOR;
	double duty = clamp_between((target - config->floor) / gain, 0.0, config->max_duty);
	if (config->max_slew_per_s > 0.0)
		duty = 0.0;
	*loop = (struct ll_level_loop){
	    .config = *config,
	    .target = target,
	    .reference = target,
	    .duty = duty,
	    .integral = duty,
	    .gain = gain,
	    .mean_level = NAN,
	    .state = LL_LEVEL_TRACKING,
	};
	if (loop->config.saturate_after_ns == 0)
		loop->config.saturate_after_ns = DEFAULT_SATURATE_AFTER_NS;
}

static void jump_duty(struct ll_level_loop *loop, double level_change)
{
	if (loop->config.max_slew_per_s > 0.0)
		return;
	double change = level_change / loop->gain;
	loop->integral = clamp_between(loop->integral + change, 0.0, loop->config.max_duty);
	loop->duty = clamp_between(loop->duty + change, 0.0, loop->config.max_duty);
}

/* Returns the level that the present duty leads to: the target, unless the duty cannot reach it. */
static double present_level(const struct ll_level_loop *loop)
{
	const struct ll_level_loop_config *config = &loop->config;
	if (loop->duty > 0.0 && loop->duty < config->max_duty)
		return loop->target;
	return isnan(loop->mean_level) ? config->floor + loop->gain * loop->duty : loop->mean_level;
}

double ll_level_loop_set_target(struct ll_level_loop *loop, double target)
{
	double change = target - present_level(loop);
	if (fabs(target - loop->target) > loop->config.tolerance) {
		loop->has_stepped = true;
		loop->limit_since_ns = 0;
		loop->state = LL_LEVEL_TRACKING;
	}
	loop->target = target;
	jump_duty(loop, change);
	return loop->duty;
}

/* Ignores readings for settle_s, because they still show the old duty. */
static void wait_for_meter(struct ll_level_loop *loop, uint64_t now_ns)
{
	loop->blind_until_ns = now_ns + (uint64_t)(loop->config.settle_s * (double)LL_NS_PER_S);
	loop->integral = loop->duty;
	loop->reference = loop->target;
	loop->last_ns = 0;
	loop->mean_level = NAN;
}

void ll_level_loop_resume(struct ll_level_loop *loop, uint64_t now_ns)
{
	wait_for_meter(loop, now_ns);
	loop->jumps_left = JUMPS;
	loop->has_stepped = false;
	loop->limit_since_ns = 0;
}

void ll_level_loop_rescale(struct ll_level_loop *loop, uint64_t now_ns, double factor)
{
	loop->config.gain *= factor;
	loop->gain *= factor;
	loop->duty = clamp_between(loop->duty / factor, 0.0, loop->config.max_duty);
	ll_level_loop_resume(loop, now_ns);
}

static void watch_limits(struct ll_level_loop *loop, uint64_t now_ns)
{
	const struct ll_level_loop_config *config = &loop->config;
	double missing = loop->target - loop->mean_level;
	enum ll_level_state pressed = LL_LEVEL_TRACKING;
	if (loop->duty >= config->max_duty - 1e-6 && missing > config->tolerance)
		pressed = LL_LEVEL_TARGET_TOO_HIGH;
	else if (loop->duty <= 1e-6 && missing < -config->tolerance)
		pressed = LL_LEVEL_TARGET_TOO_LOW;
	if (pressed == LL_LEVEL_TRACKING) {
		loop->limit_since_ns = 0;
		loop->state = LL_LEVEL_TRACKING;
		return;
	}
	if (loop->limit_since_ns == 0)
		loop->limit_since_ns = now_ns;
	if (now_ns - loop->limit_since_ns >= config->saturate_after_ns)
		loop->state = pressed;
}

/* Learns the gain from a level at rest, if the duty is large enough to divide by. */
static void learn_gain(struct ll_level_loop *loop, double level)
{
	const struct ll_level_loop_config *config = &loop->config;
	if (loop->duty < 0.05)
		return;
	loop->gain =
	    clamp_between((level - config->floor) / loop->duty, config->gain / GAIN_FACTOR, config->gain * GAIN_FACTOR);
	loop->has_learned = true;
}

/* Jumps most of the way at the first readings at rest. True: the duty jumped. */
static bool jump_to_target(struct ll_level_loop *loop, uint64_t now_ns, double level)
{
	if (loop->jumps_left == 0 || loop->config.max_slew_per_s > 0.0)
		return false;
	loop->jumps_left--;
	learn_gain(loop, level);
	double missing = loop->target - level;
	if (fabs(missing) <= loop->config.tolerance)
		return false;
	double before = loop->duty;
	jump_duty(loop, JUMP_PART * missing);
	if (fabs(loop->duty - before) < 1e-9)
		return false;
	wait_for_meter(loop, now_ns);
	return true;
}

static double limit_slew(const struct ll_level_loop *loop, double duty, double dt_s)
{
	if (loop->config.max_slew_per_s <= 0.0)
		return duty;
	double most = loop->config.max_slew_per_s * dt_s;
	return clamp_between(duty, loop->duty - most, loop->duty + most);
}

/* One step of the PI controller. */
static void step_controller(struct ll_level_loop *loop, double dt_s, double level)
{
	const struct ll_level_loop_config *config = &loop->config;
	double follow = config->lag_s > 0.0 ? 1.0 - exp(-dt_s / config->lag_s) : 1.0;
	loop->reference += follow * (loop->target - loop->reference);
	double error = (loop->reference - level) / (loop->gain * lambda_s(config));
	loop->integral = clamp_between(loop->integral + error * dt_s, 0.0, config->max_duty);
	double wanted = clamp_between(loop->integral + error * config->lag_s, 0.0, config->max_duty);
	double duty = limit_slew(loop, wanted, dt_s);
	loop->integral += duty - wanted;
	loop->duty = duty;
}

double ll_level_loop_update(struct ll_level_loop *loop, uint64_t now_ns, double level)
{
	const struct ll_level_loop_config *config = &loop->config;
	if (loop->has_stepped) {
		loop->has_stepped = false;
		loop->jumps_left = JUMPS;
		wait_for_meter(loop, now_ns);
	}
	if (isnan(level) || now_ns < loop->blind_until_ns || (loop->last_ns != 0 && now_ns <= loop->last_ns))
		return loop->duty;
	if (jump_to_target(loop, now_ns, level))
		return loop->duty;
	double dt_s = config->interval_s;
	if (loop->last_ns != 0)
		dt_s = fmin((double)(now_ns - loop->last_ns) / (double)LL_NS_PER_S, 5.0 * config->interval_s);
	loop->last_ns = now_ns;
	step_controller(loop, dt_s, level);
	double weight = isnan(loop->mean_level) ? 1.0 : fmin(1.0, dt_s / lambda_s(config));
	loop->mean_level = isnan(loop->mean_level) ? level : loop->mean_level + weight * (level - loop->mean_level);
	watch_limits(loop, now_ns);
	return loop->duty;
}

enum ll_level_state ll_level_loop_state(const struct ll_level_loop *loop, double *ret_reach)
{
	if (loop->state != LL_LEVEL_TRACKING && ret_reach)
		*ret_reach = loop->mean_level;
	return loop->state;
}
