#include "rules/explain/explain.h"

#include <string.h>

#define NS_PER_US UINT64_C(1000)
#define LATE_WORK_NS UINT64_C(1000000000) /* work that is reported later than this is not counted */

static uint64_t smaller_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static uint64_t part_of(uint64_t ns, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)ns * ((double)part / (double)whole)) : 0;
}

/* Takes at most `ns` from what is left of the step, and returns it. */
static uint64_t take_from(uint64_t *left_ns, uint64_t ns)
{
	uint64_t taken_ns = smaller_of(*left_ns, ns);
	*left_ns -= taken_ns;
	return taken_ns;
}

/* While the processors work half of the time, the program prepares its next launch, however long that takes. */
static void end_gap(struct ll_minute_carry *carry, bool has_launched, uint64_t ret_ns[LL_TIME_PARTS])
{
	bool is_host = (has_launched && carry->gap_ns < LL_MINUTE_GAP_NS) || carry->cpu_ns >= carry->gap_ns / 2;
	ret_ns[is_host ? LL_TIME_HOST : LL_TIME_IDLE] += carry->gap_ns;
	carry->gap_ns = carry->cpu_ns = 0;
}

/* Idle time of a step in which the program launched is that of its host. A step without launches belongs to a gap, of
 * which it is not known yet how long it becomes. */
static void divide_idle(const struct ll_minute_step *step, uint64_t left_ns, struct ll_minute_carry *carry,
			uint64_t ret_ns[LL_TIME_PARTS])
{
	bool has_launched = step->wanted_ns || step->work_ns || ret_ns[LL_TIME_WORK];
	uint64_t copies_ns = take_from(&left_ns, step->copied_ns);
	ret_ns[LL_TIME_COPIES] += copies_ns;
	if (has_launched || copies_ns) {
		if (carry->gap_ns)
			end_gap(carry, true, ret_ns);
		ret_ns[LL_TIME_HOST] += left_ns;
		return;
	}
	carry->gap_ns += left_ns;
	carry->cpu_ns += step->cpu_ns;
	if (carry->gap_ns >= LL_MINUTE_GAP_NS)
		end_gap(carry, false, ret_ns);
}

uint64_t ll_minute_kept_ns(const struct ll_minute_step *step, uint64_t turn_ns)
{
	uint64_t turns_ns = smaller_of(turn_ns, step->others_wanted_ns);
	return turns_ns > step->others_ns ? turns_ns : step->others_ns;
}

void ll_minute_divide(const struct ll_minute_step *step, struct ll_minute_carry *carry, uint64_t ret_ns[LL_TIME_PARTS])
{
	uint64_t left_ns = step->length_ns;
	memset(ret_ns, 0, LL_TIME_PARTS * sizeof *ret_ns);
	uint64_t work_ns = take_from(&left_ns, step->work_ns + carry->work_ns);
	carry->work_ns = smaller_of(step->work_ns + carry->work_ns - work_ns, LATE_WORK_NS);

	/* By space the kernels of several jobs run at the same time. If nothing else is known they meet by chance, and
	 * each has its part of the SMs while they do. */
	uint64_t met_ns =
	    step->is_by_space ? part_of(work_ns, smaller_of(step->others_ns, step->length_ns), step->length_ns) : 0;
	ret_ns[LL_TIME_SPACE] = part_of(met_ns, step->others_ns, work_ns + step->others_ns);
	ret_ns[LL_TIME_WORK] = work_ns - ret_ns[LL_TIME_SPACE];

	if (step->away == LL_MINUTE_AWAY_BY_HAND)
		ret_ns[LL_TIME_EVICTED] = take_from(&left_ns, left_ns);
	else if (step->away == LL_MINUTE_AWAY_WAITING)
		ret_ns[LL_TIME_MEMORY] = take_from(&left_ns, left_ns);
	uint64_t waits_ns = smaller_of(step->cap_ns + step->memory_ns, left_ns);
	uint64_t cap_ns = part_of(waits_ns, step->cap_ns, step->cap_ns + step->memory_ns);
	ret_ns[LL_TIME_CAP] = take_from(&left_ns, cap_ns);
	ret_ns[LL_TIME_MEMORY] += take_from(&left_ns, waits_ns - cap_ns);

	/* It had launches on the card, which did not work for it: then others had the card. */
	uint64_t known_ns = work_ns + cap_ns, lost_ns = 0;
	uint64_t missing_ns = step->wanted_ns > known_ns ? step->wanted_ns - known_ns : 0;
	if (!step->is_by_space)
		lost_ns = take_from(&left_ns, smaller_of(missing_ns, ll_minute_kept_ns(step, step->turn_ns)));
	if (!step->has_completed) /* a long kernel, whose work is told at its end */
		ret_ns[LL_TIME_WORK] += take_from(&left_ns, missing_ns - lost_ns);
	ret_ns[LL_TIME_CLASS] = part_of(lost_ns, smaller_of(step->higher_ns, step->others_ns), step->others_ns);
	ret_ns[LL_TIME_SHARED] = lost_ns - ret_ns[LL_TIME_CLASS];

	if (step->is_split) { /* the wait of one is why the others have nothing to do */
		static const enum ll_time_part waits[] = {LL_TIME_CAP, LL_TIME_CLASS, LL_TIME_SHARED, LL_TIME_MEMORY,
							  LL_TIME_EVICTED};
		for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
			ret_ns[LL_TIME_PEER] += ret_ns[waits[i]];
			ret_ns[waits[i]] = 0;
		}
	}
	ret_ns[LL_TIME_PEER] += take_from(&left_ns, step->peer_ns);
	divide_idle(step, left_ns, carry, ret_ns);
}

/* ---- the ring ---- */

void ll_minute_add(struct ll_minute *minute, uint64_t now_ns, const uint64_t ns[LL_TIME_PARTS])
{
	uint64_t bin = now_ns / LL_MINUTE_BIN_NS;
	uint64_t passed = bin > minute->bin ? bin - minute->bin : 0;
	for (uint64_t i = 1; i <= passed && i <= LL_MINUTE_BINS; i++)
		memset(minute->us[(minute->bin + i) % LL_MINUTE_BINS], 0, sizeof minute->us[0]);
	minute->bin += passed;
	uint32_t *us = minute->us[minute->bin % LL_MINUTE_BINS];
	for (size_t i = 0; i < LL_TIME_PARTS; i++)
		us[i] += (uint32_t)smaller_of(ns[i] / NS_PER_US, UINT32_MAX / 2 - us[i] / 2);
}

uint64_t ll_minute_read(const struct ll_minute *minute, uint64_t now_ns, uint32_t ret_permille[LL_TIME_PARTS])
{
	uint64_t sums[LL_TIME_PARTS] = {0}, all = 0, bin = now_ns / LL_MINUTE_BIN_NS;
	for (uint64_t i = 0; i < LL_MINUTE_BINS && i <= minute->bin; i++) {
		if (minute->bin - i + LL_MINUTE_BINS <= bin)
			break;
		for (size_t j = 0; j < LL_TIME_PARTS; j++) {
			sums[j] += minute->us[(minute->bin - i) % LL_MINUTE_BINS][j];
			all += minute->us[(minute->bin - i) % LL_MINUTE_BINS][j];
		}
	}
	for (size_t j = 0; j < LL_TIME_PARTS; j++)
		ret_permille[j] = all ? (uint32_t)((sums[j] * 1000 + all / 2) / all) : 0;
	return all * NS_PER_US;
}
