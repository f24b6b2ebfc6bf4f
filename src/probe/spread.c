#include "probe/spread.h"

#include <stdlib.h>

void ll_samples_add(struct ll_samples *samples, double value)
{
	if (samples->count == samples->capacity) {
		size_t capacity = samples->capacity ? 2 * samples->capacity : 64;
		double *values = realloc(samples->values, capacity * sizeof *values);
		if (!values) {
			samples->failed = true;
			return;
		}
		samples->values = values;
		samples->capacity = capacity;
	}
	samples->values[samples->count++] = value;
}

void ll_samples_fini(struct ll_samples *samples)
{
	free(samples->values);
	*samples = (struct ll_samples){0};
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double percentile_of(const struct ll_samples *samples, double share)
{
	double at = share * (double)(samples->count - 1);
	size_t below = (size_t)at;
	if (below + 1 >= samples->count)
		return samples->values[samples->count - 1];
	double part = at - (double)below;
	return samples->values[below] * (1 - part) + samples->values[below + 1] * part;
}

struct ll_spread ll_spread_of(struct ll_samples *samples)
{
	struct ll_spread spread = {.count = samples->count};
	if (!samples->count)
		return spread;
	qsort(samples->values, samples->count, sizeof *samples->values, compare_values);
	spread.median = percentile_of(samples, 0.5);
	spread.low = percentile_of(samples, 0.05);
	spread.high = percentile_of(samples, 0.95);
	spread.min = samples->values[0];
	spread.max = samples->values[samples->count - 1];
	return spread;
}
