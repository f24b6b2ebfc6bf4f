/*
 * spread.h - a figure that was measured many times: its median and how far it scatters.
 */
#ifndef LOADLINE_PROBE_SPREAD_H
#define LOADLINE_PROBE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed before first use. */
struct ll_samples {
	double *values;
	size_t count, capacity;
	bool failed; /* out of memory: some are missing */
};

void ll_samples_add(struct ll_samples *samples, double value);
void ll_samples_fini(struct ll_samples *samples);

struct ll_spread {
	size_t count; /* 0: nothing was measured, and the rest is 0 */
	double median;
	double low, high; /* the 5th and 95th percentile */
	double min, max;
};

/* Sorts the samples. Percentiles lie between the two nearest samples. */
struct ll_spread ll_spread_of(struct ll_samples *samples);

#endif
