#include "rules/share/class_slices.h"

#include <math.h>

/* The slices are checked each time the higher class has worked for so long. */
#define CHECK_EACH_S 0.5
/* The part while the speed without the lower classes is unknown: both are measured soon. */
#define FIRST_PART 0.1
/* A change from one context to another takes so long (doc/facts.md). */
#define CHANGE_US 200.0
/* If less than this is left to the lower classes of what was left, the slices are searched again. */
#define MUCH_LESS 0.7
/* The part moves by this fraction towards the needed one at each check. */
#define STEP 0.25

/* Returns the largest part that a job of the higher class needs; negative: no job's speeds are known. */
static double needed_part(const struct ll_lever_job *jobs, size_t count)
{
	double needed = -1;
	for (size_t i = 0; i < count; i++) {
		double open = ll_lever_open_speed(jobs[i].gauge);
		double accept = 1000.0 / jobs[i].slowdown_permille + ll_lever_loss(jobs[i].gauge);
		if (open <= 0)
			continue;
		double part = open < 1 ? (accept - open) / (1 - open) : 0;
		needed = fmax(needed, fmin(fmax(part, LL_LEVER_LEAST), LL_LEVER_MOST));
	}
	return needed;
}

static void set_slice(struct ll_class_slices *slices, unsigned us, const struct ll_lever_job *jobs, size_t count)
{
	slices->slice_us = us;
	for (size_t i = 0; i < count; i++)
		ll_lever_forget_open(jobs[i].gauge);
}

static void try_slice(struct ll_class_slices *slices, unsigned us, const struct ll_lever_job *jobs, size_t count)
{
	slices->tried_from_us = slices->slice_us;
	set_slice(slices, us, jobs, count);
}

/* Returns whether the slice stays that was tried. */
static bool keep_tried(struct ll_class_slices *slices, double left)
{
	unsigned from_us = slices->tried_from_us;
	slices->tried_from_us = 0;
	if (left > slices->left)
		return true;
	if (from_us > slices->slice_us)
		slices->least_us = from_us;
	else
		slices->most_us = from_us;
	return false;
}

static void check_slice(struct ll_class_slices *slices, const struct ll_lever_job *jobs, size_t count, double needed)
{
	double left = (1 - needed) * slices->slice_us / (slices->slice_us + CHANGE_US);
	unsigned from_us = slices->tried_from_us;
	if (from_us && !keep_tried(slices, left)) {
		set_slice(slices, from_us, jobs, count);
		return;
	}
	if (left < MUCH_LESS * slices->most_left) {
		slices->least_us = LL_CLASS_SLICE_LEAST_US;
		slices->most_us = LL_CLASS_SLICE_MOST_US;
		slices->most_left = left;
	}
	slices->most_left = fmax(slices->most_left, left);
	slices->part = needed > LL_LEVER_LEAST ? slices->part + STEP * (needed - slices->part) : LL_LEVER_LEAST;
	slices->left = left;
	if (2 * slices->slice_us <= slices->most_us)
		try_slice(slices, 2 * slices->slice_us, jobs, count);
	else if (slices->slice_us / 2 >= slices->least_us)
		try_slice(slices, slices->slice_us / 2, jobs, count);
}

void ll_class_slices_step(struct ll_class_slices *slices, const struct ll_lever_job *jobs, size_t count,
			  uint64_t now_ns)
{
	bool has_work = false;
	for (size_t i = 0; i < count; i++)
		has_work |= jobs[i].has_work;
	if (!slices->slice_us)
		*slices = (struct ll_class_slices){.slice_us = LL_CLASS_SLICE_US,
						   .part = FIRST_PART,
						   .least_us = LL_CLASS_SLICE_LEAST_US,
						   .most_us = LL_CLASS_SLICE_MOST_US};
	slices->worked_s += slices->had_work ? (double)(now_ns - slices->stepped_ns) / 1e9 : 0;
	slices->stepped_ns = now_ns;
	slices->had_work = has_work;
	double needed = slices->worked_s < CHECK_EACH_S ? -1 : needed_part(jobs, count);
	if (needed < 0)
		return;
	slices->worked_s = 0;
	check_slice(slices, jobs, count, needed);
}
