#include "rules/hold/foreign.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"

#define DEFAULT_THRESHOLD 0.04
#define DEFAULT_PLACEMENT_NS (10 * LL_NS_PER_MS)
/* NVML's whole percent may be rounded or truncated. */
#define READING_ERROR 0.01
/* A window must be this many times as long as its place is uncertain. Shorter ones are not judged. */
#define SHORTEST_IN_PLACEMENTS 3

void ll_foreign_init(struct ll_foreign *foreign, const struct ll_foreign_config *config, uint64_t start_ns)
{
	foreign->threshold_ratio =
	    config && config->threshold_ratio > 0.0 ? config->threshold_ratio : DEFAULT_THRESHOLD;
	foreign->placement_ns = config && config->placement_ns > 0 ? config->placement_ns : DEFAULT_PLACEMENT_NS;
	foreign->known_until_ns = start_ns;
	foreign->first_bin = start_ns / LL_FOREIGN_BIN_NS;
	if (start_ns % LL_FOREIGN_BIN_NS != 0)
		foreign->first_bin++;
	foreign->next_bin = foreign->first_bin;
	memset(foreign->busy_ns, 0, sizeof foreign->busy_ns);
}

static uint32_t *bin_at(struct ll_foreign *foreign, uint64_t number)
{
	return &foreign->busy_ns[number % LL_FOREIGN_BINS];
}

/* Makes the bins up to this number exist. */
static void add_bins_to(struct ll_foreign *foreign, uint64_t number)
{
	if (number < foreign->next_bin)
		return;
	uint64_t next = number + 1;
	uint64_t clear = next - foreign->next_bin;
	if (clear > LL_FOREIGN_BINS)
		clear = LL_FOREIGN_BINS;
	for (uint64_t i = next - clear; i < next; i++)
		*bin_at(foreign, i) = 0;
	foreign->next_bin = next;
	if (next > LL_FOREIGN_BINS && foreign->first_bin < next - LL_FOREIGN_BINS)
		foreign->first_bin = next - LL_FOREIGN_BINS;
}

static uint64_t bin_start(uint64_t number)
{
	return number * LL_FOREIGN_BIN_NS;
}

/* Returns how much of the bin lies in start..end. */
static uint64_t overlap_ns(uint64_t number, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from = bin_start(number) > start_ns ? bin_start(number) : start_ns;
	uint64_t to = bin_start(number + 1) < end_ns ? bin_start(number + 1) : end_ns;
	return to > from ? to - from : 0;
}

static void add_to_bins(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, bool is_unknown)
{
	if (end_ns <= start_ns)
		return;
	uint64_t last = (end_ns - 1) / LL_FOREIGN_BIN_NS;
	add_bins_to(foreign, last);
	uint64_t first = start_ns / LL_FOREIGN_BIN_NS;
	if (first < foreign->first_bin)
		first = foreign->first_bin;
	for (uint64_t i = first; i <= last; i++) {
		uint32_t *bin = bin_at(foreign, i);
		if (*bin == UINT32_MAX)
			continue;
		uint64_t busy = *bin + overlap_ns(i, start_ns, end_ns);
		if (busy > LL_FOREIGN_BIN_NS)
			busy = LL_FOREIGN_BIN_NS;
		*bin = is_unknown ? UINT32_MAX : (uint32_t)busy;
	}
}

void ll_foreign_add_own(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	add_to_bins(foreign, start_ns, end_ns, false);
}

void ll_foreign_add_unknown(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	add_to_bins(foreign, start_ns, end_ns, true);
}

void ll_foreign_own_known_until(struct ll_foreign *foreign, uint64_t until_ns)
{
	if (until_ns <= foreign->known_until_ns)
		return;
	foreign->known_until_ns = until_ns;
	add_bins_to(foreign, until_ns / LL_FOREIGN_BIN_NS);
}

double ll_foreign_own_ratio(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns || start_ns < bin_start(foreign->first_bin) || end_ns > foreign->known_until_ns)
		return NAN;
	double busy = 0.0;
	for (uint64_t i = start_ns / LL_FOREIGN_BIN_NS; i <= (end_ns - 1) / LL_FOREIGN_BIN_NS; i++) {
		uint32_t bin = foreign->busy_ns[i % LL_FOREIGN_BINS];
		if (bin == UINT32_MAX)
			return NAN;
		busy += (double)bin * (double)overlap_ns(i, start_ns, end_ns) / (double)LL_FOREIGN_BIN_NS;
	}
	return busy / (double)(end_ns - start_ns);
}

void ll_foreign_judge(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, unsigned total_percent,
		      struct ll_foreign_verdict *ret_verdict)
{
	uint64_t shift = foreign->placement_ns;
	double own = ll_foreign_own_ratio(foreign, start_ns, end_ns);
	double earlier = start_ns >= shift ? ll_foreign_own_ratio(foreign, start_ns - shift, end_ns - shift) : NAN;
	uint64_t ahead = foreign->known_until_ns > end_ns ? foreign->known_until_ns - end_ns : 0;
	uint64_t late = ahead < shift ? ahead : shift;
	double later = ll_foreign_own_ratio(foreign, start_ns + late, end_ns + late);
	*ret_verdict = (struct ll_foreign_verdict){
	    .state = LL_FOREIGN_UNKNOWN, .own_ratio = own, .foreign_ratio = NAN, .uncertainty_ratio = NAN};
	bool is_too_short = end_ns - start_ns < SHORTEST_IN_PLACEMENTS * shift;
	if (isnan(own) || isnan(earlier) || isnan(later) || is_too_short)
		return;
	double total = total_percent / 100.0;
	double own_max = fmax(own, fmax(earlier, later));
	double own_min = fmin(own, fmin(earlier, later));
	ret_verdict->foreign_ratio = fmin(fmax(total - own, 0.0), 1.0);
	ret_verdict->uncertainty_ratio = READING_ERROR + fmax(own_max - own, own - own_min);
	ret_verdict->is_own_idle = own_max <= 0.0;
	/* The threshold is whole points as a rule, and so is the reading: equal must not become over by the last bit.
	 */
	bool is_foreign =
	    ret_verdict->is_own_idle ? total_percent > 0 : total - own_max > foreign->threshold_ratio + 1e-9;
	ret_verdict->state = is_foreign ? LL_FOREIGN_SEEN : LL_FOREIGN_QUIET;
}
