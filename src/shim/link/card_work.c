#include "shim/link/link.h"

/* ---- bins ---- */

#define NS_MASK ((UINT64_C(1) << LL_BUSY_NUMBER_SHIFT) - 1)
_Static_assert(LL_BUSY_BIN_NS <= NS_MASK && LL_BUSY_LONG_BIN_NS <= NS_MASK, "a bin's count fits beside its number");

#define BINS_REACH_NS ((LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS)
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

/* Adds work bin by bin. is_recent: to the short bins; the part that counts there also goes to the long bins, which
 * contain the short ones. Otherwise only to the long bins. */
static uint64_t add_stretch(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns, bool is_recent)
{
	uint64_t bin_ns = is_recent ? LL_BUSY_BIN_NS : LL_BUSY_LONG_BIN_NS, added_ns = 0;
	while (start_ns < end_ns) {
		uint64_t next_ns = (start_ns / bin_ns + 1) * bin_ns;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns, ns = until_ns - start_ns;
		if (is_recent)
			ns = add_to_bin(bins->words, LL_BUSY_BINS, LL_BUSY_BIN_NS, start_ns, ns);
		uint64_t long_ns =
		    ns ? add_to_bin(bins->long_words, LL_BUSY_LONG_BINS, LL_BUSY_LONG_BIN_NS, start_ns, ns) : 0;
		added_ns += is_recent ? ns : long_ns;
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
	uint64_t recent_ns = last_part(start_ns, end_ns, BINS_REACH_NS);
	uint64_t older_ns = last_part(start_ns, recent_ns, LONG_REACH_NS); /* older work counts as reported */
	return older_ns - start_ns + add_stretch(bins, older_ns, recent_ns, false) +
	       add_stretch(bins, recent_ns, end_ns, true);
}

/* ---- samples ---- */

#define SAMPLES_REACH_NS ((LL_WORK_WORDS - 1) * LL_WORK_WORD_NS)

/* Returns the index of the first sample at this time or later. Sample N is in the middle of part N. */
static uint64_t sample_from(uint64_t at_ns)
{
	return (at_ns + LL_WORK_SAMPLE_NS / 2) / LL_WORK_SAMPLE_NS;
}

/* The compiler's own function for this is not in the library that programs preload. */
static unsigned count_bits(uint64_t bits)
{
	unsigned count = 0;
	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

/* Sets the bits in the word of that number. Returns how many of them are new; of a word that belongs to a later time by
 * now: all. */
static unsigned set_bits(struct ll_work_samples *samples, uint64_t number, uint64_t bits)
{
	_Atomic uint64_t *word = &samples->words[number % LL_WORK_WORDS];
	uint64_t before = atomic_load_explicit(word, memory_order_relaxed), after, had;
	do {
		uint16_t ahead = (uint16_t)((before >> LL_WORK_SAMPLES) - number);
		if (ahead && ahead < LL_WORK_WORDS * 4)
			return count_bits(bits);
		had = ahead ? 0 : before & LL_WORK_BITS;
		after = number << LL_WORK_SAMPLES | had | bits;
	} while (
	    !atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed, memory_order_relaxed));
	return count_bits(bits & ~had);
}

uint64_t ll_work_samples_add(struct ll_work_samples *samples, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	uint64_t from_ns = end_ns - start_ns > SAMPLES_REACH_NS ? end_ns - SAMPLES_REACH_NS : start_ns;
	uint64_t first = sample_from(from_ns), end = sample_from(end_ns), fresh = 0;
	for (uint64_t at = first; at < end;) {
		uint64_t number = at / LL_WORK_SAMPLES, next = (number + 1) * LL_WORK_SAMPLES;
		uint64_t until = next < end ? next : end;
		uint64_t bits = (LL_WORK_BITS >> (LL_WORK_SAMPLES - (until - at))) << at % LL_WORK_SAMPLES;
		fresh += set_bits(samples, number, bits);
		at = until;
	}
	if (fresh == end - first) /* usual, and exact */
		return end_ns - start_ns;
	return from_ns - start_ns + (uint64_t)((double)(end_ns - from_ns) * (double)fresh / (double)(end - first));
}
