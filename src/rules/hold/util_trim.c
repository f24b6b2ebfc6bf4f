#include "rules/hold/util_trim.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

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
/* Smaller changes get no segment of their own. */
#define SAME_RATIO 0.0005

static double clamp_between(double value, double min, double max)
{
	return fmin(fmax(value, min), max);
}

void ll_util_trim_init(struct ll_util_trim *trim)
{
	memset(trim, 0, sizeof *trim);
}

double ll_util_trim_value(const struct ll_util_trim *trim)
{
	return clamp_between(trim->bias + trim->offset, -LL_UTIL_TRIM_MAX, LL_UTIL_TRIM_MAX);
}

static struct ll_util_trim_segment *segment_at(struct ll_util_trim *trim, uint32_t number)
{
	return &trim->segments[number % LL_UTIL_TRIM_SEGMENTS];
}

static void begin_segment(struct ll_util_trim *trim, const struct ll_util_trim_segment *segment)
{
	if (trim->segment_count > 0) {
		struct ll_util_trim_segment *last = segment_at(trim, trim->segment_count - 1);
		bool is_same = last->is_holding == segment->is_holding &&
			       fabs(last->target - segment->target) < SAME_RATIO &&
			       fabs(last->command - segment->command) < SAME_RATIO;
		if (is_same)
			return;
		if (last->is_holding && segment->is_holding && fabs(last->target - segment->target) > MIXED_RATIO &&
		    trim->bias_count > COUNT_AFTER_STEP)
			trim->bias_count = COUNT_AFTER_STEP;
		if (segment->start_ns <= last->start_ns) {
			uint64_t start_ns = last->start_ns;
			*last = *segment;
			last->start_ns = start_ns;
			return;
		}
	}
	*segment_at(trim, trim->segment_count++) = *segment;
}

double ll_util_trim_command(struct ll_util_trim *trim, uint64_t now_ns, double target)
{
	struct ll_util_trim_segment segment = {
	    .start_ns = now_ns,
	    .target = target,
	    .command = clamp_between(target + ll_util_trim_value(trim), 0.0, 1.0),
	    .is_holding = true,
	};
	begin_segment(trim, &segment);
	return segment.command;
}

void ll_util_trim_pause(struct ll_util_trim *trim, uint64_t now_ns)
{
	struct ll_util_trim_segment segment = {.start_ns = now_ns};
	begin_segment(trim, &segment);
}

struct past {
	double command; /* mean over the window */
	double min_target;
	double max_target;
	bool is_holding; /* throughout */
};

/* Finds what was commanded in from..to. False: the history does not go back so far. */
static bool look_back(struct ll_util_trim *trim, uint64_t from_ns, uint64_t to_ns, struct past *past)
{
	double area = 0.0;
	uint64_t until = to_ns;
	*past = (struct past){.min_target = INFINITY, .max_target = -INFINITY, .is_holding = true};
	uint32_t oldest = trim->segment_count > LL_UTIL_TRIM_SEGMENTS ? trim->segment_count - LL_UTIL_TRIM_SEGMENTS : 0;
	for (uint32_t i = trim->segment_count; i > oldest; i--) {
		const struct ll_util_trim_segment *segment = segment_at(trim, i - 1);
		if (segment->start_ns >= until)
			continue;
		uint64_t since = segment->start_ns > from_ns ? segment->start_ns : from_ns;
		area += segment->command * (double)(until - since);
		past->is_holding = past->is_holding && segment->is_holding;
		past->min_target = fmin(past->min_target, segment->target);
		past->max_target = fmax(past->max_target, segment->target);
		until = since;
		if (until == from_ns) {
			past->command = area / (double)(to_ns - from_ns);
			return true;
		}
	}
	return false;
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
	struct past around;
	struct past held;
	uint64_t from = window->start_ns > GUARD_NS ? window->start_ns - GUARD_NS : 0;
	if (window->end_ns <= window->start_ns || !look_back(trim, from, window->end_ns + GUARD_NS, &around) ||
	    !look_back(trim, window->start_ns, window->end_ns, &held) || !around.is_holding)
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
