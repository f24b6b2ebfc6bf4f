/*
 * mix_draw.h - draws mixes of programs from a seed: kinds that people run, with their sizes at random.
 */
#ifndef LOADLINE_TESTS_MIX_DRAW_H
#define LOADLINE_TESTS_MIX_DRAW_H

#include "mix_arbiter.h"

struct mix {
	unsigned count;
	struct mix_kind kinds[MIX_MOST];
};

/* The mix of that number. */
struct mix mix_draw(uint64_t seed, unsigned number);

#endif
