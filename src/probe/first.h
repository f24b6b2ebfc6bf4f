/*
 * first.h - the classic first experiment: a kernel in which every thread writes its own number, launched with fewer
 * threads than there are numbers.
 *
 * Thread t of block b writes b * threads + t at that place. So the number of threads alone decides which numbers are
 * written: 2 blocks of 128 threads reach the first 256 of 512 numbers, however many threads the card could run. The
 * other numbers keep their value.
 */
#ifndef LOADLINE_PROBE_FIRST_H
#define LOADLINE_PROBE_FIRST_H

#include <stddef.h>
#include <stdint.h>

#include "driver/cards.h"

struct ll_err;

enum { LL_FIRST_NUMBERS = 512, LL_FIRST_BLOCKS = 2, LL_FIRST_THREADS = 128, LL_FIRST_UNTOUCHED = -1 };

struct ll_probe_first {
	uint32_t blocks, threads;
	int32_t numbers[LL_FIRST_NUMBERS]; /* after the launch; LL_FIRST_UNTOUCHED where nothing was written */
	int32_t enough[LL_FIRST_NUMBERS];  /* after a second launch with enough blocks for all numbers */
	uint32_t enough_blocks;
};

/* Runs the experiment in a context of its own, in this process, on a card that CUDA shows. -EIO, -EBUSY: err has the
 * driver's words. */
int ll_probe_first_run(const struct ll_card *card, struct ll_probe_first *ret_first, struct ll_err *err);

/* Return how many of the numbers were written, and whether these are the first ones, each with its own place in it.
 * Pure. */
size_t ll_probe_first_written(const int32_t numbers[LL_FIRST_NUMBERS]);
int ll_probe_first_is_in_order(const int32_t numbers[LL_FIRST_NUMBERS]);

#endif
