#include "shim/time/kernel_estimates.h"

enum { FIRST_SAMPLES = 8, FIRST_TRIES = 32, MOST_BETWEEN = 1024 };

/* Samples in slices that are needed for an estimate: it is rare that all of them contain a slice of another program. */
enum { LEAST_TRIES = 4 };

/* The weight of a sample: the first few have equal weights, later ones one part of so many. A sample scatters by a
 * tenth. */
enum { SAMPLE_PARTS = 32, QUEUED_PARTS = 4 };
/* A sample that is more than FAR times the estimate is taken for interference by other work. The first samples of a
 * kind are compared with each other instead, by FIRST_FAR. */
enum { FAR = 4, FIRST_FAR = 2 };
/* A kind is steady if its launches scatter by less than one part in STEADY_PARTS, plus STEADY_NS, by which samples of
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

/* Names are products or addresses, so their low bits are not spread evenly. */
static unsigned set_of(uint64_t name)
{
	return (unsigned)(mix_bits(name) % LL_ESTIMATE_SETS);
}

struct ll_kernel_estimate *ll_kernel_estimates_find(struct ll_kernel_estimates *kinds, uint64_t name)
{
	struct ll_kernel_estimate *set = kinds->table[set_of(name)], *oldest = set;
	uint32_t now = ++kinds->found;
	for (struct ll_kernel_estimate *kind = set; kind < set + LL_ESTIMATE_WAYS; kind++) {
		if (kind->name == name) {
			kind->found = now;
			return kind;
		}
		if (now - kind->found > now - oldest->found)
			oldest = kind;
	}
	*oldest = (struct ll_kernel_estimate){.name = name, .doubts = kinds->doubts, .found = now};
	return oldest;
}

static bool is_new(const struct ll_kernel_estimate *kind)
{
	return kind->learned + kind->rough < FIRST_SAMPLES && kind->timed < FIRST_TRIES;
}

bool ll_kernel_estimate_wants_sample(const struct ll_kernel_estimates *kinds, const struct ll_kernel_estimate *kind)
{
	return is_new(kind) || kind->seen >= kind->next || kind->doubts != kinds->doubts;
}

bool ll_kernel_estimate_is_steady(const struct ll_kernel_estimate *kind)
{
	return kind->scatter_ns <= kind->ns / STEADY_PARTS + STEADY_NS;
}

/* The next sample comes after a varying number of launches. Otherwise a program that repeats the same sequence would
 * always have the same launches timed. */
void ll_kernel_estimate_note_sample(const struct ll_kernel_estimates *kinds, struct ll_kernel_estimate *kind)
{
	uint64_t between =
	    kind->ns ? LL_ESTIMATE_SAMPLE_NS * 1000 / LL_ESTIMATE_SAMPLE_PERMILLE / kind->ns : MOST_BETWEEN;
	if (between > MOST_BETWEEN)
		between = MOST_BETWEEN;
	uint64_t from = between / 2, any = mix_bits(kind->name + kind->seen) % (between + 1);
	kind->next = kind->seen + (uint32_t)(from + any < 1 ? 1 : from + any);
	kind->doubts = kinds->doubts;
	count_one(&kind->timed);
}

/* The weight of the next sample after `count` samples is one part in so many, at most most_parts. */
static uint64_t parts_of(uint32_t count, uint64_t most_parts)
{
	return count < most_parts ? count + UINT64_C(1) : most_parts;
}

static uint64_t mean_of(uint64_t before_ns, uint64_t ns, uint64_t parts)
{
	return ((parts - 1) * before_ns + ns) / parts;
}

/* The mean of the first few samples. This one comes after `count` others. */
static uint64_t mean_of_first(struct ll_kernel_estimate *kind, uint32_t count, uint64_t ns)
{
	kind->first_ns = ns + (count ? kind->first_ns : 0);
	kind->longest_ns = count && kind->longest_ns > ns ? kind->longest_ns : ns;
	uint64_t others_ns = count ? (kind->first_ns - kind->longest_ns) / count : ns;
	return kind->longest_ns > FIRST_FAR * others_ns ? others_ns : kind->first_ns / (count + 1);
}

static uint64_t mean_with(struct ll_kernel_estimate *kind, uint32_t count, uint64_t ns, uint64_t most_parts)
{
	return count < FIRST_SAMPLES ? mean_of_first(kind, count, ns)
				     : mean_of(kind->ns, ns, parts_of(count, most_parts));
}

static void learn_duration(struct ll_kernel_estimate *kind, uint64_t ns, uint64_t most_parts)
{
	if (kind->learned >= FIRST_SAMPLES && ns > FAR * kind->ns)
		ns = FAR * kind->ns;
	kind->ns = mean_with(kind, kind->learned, ns, most_parts);
	uint64_t off_ns = ns > kind->ns ? ns - kind->ns : kind->ns - ns;
	if (off_ns > FAR * kind->ns)
		off_ns = FAR * kind->ns;
	kind->scatter_ns = mean_of(kind->scatter_ns, off_ns, parts_of(kind->learned, most_parts));
	count_one(&kind->learned);
}

void ll_kernel_estimate_learn_sample(struct ll_kernel_estimate *kind, uint64_t ns)
{
	learn_duration(kind, ns, SAMPLE_PARTS);
}

void ll_kernel_estimate_learn_rough(struct ll_kernel_estimate *kind, uint64_t ns)
{
	if (!kind->learned)
		kind->ns = mean_with(kind, kind->rough, ns, SAMPLE_PARTS);
	count_one(&kind->rough);
}

void ll_kernel_estimate_learn_queued(struct ll_kernel_estimate *kind, uint64_t ns)
{
	learn_duration(kind, ns, QUEUED_PARTS);
}

bool ll_kernel_estimate_is_sure(const struct ll_kernel_estimate *kind)
{
	return kind->learned + kind->rough >= FIRST_SAMPLES;
}

void ll_kernel_estimate_learn_least(struct ll_kernel_estimate *kind, uint64_t ns)
{
	if (kind->learned || kind->rough) {
		kind->first_ns = kind->ns;
		kind->tried = 1;
		kind->learned = kind->rough = 0;
	}
	if (kind->tried == FIRST_TRIES)
		return;
	uint64_t least_ns = kind->tried ? kind->first_ns : UINT64_MAX,
		 next_ns = kind->tried > 1 ? kind->ns : UINT64_MAX;
	kind->tried++;
	kind->first_ns = ns < least_ns ? ns : least_ns;
	uint64_t other_ns = ns < least_ns ? least_ns : ns;
	kind->ns = kind->tried == 1 ? ns : other_ns < next_ns ? other_ns : next_ns;
}

bool ll_kernel_estimate_is_known(const struct ll_kernel_estimate *kind)
{
	return kind->learned || kind->rough || kind->tried >= LEAST_TRIES;
}

void ll_kernel_estimates_forget(struct ll_kernel_estimates *kinds)
{
	for (unsigned i = 0; i < LL_ESTIMATE_SETS * LL_ESTIMATE_WAYS; i++) {
		struct ll_kernel_estimate *kind = &kinds->table[i / LL_ESTIMATE_WAYS][i % LL_ESTIMATE_WAYS];
		kind->learned = kind->rough = kind->timed = kind->tried = 0;
	}
}

void ll_kernel_estimates_doubt(struct ll_kernel_estimates *kinds, struct ll_kernel_estimate *kind, uint64_t ns)
{
	kinds->doubts++;
	if (!kind)
		return;
	if (kind->ns < ns)
		kind->ns = ns;
	kind->learned = kind->rough = kind->timed = kind->tried = 0;
}
