#include "rules/hold/level.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

static double clamp_between(double value, double min, double max)
{
	return fmin(fmax(value, min), max);
}

/* ---- duty ---- */

void ll_duty_restart(struct ll_duty *duty, uint64_t now_ns)
{
	duty->credit_ns = 0;
	duty->last_ns = now_ns;
}

uint64_t ll_duty_next_ns(struct ll_duty *duty, uint64_t now_ns, double ratio, uint64_t longest_ns)
{
	if (now_ns > duty->last_ns) {
		duty->credit_ns += clamp_between(ratio, 0, 1) * (double)(now_ns - duty->last_ns);
		duty->last_ns = now_ns;
	}
	duty->credit_ns = clamp_between(duty->credit_ns, 0, (double)LL_DUTY_CREDIT_MAX_NS);
	if (duty->credit_ns < (double)LL_DUTY_KERNEL_MIN_NS)
		return 0;
	uint64_t length_ns = (uint64_t)clamp_between(duty->credit_ns, 0, (double)longest_ns);
	duty->credit_ns -= (double)length_ns;
	return length_ns;
}

void ll_duty_refund(struct ll_duty *duty, uint64_t unused_ns)
{
	duty->credit_ns = clamp_between(duty->credit_ns + (double)unused_ns, 0, (double)LL_DUTY_CREDIT_MAX_NS);
}

uint64_t ll_duty_fill_longest_ns(double ratio)
{
	return (uint64_t)clamp_between(1.5 * ratio * (double)LL_DUTY_FILL_PERIOD_NS, (double)LL_DUTY_KERNEL_MIN_NS,
				       (double)LL_DUTY_FILL_PERIOD_NS);
}

/* ---- past ---- */

/* Smaller changes of target and duty get no segment of their own. */
#define SAME_RATIO 0.0005

static struct ll_level_segment *segment_at(struct ll_level_past *past, uint32_t number)
{
	return &past->segments[number % LL_LEVEL_SEGMENTS];
}

/* Returns the newest segment; NULL: there is none. */
static struct ll_level_segment *newest_segment(struct ll_level_past *past)
{
	return past->count ? segment_at(past, past->count - 1) : NULL;
}

static void begin_segment(struct ll_level_past *past, const struct ll_level_segment *segment)
{
	struct ll_level_segment *last = newest_segment(past);
	if (last && last->is_holding == segment->is_holding && fabs(last->target - segment->target) < SAME_RATIO &&
	    fabs(last->command - segment->command) < SAME_RATIO)
		return;
	if (!last || segment->start_ns > last->start_ns) {
		*segment_at(past, past->count++) = *segment;
		return;
	}
	uint64_t start_ns = last->start_ns;
	*last = *segment;
	last->start_ns = start_ns;
}

struct look {
	double command; /* mean; 0 before the first order */
	double min_target;
	double max_target;
	bool is_holding;  /* throughout */
	bool is_complete; /* the history goes back so far */
};

/* Finds what was commanded in from..to. */
static struct look look_back(struct ll_level_past *past, uint64_t from_ns, uint64_t to_ns)
{
	struct look look = {.min_target = INFINITY, .max_target = -INFINITY, .is_holding = true};
	double area = 0.0;
	uint64_t until_ns = to_ns;
	uint32_t oldest = past->count > LL_LEVEL_SEGMENTS ? past->count - LL_LEVEL_SEGMENTS : 0;
	for (uint32_t i = past->count; i > oldest && until_ns > from_ns; i--) {
		const struct ll_level_segment *segment = segment_at(past, i - 1);
		if (segment->start_ns >= until_ns)
			continue;
		uint64_t since_ns = segment->start_ns > from_ns ? segment->start_ns : from_ns;
		area += segment->command * (double)(until_ns - since_ns);
		look.is_holding = look.is_holding && segment->is_holding;
		look.min_target = fmin(look.min_target, segment->target);
		look.max_target = fmax(look.max_target, segment->target);
		until_ns = since_ns;
	}
	look.command = area / (double)(to_ns - from_ns);
	look.is_complete = until_ns == from_ns;
	return look;
}

/* ---- util trim ---- */

/* Final weights of one sample. At rest the noise of the trim is sqrt(weight / 2) times the noise of the samples. */
#define BIAS_WEIGHT 0.03
#define OFFSET_WEIGHT 0.015
/* A new target may have a slightly different bias. So its average then counts as one of this many samples. */
#define COUNT_AFTER_STEP 4
/* If the target moves by more within a window and GUARD_NS around it, the reading mixes two levels. */
#define MIXED_RATIO 0.01
/* The kernels follow a new command within one period of the pacer, and NVML's window lies some ms from its stamp. */
#define GUARD_NS (20 * LL_NS_PER_MS)
#define DISTURBED_RATIO 0.06

double ll_util_trim_value(const struct ll_util_trim *trim)
{
	return clamp_between(trim->bias + trim->offset, -LL_UTIL_TRIM_MAX, LL_UTIL_TRIM_MAX);
}

double ll_util_trim_command(struct ll_util_trim *trim, uint64_t now_ns, double target)
{
	const struct ll_level_segment *last = newest_segment(&trim->past);
	if (last && last->is_holding && fabs(last->target - target) > MIXED_RATIO &&
	    trim->bias_count > COUNT_AFTER_STEP)
		trim->bias_count = COUNT_AFTER_STEP;
	struct ll_level_segment segment = {
	    .start_ns = now_ns,
	    .target = target,
	    .command = clamp_between(target + ll_util_trim_value(trim), 0.0, 1.0),
	    .is_holding = true,
	};
	begin_segment(&trim->past, &segment);
	return segment.command;
}

void ll_util_trim_pause(struct ll_util_trim *trim, uint64_t now_ns)
{
	begin_segment(&trim->past, &(struct ll_level_segment){.start_ns = now_ns});
}

static void add_to_mean(double *mean, uint32_t *count, double value, double final_weight)
{
	double weight = fmax(1.0 / (2.0 + *count), final_weight);
	*mean = clamp_between(*mean + weight * (value - *mean), -LL_UTIL_TRIM_MAX, LL_UTIL_TRIM_MAX);
	if (*count < UINT32_MAX)
		(*count)++;
}

enum ll_util_trim_use ll_util_trim_add(struct ll_util_trim *trim, const struct ll_util_trim_window *window)
{
	if (window->end_ns <= window->start_ns)
		return LL_UTIL_TRIM_NOT_HOLDING;
	uint64_t from_ns = window->start_ns > GUARD_NS ? window->start_ns - GUARD_NS : 0;
	struct look around = look_back(&trim->past, from_ns, window->end_ns + GUARD_NS);
	struct look held = look_back(&trim->past, window->start_ns, window->end_ns);
	if (!around.is_complete || !around.is_holding)
		return LL_UTIL_TRIM_NOT_HOLDING;
	if (around.max_target - around.min_target > MIXED_RATIO)
		return LL_UTIL_TRIM_MIXED;
	double reading = window->percent / 100.0;
	double own = isnan(window->own_busy_ratio) ? held.command - trim->bias : window->own_busy_ratio;
	if (window->is_disturbed || fabs(reading - own) > DISTURBED_RATIO)
		return LL_UTIL_TRIM_DISTURBED;
	if (!isnan(window->own_busy_ratio))
		add_to_mean(&trim->bias, &trim->bias_count, held.command - own, BIAS_WEIGHT);
	add_to_mean(&trim->offset, &trim->offset_count, own - reading, OFFSET_WEIGHT);
	return LL_UTIL_TRIM_USED;
}

/* ---- fill level ---- */

/* NVML's rounding, and the error of a window's place: equal work can differ by this much between two windows. */
#define AGREE_RATIO 0.03
/* Foreign work has changed if the newest windows are this far from the mean of those before. */
#define CHANGED_RATIO 0.05
/* Own kernels ran in a window. */
#define PRESENT_RATIO 0.002
/* The largest number of windows in the mean: 0.8 s. */
#define MEAN_WINDOWS 4
/* A change counts only after this many windows without a change. Otherwise it is taken for a program that works in
 * bursts. */
#define STEADY_WINDOWS 3
/* After a change only the newest window counts for this long, because the others also change with the own part. */
#define FOLLOW_NS (800 * LL_NS_PER_MS)
/* The most that the pacer may lose by itself. A larger loss goes to other programs, which cannot take more than their
 * part, or comes from a lack of processors. That can end suddenly, and the duty must not be too high then. */
#define OWN_LOSS_RATIO 0.05
/* The duty at which a program shows what it takes beside own kernels. */
#define PROBE_RATIO 0.01

static double mean_foreign(const struct ll_fill_level_reading *readings, uint32_t count)
{
	double sum = 0.0;
	for (uint32_t i = 0; i < count; i++)
		sum += readings[i].foreign_ratio;
	return sum / count;
}

/* The median, because a host that stands still for a moment delivers less in one window and more in the next. Of two
 * values in the middle the smaller: the second window may be that of the start. */
static double median_loss(const struct ll_fill_level_reading *readings, uint32_t count)
{
	double sorted[MEAN_WINDOWS] = {0};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;
		for (; at > 0 && sorted[at - 1] > readings[i].loss_ratio; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = readings[i].loss_ratio;
	}
	return sorted[(count - 1) / 2];
}

static bool has_own(const struct ll_fill_level_reading *reading)
{
	return reading->own_ratio > PRESENT_RATIO;
}

static bool is_steady(const struct ll_fill_level_reading *readings, uint32_t count, double mean)
{
	for (uint32_t i = 0; i < count; i++) {
		if (fabs(readings[i].foreign_ratio - mean) > CHANGED_RATIO)
			return false;
	}
	return true;
}

/* Whether the two newest windows show that a program has come or ended. The first of them may have seen only a part. */
static bool has_changed(const struct ll_fill_level *fill)
{
	if (fill->reading_count < STEADY_WINDOWS + 2)
		return false;
	const struct ll_fill_level_reading *newest = &fill->readings[fill->reading_count - 1];
	double before = mean_foreign(fill->readings, fill->reading_count - 2);
	double first = newest[-1].foreign_ratio - before;
	double second = newest->foreign_ratio - before;
	if (!is_steady(fill->readings, fill->reading_count - 2, before) || fabs(first) < CHANGED_RATIO ||
	    fabs(second) < fabs(first) - AGREE_RATIO || (first > 0.0) != (second > 0.0))
		return false;
	return first > 0.0 || (has_own(newest) && has_own(newest - 1));
}

/* Drops all readings but the newest `count`. */
static void keep_newest(struct ll_fill_level *fill, uint32_t count)
{
	memmove(fill->readings, fill->readings + fill->reading_count - count, count * sizeof *fill->readings);
	fill->reading_count = count;
}

static void drop_old(struct ll_fill_level *fill, uint64_t now_ns)
{
	const struct ll_fill_level_reading *newest = &fill->readings[fill->reading_count - 1];
	if (has_changed(fill)) {
		fill->follow_until_ns = now_ns + FOLLOW_NS;
		keep_newest(fill, 1);
	}
	bool is_doubtful =
	    fill->reading_count > 1 && !has_own(newest) && newest->foreign_ratio < newest[-1].foreign_ratio;
	if (now_ns <= fill->follow_until_ns && !is_doubtful)
		keep_newest(fill, 1);
}

void ll_fill_level_add(struct ll_fill_level *fill, const struct ll_fill_level_window *window)
{
	if (isnan(window->own_ratio) || isnan(window->level) || window->end_ns <= window->start_ns)
		return;
	if (fill->reading_count == LL_FILL_LEVEL_WINDOWS)
		keep_newest(fill, LL_FILL_LEVEL_WINDOWS - 1);
	fill->readings[fill->reading_count++] = (struct ll_fill_level_reading){
	    .foreign_ratio = window->level - window->own_ratio,
	    .own_ratio = window->own_ratio,
	    .loss_ratio = look_back(&fill->past, window->start_ns, window->end_ns).command - window->own_ratio,
	};
	drop_old(fill, window->end_ns);
}

/* Whether the target lies between what the others take without own kernels, and what they take beside them. */
static bool is_between(const struct ll_fill_level_reading *readings, uint32_t count, double target)
{
	const struct ll_fill_level_reading *beside = NULL;
	bool has_alone = false;
	for (uint32_t i = 0; i < count; i++) {
		if (has_own(&readings[i]))
			beside = &readings[i];
		else
			has_alone = true;
	}
	return has_alone && beside && beside->foreign_ratio >= target;
}

static double find_duty(const struct ll_fill_level *fill, double target)
{
	uint32_t count = fill->reading_count < MEAN_WINDOWS ? fill->reading_count : MEAN_WINDOWS;
	const struct ll_fill_level_reading *readings = fill->readings + fill->reading_count - count;
	if (count == 0)
		return 0.0;
	double foreign = mean_foreign(readings, count);
	double duty = target - foreign + fmin(median_loss(readings, count), fmax(foreign, 0.0) + OWN_LOSS_RATIO);
	if (is_between(readings, count, target))
		duty = fmin(duty, PROBE_RATIO);
	return clamp_between(duty, 0.0, 1.0);
}

double ll_fill_level_command(struct ll_fill_level *fill, uint64_t now_ns, double target)
{
	begin_segment(&fill->past, &(struct ll_level_segment){.start_ns = now_ns, .command = find_duty(fill, target)});
	return newest_segment(&fill->past)->command;
}

void ll_fill_level_pause(struct ll_fill_level *fill, uint64_t now_ns)
{
	begin_segment(&fill->past, &(struct ll_level_segment){.start_ns = now_ns});
}

/* ---- level loop ---- */

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
	if (loop->jumps_left == 0)
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

/* One step of the PI controller. */
static void step_controller(struct ll_level_loop *loop, double dt_s, double level)
{
	const struct ll_level_loop_config *config = &loop->config;
	double follow = config->lag_s > 0.0 ? 1.0 - exp(-dt_s / config->lag_s) : 1.0;
	loop->reference += follow * (loop->target - loop->reference);
	double error = (loop->reference - level) / (loop->gain * lambda_s(config));
	loop->integral = clamp_between(loop->integral + error * dt_s, 0.0, config->max_duty);
	loop->duty = clamp_between(loop->integral + error * config->lag_s, 0.0, config->max_duty);
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
