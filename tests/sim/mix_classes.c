#include "mix_classes.h"

#include <math.h>
#include <stdio.h>

enum { SETTLE_S = 15 };
/* What a class accepts by default, and how near to it is good (bench/mixes/table.py). */
#define TARGET (LL_DEFAULT_SLOWDOWN_PERMILLE / 1000.0)
#define NEAR 1.1
#define LOW_KEEPS 0.95
/* Of short requests: their median latency of alone, and what the lower program keeps of its speed alone. */
#define ANSWER_MOST 1.1
#define LOW_LEAST 0.9

static const enum mix_way ways[] = {MIX_NATIVE, MIX_RULE, MIX_HELD_NONE, MIX_HELD_HALF, MIX_HELD_ALL};
enum { WAYS = sizeof ways / sizeof ways[0], PARTS = 3 };

/* ---- the verdict ---- */

static bool is_on_top(const struct mix *mix, unsigned program)
{
	for (unsigned i = 0; i < mix->count; i++) {
		if (mix->kinds[i].rank < mix->kinds[program].rank)
			return false;
	}
	return true;
}

double mix_class_pace(const struct mix *mix, const struct mix_class_outcome *outcome, enum mix_way way,
		      unsigned program)
{
	return mix_pace(&mix->kinds[program], &outcome->by[way], program, &outcome->alone[program]);
}

/* Of the highest class: the least speed, of that with all others held. */
static double high_of(const struct mix *mix, const struct mix_class_outcome *outcome, enum mix_way way)
{
	double least = INFINITY;
	for (unsigned i = 0; i < mix->count; i++) {
		if (is_on_top(mix, i))
			least = fmin(least, mix_class_pace(mix, outcome, way, i) /
						mix_class_pace(mix, outcome, MIX_HELD_ALL, i));
	}
	return least;
}

static double low_of(const struct mix *mix, const struct mix_class_outcome *outcome, enum mix_way way)
{
	double sum = 0;
	unsigned count = 0;
	for (unsigned i = 0; i < mix->count; i++) {
		if (is_on_top(mix, i))
			continue;
		sum += log(mix_class_pace(mix, outcome, way, i));
		count++;
	}
	return exp(sum / count);
}

/* What those beneath can have at best where the highest class has at least that much. Between two parts lies what the
 * line between them says (bench/mixes/judge.py). */
static double best_low(const double high[PARTS], const double low[PARTS], double wanted)
{
	double best = 0;
	for (int i = 0; i < PARTS; i++) {
		if (high[i] >= wanted)
			best = fmax(best, low[i]);
		if (i > 0 && high[i - 1] < wanted && high[i] > wanted)
			best = fmax(best, low[i - 1] +
					      (wanted - high[i - 1]) / (high[i] - high[i - 1]) * (low[i] - low[i - 1]));
	}
	return best > 0 ? best : low[PARTS - 1];
}

static void judge(const struct mix *mix, struct mix_class_outcome *outcome)
{
	double high[PARTS], low[PARTS], wanted = high_of(mix, outcome, MIX_RULE);
	for (int i = 0; i < PARTS; i++) {
		high[i] = high_of(mix, outcome, MIX_HELD_NONE + (enum mix_way)i);
		low[i] = low_of(mix, outcome, MIX_HELD_NONE + (enum mix_way)i);
	}
	outcome->slowdown = 1 / wanted;
	outcome->low = low_of(mix, outcome, MIX_RULE);
	outcome->low_best = best_low(high, low, wanted);
}

struct mix_class_outcome mix_run_classes(const struct mix *mix)
{
	struct mix_class_outcome outcome = {.slowdown = 0};
	for (unsigned i = 0; i < mix->count; i++)
		outcome.alone[i] = mix_run_alone(&mix->kinds[i], SETTLE_S);
	for (unsigned i = 0; i < WAYS; i++)
		outcome.by[ways[i]] = mix_run_way(mix, ways[i], SETTLE_S);
	judge(mix, &outcome);
	return outcome;
}

/* ---- the table ---- */

static void run(const struct mix *mix, void *ret_outcome)
{
	*(struct mix_class_outcome *)ret_outcome = mix_run_classes(mix);
}

static double low_kept(const struct mix_class_outcome *outcome)
{
	return outcome->low / outcome->low_best;
}

static double fault(const void *of)
{
	const struct mix_class_outcome *outcome = of;
	return fmax(outcome->slowdown / TARGET, 1 / low_kept(outcome));
}

void mix_print_classes(unsigned number, const struct mix *mix, const struct mix_class_outcome *outcome)
{
	printf("mix %u: high slowed down %.2f (seen: %.2f), low %.3f (%.2f of the best part held), held for %.2f\n",
	       number, outcome->slowdown, outcome->by[MIX_RULE].seen_slowdown, outcome->low, low_kept(outcome),
	       outcome->by[MIX_RULE].held_part);
	for (unsigned i = 0; i < mix->count; i++) {
		mix_print_kind(&mix->kinds[i], &outcome->alone[i]);
		printf("  native %.3f  rule %.3f  held 0 %.3f  0.5 %.3f  1 %.3f\n",
		       mix_class_pace(mix, outcome, MIX_NATIVE, i), mix_class_pace(mix, outcome, MIX_RULE, i),
		       mix_class_pace(mix, outcome, MIX_HELD_NONE, i), mix_class_pace(mix, outcome, MIX_HELD_HALF, i),
		       mix_class_pace(mix, outcome, MIX_HELD_ALL, i));
	}
}

static void print(unsigned number, const struct mix *mix, const void *outcome)
{
	mix_print_classes(number, mix, outcome);
}

static void print_all(uint64_t seed, unsigned count, const void *all)
{
	const struct mix_class_outcome *outcomes = all;
	double slowdowns[MIX_MOST_MIXES] = {0}, kept[MIX_MOST_MIXES] = {0};
	unsigned near = 0, good = 0;
	for (unsigned i = 0; i < count; i++) {
		slowdowns[i] = outcomes[i].slowdown;
		kept[i] = low_kept(&outcomes[i]);
		near += slowdowns[i] <= TARGET * NEAR;
		good += kept[i] >= LOW_KEEPS;
	}
	printf(
	    "seed %llu, %u mixes with classes: high slowed down by median %.2f, p90 %.2f, worst %.2f; at most %.2f in "
	    "%.0f %%\n",
	    (unsigned long long)seed, count, mix_quantile(slowdowns, count, 0.5), mix_quantile(slowdowns, count, 0.9),
	    mix_quantile(slowdowns, count, 1), TARGET * NEAR, 100.0 * near / count);
	printf("low, of the best part held that slows high down as much: median %.2f, p10 %.2f, worst %.2f; at least "
	       "%.2f in %.0f %%\n",
	       mix_quantile(kept, count, 0.5), mix_quantile(kept, count, 0.1), mix_quantile(kept, count, 0), LOW_KEEPS,
	       100.0 * good / count);
}

const struct mix_table mix_classes_table = {.name = "classes",
					    .outcome_bytes = sizeof(struct mix_class_outcome),
					    .draw = mix_draw_classes,
					    .run = run,
					    .fault = fault,
					    .print = print,
					    .print_all = print_all};

/* ---- short requests ---- */

/* Two programs: the first answers. */
static double latency_of(const struct mix_class_outcome *outcome, enum mix_way way)
{
	return outcome->by[way].latency_ns[0] / outcome->alone[0].latency_ns;
}

static double sparse_fault(const void *of)
{
	const struct mix_class_outcome *outcome = of;
	return fmax(latency_of(outcome, MIX_RULE) / ANSWER_MOST, LOW_LEAST / outcome->low);
}

static void print_sparse(uint64_t seed, unsigned count, const void *all)
{
	const struct mix_class_outcome *outcomes = all;
	double answers[MIX_MOST_MIXES] = {0}, native[MIX_MOST_MIXES] = {0}, lows[MIX_MOST_MIXES] = {0};
	unsigned quick = 0, kept = 0;
	for (unsigned i = 0; i < count; i++) {
		answers[i] = latency_of(&outcomes[i], MIX_RULE);
		native[i] = latency_of(&outcomes[i], MIX_NATIVE);
		lows[i] = outcomes[i].low;
		quick += answers[i] <= ANSWER_MOST;
		kept += lows[i] >= LOW_LEAST;
	}
	printf("seed %llu, %u mixes of short requests: p50 of alone: median %.2f, p90 %.2f, worst %.2f (native %.2f, "
	       "%.2f, "
	       "%.2f); at most %.2f in %.0f %%\n",
	       (unsigned long long)seed, count, mix_quantile(answers, count, 0.5), mix_quantile(answers, count, 0.9),
	       mix_quantile(answers, count, 1), mix_quantile(native, count, 0.5), mix_quantile(native, count, 0.9),
	       mix_quantile(native, count, 1), ANSWER_MOST, 100.0 * quick / count);
	printf("low, of alone: median %.2f, p10 %.2f, worst %.2f; at least %.2f in %.0f %%\n",
	       mix_quantile(lows, count, 0.5), mix_quantile(lows, count, 0.1), mix_quantile(lows, count, 0), LOW_LEAST,
	       100.0 * kept / count);
}

const struct mix_table mix_sparse_table = {.name = "sparse",
					   .outcome_bytes = sizeof(struct mix_class_outcome),
					   .draw = mix_draw_sparse,
					   .run = run,
					   .fault = sparse_fault,
					   .print = print,
					   .print_all = print_sparse};
