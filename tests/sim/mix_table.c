#include "mix_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void mix_print_kind(const struct mix_kind *kind, const struct mix_alone *alone)
{
	static const char *const classes[] = {"", ", high", ", normal", ", low"};
	printf("    %-8s %4u x %7.1f us, call %4.1f, pause %7.1f, think %5.1f ms, copy %5.1f us, streams %u, "
	       "ahead %2u, weight %.1f%s: alone %8.1f/s",
	       kind->name, kind->launches, kind->kernel_ns / 1e3, kind->call_ns / 1e3, kind->pause_ns / 1e3,
	       kind->think_ns / 1e6, kind->copy_ns / 1e3, kind->streams, kind->ahead, kind->weight_permille / 1e3,
	       classes[kind->rank], alone->rate);
	if (kind->cap_permille)
		printf(", cap %.0f %%", kind->cap_permille / 10.0);
}

static int compare_doubles(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return (first > second) - (first < second);
}

double mix_quantile(double *values, unsigned count, double part)
{
	if (!count)
		return NAN;
	unsigned at = (unsigned)(count * part);
	qsort(values, count, sizeof values[0], compare_doubles);
	return values[at < count ? at : count - 1];
}
