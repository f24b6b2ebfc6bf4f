#include "shim/link/work_samples.h"

#define REACH_NS ((LL_WORK_WORDS - 1) * LL_WORK_WORD_NS)

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
	uint64_t from_ns = end_ns - start_ns > REACH_NS ? end_ns - REACH_NS : start_ns;
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
