/*
 * mix_dice.h - random numbers of the mixes: the same for the same seed, on every machine.
 */
#ifndef LOADLINE_TESTS_MIX_DICE_H
#define LOADLINE_TESTS_MIX_DICE_H

#include <math.h>
#include <stdint.h>

static inline uint64_t dice_scramble(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

static inline uint64_t dice_next(uint64_t *dice)
{
	*dice += UINT64_C(0x9e3779b97f4a7c15);
	return dice_scramble(*dice);
}

/* From 0 to 1, without 1. */
static inline double dice_part(uint64_t *dice)
{
	return (double)(dice_next(dice) >> 11) / 9007199254740992.0;
}

/* As likely between 1 and 2 as between 2 and 4. */
static inline double dice_between(uint64_t *dice, double least, double most)
{
	return least * pow(most / least, dice_part(dice));
}

static inline unsigned dice_count(uint64_t *dice, unsigned least, unsigned most)
{
	return (unsigned)lrint(dice_between(dice, least, most));
}

static inline double dice_exponential(uint64_t *dice, double mean)
{
	return -mean * log(1 - dice_part(dice));
}

/* Of mean 0 and deviation 1. */
static inline double dice_normal(uint64_t *dice)
{
	return sqrt(dice_exponential(dice, 2)) * cos(6.283185307179586 * dice_part(dice));
}

#endif
