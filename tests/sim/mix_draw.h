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

/* The mix of that number. One in five has weights. */
struct mix mix_draw(uint64_t seed, unsigned number);

/* The same with classes, and no weights. */
struct mix mix_draw_classes(uint64_t seed, unsigned number);

/* The same with caps; one program in five has none. */
struct mix mix_draw_caps(uint64_t seed, unsigned number);

/* One program of class high that answers short requests, which fill less than a tenth of the time, and one of class
 * low. */
struct mix mix_draw_sparse(uint64_t seed, unsigned number);

#endif
