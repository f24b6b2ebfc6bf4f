#include "rules/share/windows.h"

static double cap_of(const struct ll_windows_job *job)
{
	return job->cap_permille ? job->cap_permille / 1000.0 : 1;
}

/* The part of the card for a weight of 1 with which all is given that may be taken; 0: every job is at its cap. */
static double find_level(const struct ll_windows_job *jobs, size_t count)
{
	double level = 0, left = 1, weights = 0;
	/* Each round takes out the jobs that are at their caps by now. */
	for (size_t round = 0; round <= count; round++) {
		left = 1;
		weights = 0;
		for (size_t i = 0; i < count; i++) {
			double weight = jobs[i].weight_permille / 1000.0, cap = cap_of(&jobs[i]);
			if (jobs[i].is_windowed && round > 0 && cap <= level * weight)
				left -= cap;
			else
				weights += weight;
		}
		double next = weights > 0 ? left / weights : 0;
		if (round > 0 && next <= level)
			break;
		level = next;
		if (weights <= 0)
			return 0;
	}
	return level;
}

static double part_of(const struct ll_windows_job *job, double level)
{
	double cap = cap_of(job), part = level * job->weight_permille / 1000.0;
	return level > 0 && part < cap ? part : cap;
}

uint64_t ll_windows_divide(struct ll_windows_job *jobs, size_t count)
{
	double level = find_level(jobs, count), least = 1;
	size_t windows = 0, others = 0;
	for (size_t i = 0; i < count; i++) {
		if (!jobs[i].is_windowed) {
			others++;
			continue;
		}
		double part = part_of(&jobs[i], level);
		windows++;
		least = part < least ? part : least;
	}
	if (!windows)
		return 0;
	uint64_t period_ns = LL_WINDOWS_EACH_NS * (windows + (others > 0)), offset_ns = 0;
	if ((double)period_ns * least < (double)LL_WINDOWS_LEAST_NS)
		period_ns = (uint64_t)((double)LL_WINDOWS_LEAST_NS / least);
	period_ns = period_ns < LL_WINDOWS_PERIOD_MOST_NS ? period_ns : LL_WINDOWS_PERIOD_MOST_NS;
	for (size_t i = 0; i < count; i++) {
		if (!jobs[i].is_windowed)
			continue;
		jobs[i].offset_ns = offset_ns;
		jobs[i].length_ns = (uint64_t)(part_of(&jobs[i], level) * (double)period_ns);
		offset_ns += jobs[i].length_ns;
	}
	for (size_t i = 0; i < count; i++) {
		if (jobs[i].is_windowed)
			continue;
		jobs[i].offset_ns = offset_ns;
		jobs[i].length_ns = period_ns - offset_ns;
	}
	return period_ns;
}
