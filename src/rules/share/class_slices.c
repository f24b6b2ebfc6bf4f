#include "rules/share/class_slices.h"

#include <math.h>

/* The slices are checked each time the higher class has worked for so long. */
#define CHECK_EACH_S 0.5
/* The part while the speed without the lower classes is unknown: both are measured soon. */
#define FIRST_PART 0.1
#define HALVING_PAYS 1.03
/* Of the speed that the jobs accept: below ENOUGH the slice is halved, above MUCH it is doubled. */
#define ENOUGH 0.97
#define MUCH 1.20
/* The part moves by this fraction towards the needed one at each check. */
#define STEP 0.25

/* Of all jobs with both speeds known, the one whose speed is least of what it accepts. */
struct worst {
	double open;   /* its speed beside the lower classes, of that without them */
	double accept; /* the same, as it accepts it */
};

static bool find_worst(const struct ll_lever_job *jobs, size_t count, struct worst *ret_worst)
{
	bool has_any = false;
	for (size_t i = 0; i < count; i++) {
		double open = ll_lever_open_speed(jobs[i].gauge);
		struct worst found = {.open = open, .accept = 1000.0 / jobs[i].slowdown_permille};
		if (open > 0 && (!has_any || open / found.accept < ret_worst->open / ret_worst->accept)) {
			*ret_worst = found;
			has_any = true;
		}
	}
	return has_any;
}

static void set_slice(struct ll_class_slices *slices, unsigned us, const struct ll_lever_job *jobs, size_t count)
{
	slices->slice_us = us;
	for (size_t i = 0; i < count; i++)
		jobs[i].gauge->launches[LL_LEVER_OPEN] = jobs[i].gauge->seconds[LL_LEVER_OPEN] = 0;
}

static double needed_part(const struct worst *worst)
{
	double part = worst->open < 1 ? (worst->accept - worst->open) / (1 - worst->open) : 0;
	return fmin(fmax(part, LL_LEVER_LEAST), LL_LEVER_MOST);
}

static void check_slice(struct ll_class_slices *slices, const struct ll_lever_job *jobs, size_t count,
			const struct worst *worst)
{
	double ratio = worst->open / worst->accept;
	bool was_trying = slices->is_trying;
	slices->is_trying = false;
	if (was_trying && worst->open < HALVING_PAYS * slices->open_before) {
		slices->least_us = 2 * slices->slice_us;
		set_slice(slices, slices->least_us, jobs, count);
		return;
	}
	bool is_least = slices->slice_us / 2 < slices->least_us;
	if (ratio < ENOUGH && !is_least) {
		slices->is_trying = true;
		slices->open_before = worst->open;
		slices->most_us = slices->slice_us / 2;
		set_slice(slices, slices->slice_us / 2, jobs, count);
		return;
	}
	if (ratio > MUCH && slices->part <= LL_LEVER_LEAST && 2 * slices->slice_us <= slices->most_us) {
		set_slice(slices, 2 * slices->slice_us, jobs, count);
		return;
	}
	double needed = needed_part(worst);
	slices->part = needed > LL_LEVER_LEAST ? slices->part + STEP * (needed - slices->part) : LL_LEVER_LEAST;
}

void ll_class_slices_step(struct ll_class_slices *slices, const struct ll_lever_job *jobs, size_t count,
			  uint64_t now_ns)
{
	struct worst worst = {0};
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
	if (slices->worked_s < CHECK_EACH_S || !find_worst(jobs, count, &worst))
		return;
	slices->worked_s = 0;
	check_slice(slices, jobs, count, &worst);
}
