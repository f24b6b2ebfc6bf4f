/*
 * slices.h - what part of the time in which somebody's work was on a card was really its own.
 *
 * Where work of several contexts is on a card at once, the card runs them in slices by itself, and each of them sees
 * the whole time pass. Turns (turns.h) keep that rare: it is so after a newcomer met a long queue, and beside kernels
 * that are longer than anybody waits. Then each has an equal part, as far as is known, and that is what counts.
 *
 * One object per observer, for the last LL_SLICE_BINS bins of time. Pure arithmetic.
 */
#ifndef LOADLINE_CONTROL_SLICES_H
#define LOADLINE_CONTROL_SLICES_H

#include <stdint.h>

enum { LL_SLICE_BINS = 64 };
#define LL_SLICE_BIN_NS UINT64_C(500000)

struct ll_slices {
	struct {
		uint64_t number;
		uint64_t told_ns, ours_ns;
	} bins[LL_SLICE_BINS];
	uint64_t noted_ns;  /* up to when it is told; 0: never */
	uint64_t others_ns; /* all that was told to be others' */
};

/* Since the last note so many others had work on the card, besides ours. Time that nobody notes is taken to be ours. */
void ll_slices_note(struct ll_slices *slices, uint64_t now_ns, unsigned others);

/* How much of start..end was ours. */
uint64_t ll_slices_own_ns(const struct ll_slices *slices, uint64_t start_ns, uint64_t end_ns);

#endif
