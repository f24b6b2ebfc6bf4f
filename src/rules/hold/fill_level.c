#include "rules/hold/fill_level.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

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
/* Smaller changes of the duty get no segment of their own. */
#define SAME_RATIO 0.0005
/* After a change only the newest window counts for this long, because the others also change with the own part. */
#define FOLLOW_NS (800 * LL_NS_PER_MS)
/* The most that the pacer may lose by itself. A larger loss goes to other programs, which cannot take more than their
 * part, or comes from a lack of processors. That can end suddenly, and the duty must not be too high then. */
#define OWN_LOSS_RATIO 0.05
/* The duty at which a program shows what it takes beside own kernels. */
#define PROBE_RATIO 0.01

static double clamp_between(double value, double min, double max)
{
	return fmin(fmax(value, min), max);
}

void ll_fill_level_init(struct ll_fill_level *fill)
{
	memset(fill, 0, sizeof *fill);
}

static const struct ll_fill_level_segment *segment_at(const struct ll_fill_level *fill, uint32_t number)
{
	return &fill->segments[number % LL_FILL_LEVEL_SEGMENTS];
}

static void begin_segment(struct ll_fill_level *fill, uint64_t now_ns, double duty)
{
	if (fill->segment_count > 0 && fabs(segment_at(fill, fill->segment_count - 1)->duty - duty) < SAME_RATIO)
		return;
	fill->segments[fill->segment_count++ % LL_FILL_LEVEL_SEGMENTS] =
	    (struct ll_fill_level_segment){.start_ns = now_ns, .duty = duty};
}

/* Returns the mean duty that was ordered in from..to. Before the first order it was 0. */
static double mean_duty(const struct ll_fill_level *fill, uint64_t from_ns, uint64_t to_ns)
{
	double area = 0.0;
	uint64_t until_ns = to_ns;
	uint32_t oldest =
	    fill->segment_count > LL_FILL_LEVEL_SEGMENTS ? fill->segment_count - LL_FILL_LEVEL_SEGMENTS : 0;
	for (uint32_t i = fill->segment_count; i > oldest && until_ns > from_ns; i--) {
		const struct ll_fill_level_segment *segment = segment_at(fill, i - 1);
		if (segment->start_ns >= until_ns)
			continue;
		uint64_t since_ns = segment->start_ns > from_ns ? segment->start_ns : from_ns;
		area += segment->duty * (double)(until_ns - since_ns);
		until_ns = since_ns;
	}
	return area / (double)(to_ns - from_ns);
}

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
	    .loss_ratio = mean_duty(fill, window->start_ns, window->end_ns) - window->own_ratio,
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
	begin_segment(fill, now_ns, find_duty(fill, target));
	return segment_at(fill, fill->segment_count - 1)->duty;
}

void ll_fill_level_pause(struct ll_fill_level *fill, uint64_t now_ns)
{
	begin_segment(fill, now_ns, 0.0);
}
