#include "ledger/busy_bins.h"

enum { NUMBER_SHIFT = 24 };
#define NS_MASK ((UINT64_C(1) << NUMBER_SHIFT) - 1)
_Static_assert(LL_BUSY_BIN_NS <= NS_MASK, "a bin's count fits beside its number");

static uint64_t add_to_bin(_Atomic uint64_t *word, uint64_t number, uint64_t ns)
{
	uint64_t before = atomic_load(word);
	for (;;) {
		if (before >> NUMBER_SHIFT > number) /* it is a later one's by now */
			return ns;
		uint64_t had_ns = before >> NUMBER_SHIFT == number ? before & NS_MASK : 0;
		uint64_t room_ns = LL_BUSY_BIN_NS - had_ns;
		uint64_t added_ns = ns < room_ns ? ns : room_ns;
		uint64_t after = number << NUMBER_SHIFT | (had_ns + added_ns);
		if (atomic_compare_exchange_weak(word, &before, after))
			return added_ns;
	}
}

uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t added_ns = 0;
	if (end_ns <= start_ns)
		return 0;
	if (end_ns - start_ns > (LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS) {
		uint64_t from_ns = end_ns - (LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS;
		added_ns = from_ns - start_ns;
		start_ns = from_ns;
	}
	while (start_ns < end_ns) {
		uint64_t number = start_ns / LL_BUSY_BIN_NS;
		uint64_t next_ns = (number + 1) * LL_BUSY_BIN_NS;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		added_ns += add_to_bin(&bins->words[number % LL_BUSY_BINS], number, until_ns - start_ns);
		start_ns = until_ns;
	}
	return added_ns;
}
