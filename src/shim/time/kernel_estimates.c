#include "shim/time/kernel_estimates.h"

enum { FIRST_SAMPLES = 8, FIRST_TRIES = 32, MOST_BETWEEN = 1024 };

/* Samples beside other programs' time slices that are needed for an estimate. That all of them contain another
 * program's slice is rare. */
enum { LEAST_TRIES = 4 };

/* The weight of a sample. The first samples have equal weights. A later sample has the weight 1 / SAMPLE_PARTS, or 1 /
 * QUEUED_PARTS if it comes from a queue. A sample scatters by a tenth. */
enum { SAMPLE_PARTS = 32, QUEUED_PARTS = 4 };
/* A sample that is more than FAR times the estimate is taken for interference by other work. The first samples of a
 * kernel are compared with each other instead, by FIRST_FAR. */
enum { FAR = 4, FIRST_FAR = 2 };
/* A kernel is steady if its launches scatter by less than one part in STEADY_PARTS, plus STEADY_NS, by which samples of
 * short launches scatter. */
enum { STEADY_PARTS = 8, STEADY_NS = 1000 };

static void count_one(uint16_t *count)
{
	if (*count < UINT16_MAX)
		(*count)++;
}

/* Makes every bit of the number affect every bit of the result, as the end of MurmurHash3 does. */
static uint64_t mix_bits(uint64_t number)
{
	number = (number ^ number >> 33) * UINT64_C(0xff51afd7ed558ccd);
	number = (number ^ number >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return number ^ number >> 33;
}

/* Keys are products or addresses, so their low bits are not evenly distributed. */
static unsigned set_of(uint64_t key)
{
	return (unsigned)(mix_bits(key) % LL_ESTIMATE_SETS);
}

struct ll_kernel_estimate *ll_kernel_estimates_find(struct ll_kernel_estimates *estimates, uint64_t key)
{
	struct ll_kernel_estimate *set = estimates->table[set_of(key)], *oldest = set;
	uint32_t now = ++estimates->found;
	for (struct ll_kernel_estimate *estimate = set; estimate < set + LL_ESTIMATE_WAYS; estimate++) {
		if (estimate->key == key) {
			estimate->found = now;
			return estimate;
		}
		if (now - estimate->found > now - oldest->found)
			oldest = estimate;
	}
	*oldest = (struct ll_kernel_estimate){.key = key, .doubts = estimates->doubts, .found = now};
	return oldest;
}

static bool is_new(const struct ll_kernel_estimate *estimate)
{
	return estimate->learned + estimate->rough < FIRST_SAMPLES && estimate->timed < FIRST_TRIES;
}

bool ll_kernel_estimate_wants_sample(const struct ll_kernel_estimates *estimates,
				     const struct ll_kernel_estimate *estimate)
{
	return is_new(estimate) || estimate->seen >= estimate->next || estimate->doubts != estimates->doubts;
}

bool ll_kernel_estimate_is_steady(const struct ll_kernel_estimate *estimate)
{
	return estimate->scatter_ns <= estimate->ns / STEADY_PARTS + STEADY_NS;
}

/* The next sample comes after a varying number of launches. Otherwise, if a program repeats the same sequence of
 * launches, the same launches of the sequence would always be timed. */
void ll_kernel_estimate_note_sample(const struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate)
{
	uint64_t between =
	    estimate->ns ? LL_ESTIMATE_SAMPLE_NS * 1000 / LL_ESTIMATE_SAMPLE_PERMILLE / estimate->ns : MOST_BETWEEN;
	if (between > MOST_BETWEEN)
		between = MOST_BETWEEN;
	uint64_t from = between / 2, any = mix_bits(estimate->key + estimate->seen) % (between + 1);
	estimate->next = estimate->seen + (uint32_t)(from + any < 1 ? 1 : from + any);
	estimate->doubts = estimates->doubts;
	count_one(&estimate->timed);
}

/* Returns N, where 1 / N is the weight of the next sample after `count` samples. N is at most most_parts. */
static uint64_t parts_of(uint32_t count, uint64_t most_parts)
{
	return count < most_parts ? count + UINT64_C(1) : most_parts;
}

static uint64_t mean_of(uint64_t before_ns, uint64_t ns, uint64_t parts)
{
	return ((parts - 1) * before_ns + ns) / parts;
}

/* Returns the mean of the first samples. This sample comes after `count` others. */
static uint64_t mean_of_first(struct ll_kernel_estimate *estimate, uint32_t count, uint64_t ns)
{
	estimate->first_ns = ns + (count ? estimate->first_ns : 0);
	estimate->longest_ns = count && estimate->longest_ns > ns ? estimate->longest_ns : ns;
	uint64_t others_ns = count ? (estimate->first_ns - estimate->longest_ns) / count : ns;
	return estimate->longest_ns > FIRST_FAR * others_ns ? others_ns : estimate->first_ns / (count + 1);
}

static uint64_t mean_with(struct ll_kernel_estimate *estimate, uint32_t count, uint64_t ns, uint64_t most_parts)
{
	return count < FIRST_SAMPLES ? mean_of_first(estimate, count, ns)
				     : mean_of(estimate->ns, ns, parts_of(count, most_parts));
}

static void learn_duration(struct ll_kernel_estimate *estimate, uint64_t ns, uint64_t most_parts)
{
	if (estimate->learned >= FIRST_SAMPLES && ns > FAR * estimate->ns)
		ns = FAR * estimate->ns;
	estimate->ns = mean_with(estimate, estimate->learned, ns, most_parts);
	uint64_t off_ns = ns > estimate->ns ? ns - estimate->ns : estimate->ns - ns;
	if (off_ns > FAR * estimate->ns)
		off_ns = FAR * estimate->ns;
	estimate->scatter_ns = mean_of(estimate->scatter_ns, off_ns, parts_of(estimate->learned, most_parts));
	count_one(&estimate->learned);
}

void ll_kernel_estimate_learn_sample(struct ll_kernel_estimate *estimate, uint64_t ns)
{
	learn_duration(estimate, ns, SAMPLE_PARTS);
}

void ll_kernel_estimate_learn_rough(struct ll_kernel_estimate *estimate, uint64_t ns)
{
	if (!estimate->learned)
		estimate->ns = mean_with(estimate, estimate->rough, ns, SAMPLE_PARTS);
	count_one(&estimate->rough);
}

void ll_kernel_estimate_learn_queued(struct ll_kernel_estimate *estimate, uint64_t ns)
{
	learn_duration(estimate, ns, QUEUED_PARTS);
}

bool ll_kernel_estimate_is_sure(const struct ll_kernel_estimate *estimate)
{
	return estimate->learned + estimate->rough >= FIRST_SAMPLES;
}

void ll_kernel_estimate_learn_least(struct ll_kernel_estimate *estimate, uint64_t ns)
{
	if (estimate->learned || estimate->rough) {
		estimate->first_ns = estimate->ns;
		estimate->tried = 1;
		estimate->learned = estimate->rough = 0;
	}
	if (estimate->tried == FIRST_TRIES)
		return;
	uint64_t least_ns = estimate->tried ? estimate->first_ns : UINT64_MAX,
		 next_ns = estimate->tried > 1 ? estimate->ns : UINT64_MAX;
	estimate->tried++;
	estimate->first_ns = ns < least_ns ? ns : least_ns;
	uint64_t other_ns = ns < least_ns ? least_ns : ns;
	estimate->ns = estimate->tried == 1 ? ns : other_ns < next_ns ? other_ns : next_ns;
}

bool ll_kernel_estimate_is_known(const struct ll_kernel_estimate *estimate)
{
	return estimate->learned || estimate->rough || estimate->tried >= LEAST_TRIES;
}

void ll_kernel_estimates_forget(struct ll_kernel_estimates *estimates)
{
	for (unsigned i = 0; i < LL_ESTIMATE_SETS * LL_ESTIMATE_WAYS; i++) {
		struct ll_kernel_estimate *estimate = &estimates->table[i / LL_ESTIMATE_WAYS][i % LL_ESTIMATE_WAYS];
		estimate->learned = estimate->rough = estimate->timed = estimate->tried = 0;
	}
}

void ll_kernel_estimates_doubt(struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate, uint64_t ns)
{
	estimates->doubts++;
	if (!estimate)
		return;
	if (estimate->ns < ns)
		estimate->ns = ns;
	estimate->learned = estimate->rough = estimate->timed = estimate->tried = 0;
}

/* ---- shortest samples ---- */

/* Keys are products or addresses: the upper bits of a product with an odd number depend on all of them. */
static unsigned place_of(uint64_t key)
{
	return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LL_SHORTEST_KERNELS;
}

void ll_shortest_note(struct ll_shortest *shortest, uint64_t key, uint64_t ns)
{
	unsigned at = place_of(key);
	uint64_t least_ns = shortest->kernels[at].least_ns, next_ns = shortest->kernels[at].next_ns;
	if (!ns)
		return;
	if (shortest->kernels[at].key != key)
		least_ns = next_ns = 0;
	if (!least_ns || ns < least_ns) {
		next_ns = least_ns;
		least_ns = ns;
	} else if (!next_ns || ns < next_ns) {
		next_ns = ns;
	}
	shortest->kernels[at].key = key;
	shortest->kernels[at].least_ns = least_ns;
	shortest->kernels[at].next_ns = next_ns;
}

uint64_t ll_shortest_ns(const struct ll_shortest *shortest, uint64_t key)
{
	unsigned at = place_of(key);
	return shortest->kernels[at].key == key ? shortest->kernels[at].next_ns : 0;
}
