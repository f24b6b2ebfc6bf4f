/*
 * spread.h - median and scatter of a value that was measured many times. Pure.
 */
#ifndef LOADLINE_PROBE_SPREAD_H
#define LOADLINE_PROBE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed before first use. */
struct ll_samples {
	double *values;
	size_t count, capacity;
	bool failed; /* memory ran out, and some values are missing */
};

/* Adds a value. */
void ll_samples_add(struct ll_samples *samples, double value);
/* Frees the values. */
void ll_samples_fini(struct ll_samples *samples);

struct ll_spread {
	size_t count; /* 0: nothing was measured, and all other fields are 0 */
	double median;
	double low, high; /* the 5th and 95th percentile */
	double min, max;
};

/* Sorts the samples and returns their spread. Percentiles are interpolated between the two nearest samples. */
struct ll_spread ll_spread_of(struct ll_samples *samples);

#endif
