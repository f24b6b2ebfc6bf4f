#include "shim/link/busy_bins.h"

#define NS_MASK ((UINT64_C(1) << LL_BUSY_NUMBER_SHIFT) - 1)
_Static_assert(LL_BUSY_BIN_NS <= NS_MASK && LL_BUSY_LONG_BIN_NS <= NS_MASK, "a bin's count fits beside its number");

#define REACH_NS ((LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS)
#define LONG_REACH_NS ((LL_BUSY_LONG_BINS - 1) * LL_BUSY_LONG_BIN_NS)

static uint64_t add_to_bin(_Atomic uint64_t *words, unsigned count, uint64_t bin_ns, uint64_t at_ns, uint64_t ns)
{
	uint64_t number = at_ns / bin_ns;
	_Atomic uint64_t *word = &words[number % count];
	uint64_t before = atomic_load(word);
	for (;;) {
		if (before >> LL_BUSY_NUMBER_SHIFT > number) /* the word now belongs to a later bin */
			return ns;
		uint64_t had_ns = before >> LL_BUSY_NUMBER_SHIFT == number ? before & NS_MASK : 0;
		uint64_t room_ns = bin_ns - had_ns;
		uint64_t added_ns = ns < room_ns ? ns : room_ns;
		uint64_t after = number << LL_BUSY_NUMBER_SHIFT | (had_ns + added_ns);
		if (atomic_compare_exchange_weak(word, &before, after))
			return added_ns;
	}
}

/* add_long and add_recent add work inside one bin. add_recent adds the part that counts also to the long bin that
 * contains the short bin. */
static uint64_t add_long(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns)
{
	return add_to_bin(bins->long_words, LL_BUSY_LONG_BINS, LL_BUSY_LONG_BIN_NS, at_ns, ns);
}

static uint64_t add_recent(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns)
{
	uint64_t added_ns = add_to_bin(bins->words, LL_BUSY_BINS, LL_BUSY_BIN_NS, at_ns, ns);
	if (added_ns)
		add_long(bins, at_ns, added_ns);
	return added_ns;
}

static uint64_t add_stretch(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns, uint64_t bin_ns,
			    uint64_t (*add)(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns))
{
	uint64_t added_ns = 0;
	while (start_ns < end_ns) {
		uint64_t next_ns = (start_ns / bin_ns + 1) * bin_ns;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		added_ns += add(bins, start_ns, until_ns - start_ns);
		start_ns = until_ns;
	}
	return added_ns;
}

/* Returns the begin of the last part of a stretch. The part has at most most_ns. */
static uint64_t last_part(uint64_t start_ns, uint64_t end_ns, uint64_t most_ns)
{
	return end_ns - start_ns > most_ns ? end_ns - most_ns : start_ns;
}

uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	uint64_t recent_ns = last_part(start_ns, end_ns, REACH_NS);
	uint64_t older_ns = last_part(start_ns, recent_ns, LONG_REACH_NS); /* older work counts as reported */
	return older_ns - start_ns + add_stretch(bins, older_ns, recent_ns, LL_BUSY_LONG_BIN_NS, add_long) +
	       add_stretch(bins, recent_ns, end_ns, LL_BUSY_BIN_NS, add_recent);
}
