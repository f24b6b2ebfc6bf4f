#include "mix_caps.h"

#include <math.h>
#include <stdio.h>

enum { SETTLE_S = 4 };
/* Of all time. */
#define OVER_MOST 0.015
#define STALL_NS (20.0 * LL_NS_PER_MS)
/* Slices and visits give no more than this part of the card (doc/share.md). */
#define FULL 0.9

/* ---- the verdict ---- */

static double cap_of(const struct mix_kind *kind)
{
	return kind->cap_permille / 1000.0;
}

static void judge_program(const struct mix *mix, unsigned i, struct mix_cap_outcome *outcome)
{
	const struct mix_kind *kind = &mix->kinds[i];
	double used = outcome->rule.used[i];
	if (!kind->cap_permille) {
		outcome->caps = 1;
		return;
	}
	double most_ns = mix_longest_kernel_ns(kind) / cap_of(kind) + STALL_NS;
	outcome->over = fmax(outcome->over, used - cap_of(kind));
	outcome->stall = fmax(outcome->stall, outcome->rule.stall_ns[i] / most_ns);
	outcome->caps = fmin(1, outcome->caps + cap_of(kind));
	outcome->used += used;
	outcome->wanted += fmin(cap_of(kind), outcome->alone[i].used);
}

struct mix_cap_outcome mix_run_caps(const struct mix *mix)
{
	struct mix_cap_outcome outcome = {.over = -1};
	for (unsigned i = 0; i < mix->count; i++)
		outcome.alone[i] = mix_run_alone(&mix->kinds[i], SETTLE_S);
	outcome.native = mix_run_way(mix, MIX_NATIVE, SETTLE_S);
	outcome.rule = mix_run_way(mix, MIX_RULE, SETTLE_S);
	for (unsigned i = 0; i < mix->count; i++)
		judge_program(mix, i, &outcome);
	return outcome;
}

/* ---- the table ---- */

static void run(const struct mix *mix, void *ret_outcome)
{
	*(struct mix_cap_outcome *)ret_outcome = mix_run_caps(mix);
}

static double fault(const void *of)
{
	const struct mix_cap_outcome *outcome = of;
	return fmax(outcome->over / OVER_MOST, outcome->stall);
}

void mix_print_caps(unsigned number, const struct mix *mix, const struct mix_cap_outcome *outcome)
{
	printf(
	    "mix %u: caps %.2f, over by %.1f points at most, %.3f used of %.3f, longest wait %.2f of what is allowed\n",
	    number, outcome->caps, 100 * outcome->over, outcome->used, outcome->wanted, outcome->stall);
	for (unsigned i = 0; i < mix->count; i++) {
		mix_print_kind(&mix->kinds[i], &outcome->alone[i]);
		printf("  GPU time alone %.3f  native %.3f  rule %.3f, waits %.1f ms\n", outcome->alone[i].used,
		       outcome->native.used[i], outcome->rule.used[i], outcome->rule.stall_ns[i] / 1e6);
	}
}

static void print(unsigned number, const struct mix *mix, const void *outcome)
{
	mix_print_caps(number, mix, outcome);
}

static void print_some(const struct mix_cap_outcome *outcomes, unsigned count, bool are_full)
{
	double overs[MIX_MOST_MIXES] = {0}, stalls[MIX_MOST_MIXES] = {0}, parts[MIX_MOST_MIXES] = {0};
	unsigned mixes = 0, kept = 0, quick = 0;
	for (unsigned i = 0; i < count; i++) {
		if ((outcomes[i].caps > FULL) != are_full)
			continue;
		overs[mixes] = 100 * outcomes[i].over;
		stalls[mixes] = outcomes[i].stall;
		parts[mixes++] = outcomes[i].used / outcomes[i].wanted;
		kept += outcomes[i].over <= OVER_MOST;
		quick += outcomes[i].stall <= 1;
	}
	printf("caps %s 90 %%, %u mixes: over by median %.1f, p90 %.1f, worst %.1f points, at most %.1f in %u; longest "
	       "wait, "
	       "of kernel / cap + 20 ms: median %.2f, p90 %.2f, worst %.2f, at most 1 in %u; used of what they want: "
	       "median "
	       "%.2f, p10 %.2f, worst %.2f\n",
	       are_full ? "over" : "up to", mixes, mix_quantile(overs, mixes, 0.5), mix_quantile(overs, mixes, 0.9),
	       mix_quantile(overs, mixes, 1), 100 * OVER_MOST, kept, mix_quantile(stalls, mixes, 0.5),
	       mix_quantile(stalls, mixes, 0.9), mix_quantile(stalls, mixes, 1), quick, mix_quantile(parts, mixes, 0.5),
	       mix_quantile(parts, mixes, 0.1), mix_quantile(parts, mixes, 0));
}

static void print_all(uint64_t seed, unsigned count, const void *outcomes)
{
	printf("seed %llu, %u mixes with caps\n", (unsigned long long)seed, count);
	print_some(outcomes, count, false);
	print_some(outcomes, count, true);
}

const struct mix_table mix_caps_table = {.name = "caps",
					 .outcome_bytes = sizeof(struct mix_cap_outcome),
					 .draw = mix_draw_caps,
					 .run = run,
					 .fault = fault,
					 .print = print,
					 .print_all = print_all};
