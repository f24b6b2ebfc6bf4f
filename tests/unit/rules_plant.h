/*
 * rules_plant.h - what the tests of the rules share: repeatable noise and a comparison of numbers.
 */
#ifndef LOADLINE_TESTS_UNIT_RULES_PLANT_H
#define LOADLINE_TESTS_UNIT_RULES_PLANT_H

#include <math.h>
#include <stdint.h>

#include "test.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* xorshift64*: the same sequence for the same seed, everywhere. */
static inline double plant_uniform(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (double)((*seed * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

/* About normal, mean 0, deviation 1: a sum of twelve uniforms. */
static inline double plant_normal(uint64_t *seed)
{
	double sum = -6.0;
	for (int i = 0; i < 12; i++)
		sum += plant_uniform(seed);
	return sum;
}

static inline void assert_between_at(double value, double min, double max, const char *what, const char *file, int line)
{
	if (value >= min && value <= max)
		return;
	print_error("%s is %.6g, not within %.6g and %.6g\n", what, value, min, max);
	_fail(file, line);
}

#define assert_between(value, min, max) assert_between_at((value), (min), (max), #value, __FILE__, __LINE__)
#define assert_near(value, wanted, tolerance)                                                                          \
	assert_between_at((value), (wanted) - (tolerance), (wanted) + (tolerance), #value, __FILE__, __LINE__)

#endif
