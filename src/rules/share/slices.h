/*
 * slices.h - computes which part of a time in which a program had work on a card was the program's own.
 *
 * If several contexts have work on a card, the card runs them in time slices, and each of them sees the whole time
 * pass. Each program then counts an equal part. Visits (visits.h) make that rare. It happens after a new program met a
 * long queue, and beside kernels that are longer than any program waits.
 *
 * One object per observer, for the last LL_SLICE_BINS bins of time. Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_SLICES_H
#define LOADLINE_RULES_SHARE_SLICES_H

#include <stdint.h>

enum { LL_SLICE_BINS = 64 };
#define LL_SLICE_BIN_NS UINT64_C(500000)

struct ll_slices {
	struct {
		uint64_t number;           /* the bin is number * LL_SLICE_BIN_NS */
		uint64_t told_ns, ours_ns; /* the noted part of the bin, and our part of that */
	} bins[LL_SLICE_BINS];
	uint64_t noted_ns;  /* time of the last note; 0: none */
	uint64_t others_ns; /* the others' part of all noted time */
};

/* Notes that since the last note this many other programs had work on the card. Time without a note counts as ours. */
void ll_slices_note(struct ll_slices *slices, uint64_t now_ns, unsigned others);

/* Returns how much of start..end was ours. */
uint64_t ll_slices_own_ns(const struct ll_slices *slices, uint64_t start_ns, uint64_t end_ns);

#endif
