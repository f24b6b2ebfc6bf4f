#include "rules/share/slices.h"

#define REACH_NS (LL_SLICE_BINS * LL_SLICE_BIN_NS)

static uint64_t bin_end_ns(uint64_t at_ns, uint64_t end_ns)
{
	uint64_t next_ns = (at_ns / LL_SLICE_BIN_NS + 1) * LL_SLICE_BIN_NS;
	return next_ns < end_ns ? next_ns : end_ns;
}

static void note_in_bin(struct ll_slices *slices, uint64_t at_ns, uint64_t ns, unsigned others)
{
	uint64_t number = at_ns / LL_SLICE_BIN_NS;
	unsigned index = number % LL_SLICE_BINS;
	if (slices->bins[index].number != number) {
		slices->bins[index].number = number;
		slices->bins[index].told_ns = slices->bins[index].ours_ns = 0;
	}
	slices->bins[index].told_ns += ns;
	slices->bins[index].ours_ns += ns / (1 + others);
	slices->others_ns += ns - ns / (1 + others);
}

void ll_slices_note(struct ll_slices *slices, uint64_t now_ns, unsigned others)
{
	uint64_t from_ns = slices->noted_ns;
	slices->noted_ns = now_ns;
	if (!from_ns || now_ns <= from_ns || now_ns - from_ns > REACH_NS)
		return;
	while (from_ns < now_ns) {
		uint64_t until_ns = bin_end_ns(from_ns, now_ns);
		note_in_bin(slices, from_ns, until_ns - from_ns, others);
		from_ns = until_ns;
	}
}

uint64_t ll_slices_own_ns(const struct ll_slices *slices, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	uint64_t own_ns = 0;
	if (end_ns - start_ns > REACH_NS) { /* the older part counts like the known part */
		uint64_t near_ns = ll_slices_own_ns(slices, end_ns - REACH_NS, end_ns);
		return (uint64_t)((double)(end_ns - start_ns) * (double)near_ns / (double)REACH_NS);
	}
	while (start_ns < end_ns) {
		uint64_t until_ns = bin_end_ns(start_ns, end_ns);
		uint64_t number = start_ns / LL_SLICE_BIN_NS, ns = until_ns - start_ns;
		unsigned index = number % LL_SLICE_BINS;
		uint64_t told_ns = slices->bins[index].number == number ? slices->bins[index].told_ns : 0;
		own_ns += told_ns ? ns * slices->bins[index].ours_ns / told_ns : ns;
		start_ns = until_ns;
	}
	return own_ns;
}
