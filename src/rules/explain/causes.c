#include "rules/explain/explain.h"

#include <stdlib.h>

enum { WHOLE_PERMILLE = 1000 };

static int compare_causes(const void *left, const void *right)
{
	const struct ll_cause_part *one = left, *other = right;
	if (one->part > other->part || one->part < other->part)
		return one->part > other->part ? -1 : 1;
	return one->cause < other->cause ? -1 : one->cause > other->cause;
}

/* If a cause were gone, its part of the minute would go to work. */
static double gain_of(double part, double work)
{
	return work >= LL_CAUSE_LEAST ? (work + part) / work : 0;
}

size_t ll_causes_find(const struct ll_cause_facts *facts, struct ll_cause_part ret_causes[LL_CAUSES])
{
	static const enum ll_time_part spent[LL_CAUSES] = {
	    [LL_CAUSE_EVICTED] = LL_TIME_EVICTED, [LL_CAUSE_MEMORY] = LL_TIME_MEMORY, [LL_CAUSE_CAP] = LL_TIME_CAP,
	    [LL_CAUSE_CLASS] = LL_TIME_CLASS,     [LL_CAUSE_SHARED] = LL_TIME_SHARED, [LL_CAUSE_SPACE] = LL_TIME_SPACE,
	    [LL_CAUSE_PEER] = LL_TIME_PEER,       [LL_CAUSE_COPIES] = LL_TIME_COPIES, [LL_CAUSE_HOST] = LL_TIME_HOST,
	    [LL_CAUSE_IDLE] = LL_TIME_IDLE};
	if (facts->is_queued) {
		ret_causes[0] = (struct ll_cause_part){.cause = LL_CAUSE_QUEUE, .part = 1};
		return 1;
	}
	double work = facts->permille[LL_TIME_WORK] / (double)WHOLE_PERMILLE;
	bool is_slowed = facts->has_slowdown && facts->clock_ratio > 0 && facts->clock_ratio < 1;
	double slowed = is_slowed ? work * (1 - facts->clock_ratio) : 0;
	size_t count = 0;
	for (enum ll_cause cause = LL_CAUSE_QUEUE; cause < LL_CAUSES; cause++) {
		double part =
		    cause == LL_CAUSE_CLOCKS ? slowed : facts->permille[spent[cause]] / (double)WHOLE_PERMILLE;
		if (part < LL_CAUSE_LEAST || cause == LL_CAUSE_QUEUE)
			continue;
		bool has_gain = cause != LL_CAUSE_IDLE;
		double gain = cause == LL_CAUSE_CLOCKS ? 1 / facts->clock_ratio : gain_of(part, work);
		ret_causes[count++] = (struct ll_cause_part){cause, part, has_gain ? gain : 0};
	}
	qsort(ret_causes, count, sizeof *ret_causes, compare_causes);
	return count;
}

const char *ll_cause_name(enum ll_cause cause)
{
	static const char *const names[LL_CAUSES] = {
	    [LL_CAUSE_QUEUE] = "queue",   [LL_CAUSE_EVICTED] = "evicted", [LL_CAUSE_MEMORY] = "memory",
	    [LL_CAUSE_CAP] = "cap",       [LL_CAUSE_CLASS] = "class",     [LL_CAUSE_SHARED] = "shared",
	    [LL_CAUSE_SPACE] = "mps",     [LL_CAUSE_CLOCKS] = "clocks",   [LL_CAUSE_PEER] = "process",
	    [LL_CAUSE_COPIES] = "copies", [LL_CAUSE_HOST] = "host",       [LL_CAUSE_IDLE] = "no-work"};
	return names[cause];
}

double ll_idle_divide(double work, struct ll_idle_job *jobs, size_t count)
{
	/* While a job waits for its turn, others have the card: that counts only if nothing else is known. */
	static const enum ll_idle_hand hands[LL_TIME_PARTS] = {
	    [LL_TIME_IDLE] = LL_IDLE_NO_WORK, [LL_TIME_HOST] = LL_IDLE_PROGRAM, [LL_TIME_COPIES] = LL_IDLE_PROGRAM,
	    [LL_TIME_PEER] = LL_IDLE_PROGRAM, [LL_TIME_CAP] = LL_IDLE_WAITS,    [LL_TIME_MEMORY] = LL_IDLE_WAITS,
	    [LL_TIME_EVICTED] = LL_IDLE_WAITS};
	double idle = work < 1 ? 1 - work : 0, sum = 0;
	for (int turns = 0; turns < 2 && sum <= 0; turns++) {
		for (size_t i = 0; i < count; i++) {
			for (size_t hand = 0; hand < LL_IDLE_HANDS; hand++)
				jobs[i].idle[hand] = 0;
			for (size_t part = 0; part < LL_TIME_PARTS; part++) {
				bool is_turn = part == LL_TIME_SHARED || part == LL_TIME_CLASS;
				enum ll_idle_hand hand = is_turn && turns ? LL_IDLE_WAITS : hands[part];
				jobs[i].idle[hand] += hand ? jobs[i].permille[part] : 0;
				sum += hand ? jobs[i].permille[part] : 0;
			}
		}
	}
	for (size_t i = 0; sum > 0 && i < count; i++) {
		for (size_t hand = 0; hand < LL_IDLE_HANDS; hand++)
			jobs[i].idle[hand] *= idle / sum;
	}
	return sum > 0 ? 0 : idle;
}

const char *ll_idle_hand_name(enum ll_idle_hand hand)
{
	static const char *const names[LL_IDLE_HANDS] = {[LL_IDLE_NOBODY] = "nobody",
							 [LL_IDLE_HIDDEN] = "hidden",
							 [LL_IDLE_NO_WORK] = "no-work",
							 [LL_IDLE_PROGRAM] = "program",
							 [LL_IDLE_WAITS] = "waits"};
	return names[hand];
}
