#include "ledger/busy_bins.h"

enum { NUMBER_SHIFT = 24 };
#define NS_MASK ((UINT64_C(1) << NUMBER_SHIFT) - 1)
_Static_assert(LL_BUSY_BIN_NS <= NS_MASK && LL_BUSY_LONG_BIN_NS <= NS_MASK, "a bin's count fits beside its number");

#define REACH_NS ((LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS)
#define LONG_REACH_NS ((LL_BUSY_LONG_BINS - 1) * LL_BUSY_LONG_BIN_NS)

static uint64_t add_to_bin(_Atomic uint64_t *word, uint64_t number, uint64_t bin_ns, uint64_t ns)
{
	uint64_t before = atomic_load(word);
	for (;;) {
		if (before >> NUMBER_SHIFT > number) /* it is a later one's by now */
			return ns;
		uint64_t had_ns = before >> NUMBER_SHIFT == number ? before & NS_MASK : 0;
		uint64_t room_ns = bin_ns - had_ns;
		uint64_t added_ns = ns < room_ns ? ns : room_ns;
		uint64_t after = number << NUMBER_SHIFT | (had_ns + added_ns);
		if (atomic_compare_exchange_weak(word, &before, after))
			return added_ns;
	}
}

static uint64_t add_to_long_bin(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns)
{
	uint64_t number = at_ns / LL_BUSY_LONG_BIN_NS;
	return add_to_bin(&bins->long_words[number % LL_BUSY_LONG_BINS], number, LL_BUSY_LONG_BIN_NS, ns);
}

/* What longer bins do not reach either counts as told. */
static uint64_t add_older(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t added_ns = 0;
	if (end_ns - start_ns > LONG_REACH_NS) {
		added_ns = end_ns - start_ns - LONG_REACH_NS;
		start_ns = end_ns - LONG_REACH_NS;
	}
	while (start_ns < end_ns) {
		uint64_t next_ns = (start_ns / LL_BUSY_LONG_BIN_NS + 1) * LL_BUSY_LONG_BIN_NS;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		added_ns += add_to_long_bin(bins, start_ns, until_ns - start_ns);
		start_ns = until_ns;
	}
	return added_ns;
}

static uint64_t add_recent(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t added_ns = 0;
	while (start_ns < end_ns) {
		uint64_t number = start_ns / LL_BUSY_BIN_NS;
		uint64_t next_ns = (number + 1) * LL_BUSY_BIN_NS;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		uint64_t ns =
		    add_to_bin(&bins->words[number % LL_BUSY_BINS], number, LL_BUSY_BIN_NS, until_ns - start_ns);
		if (ns)
			add_to_long_bin(bins, start_ns, ns);
		added_ns += ns;
		start_ns = until_ns;
	}
	return added_ns;
}

uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	uint64_t recent_ns = end_ns - start_ns > REACH_NS ? end_ns - REACH_NS : start_ns;
	return add_older(bins, start_ns, recent_ns) + add_recent(bins, recent_ns, end_ns);
}
