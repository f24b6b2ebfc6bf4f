/*
 * shortest.h - the shortest samples of kernels, for the accounts.
 *
 * Beside other programs' time slices a sample is too long: by slices of the others, and by the switch at its begin
 * (0.15 ms, doc/facts.md). Samples that were taken while the others paused have neither. The second shortest of all
 * samples is such a one as a rule. A kernel whose duration depends on its data is then counted too short.
 *
 * A small table: of two kernels with the same place the later one has it. Pure arithmetic.
 */
#ifndef LOADLINE_SHIM_TIME_SHORTEST_H
#define LOADLINE_SHIM_TIME_SHORTEST_H

#include <stdint.h>

enum { LL_SHORTEST_KERNELS = 256 };

/* Starts zeroed. */
struct ll_shortest {
	struct {
		uint64_t key;
		uint64_t least_ns, next_ns; /* 0: there are no so many samples yet */
	} kernels[LL_SHORTEST_KERNELS];
};

/* Notes how long one launch of the kernel took. key: as in kernel_estimates.h, not 0. */
void ll_shortest_note(struct ll_shortest *shortest, uint64_t key, uint64_t ns);

/* Returns the second shortest sample; 0: there are less than two. */
uint64_t ll_shortest_ns(const struct ll_shortest *shortest, uint64_t key);

#endif
