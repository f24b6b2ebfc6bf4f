#include "mix_plain.h"

#include <math.h>
#include <stdio.h>

/* The rule has so long to measure; it is quick if it needs no more than this. */
enum { SETTLE_S = 4 };
#define SETTLED_S 3.0
#define LEAST_SHARE 0.93

static const char *const whys[] = {
    [LL_REGIME_NO_REASON] = "no reason", [LL_REGIME_NOT_MEASURED] = "not measured", [LL_REGIME_MEASURES] = "measures",
    [LL_REGIME_PAYS] = "pays",           [LL_REGIME_PAYS_NOT] = "pays not",         [LL_REGIME_TOO_DEEP] = "too deep",
    [LL_REGIME_TOO_MANY] = "too many",
};

/* ---- the verdict ---- */

static double speed(const struct mix_outcome *outcome, enum mix_way way, unsigned program)
{
	return mix_speed(&outcome->by[way], program, &outcome->alone[program]);
}

static double weights_of(const struct mix *mix)
{
	double sum = 0;
	for (unsigned i = 0; i < mix->count; i++)
		sum += mix->kinds[i].weight_permille;
	return sum;
}

/* The logarithm of one way's geometric mean of speeds over another's. */
static double log_gain(const struct mix *mix, const struct mix_outcome *outcome, enum mix_way way, enum mix_way over,
		       unsigned first, unsigned step)
{
	double gain = 0;
	for (unsigned i = 0; i < mix->count; i++)
		gain += mix->kinds[i].weight_permille / weights_of(mix) *
			log(mix_done(&outcome->by[way], i, first, step) / mix_done(&outcome->by[over], i, first, step));
	return gain;
}

static enum mix_way best_of(const struct mix *mix, const struct mix_outcome *outcome, unsigned first, unsigned step)
{
	return log_gain(mix, outcome, MIX_VISITS, MIX_NATIVE, first, step) > 0 ? MIX_VISITS : MIX_NATIVE;
}

/* The better way is chosen on one half of the windows, and judged on the other. */
static void judge(const struct mix *mix, struct mix_outcome *outcome)
{
	double gain = 0;
	for (unsigned half = 0; half < 2; half++)
		gain += log_gain(mix, outcome, MIX_RULE, best_of(mix, outcome, half, 2), 1 - half, 2) / 2;
	outcome->regret = 1 - exp(gain);
	outcome->best = best_of(mix, outcome, 0, 1);
	for (unsigned i = 0; i < mix->count; i++) {
		double share = mix->kinds[i].weight_permille / weights_of(mix);
		double least = LEAST_SHARE * fmin(speed(outcome, MIX_NATIVE, i), share);
		outcome->wrongs[i] = speed(outcome, MIX_RULE, i) < least;
	}
}

struct mix_outcome mix_run_plain(const struct mix *mix)
{
	struct mix_outcome outcome = {.regret = 0};
	for (unsigned i = 0; i < mix->count; i++)
		outcome.alone[i] = mix_run_alone(&mix->kinds[i], SETTLE_S);
	for (enum mix_way way = MIX_NATIVE; way <= MIX_RULE; way++)
		outcome.by[way] = mix_run_way(mix, way, SETTLE_S);
	judge(mix, &outcome);
	return outcome;
}

bool mix_is_settled(const struct mix_outcome *outcome)
{
	return outcome->by[MIX_RULE].settled_s <= SETTLED_S;
}

/* ---- the table ---- */

static void run(const struct mix *mix, void *ret_outcome)
{
	*(struct mix_outcome *)ret_outcome = mix_run_plain(mix);
}

static double fault(const void *outcome)
{
	return ((const struct mix_outcome *)outcome)->regret;
}

void mix_print_plain(unsigned number, const struct mix *mix, const struct mix_outcome *outcome)
{
	const struct mix_reading *rule = &outcome->by[MIX_RULE];
	printf("mix %u: regret %.1f %%, best %s, rule ends with %s (%s, gain %.2f), settled at %.2f s\n", number,
	       100 * outcome->regret, outcome->best == MIX_VISITS ? "visits" : "native",
	       rule->ends_with_visits ? "visits" : "slices", whys[rule->why], rule->gain, rule->settled_s);
	for (unsigned i = 0; i < mix->count; i++) {
		mix_print_kind(&mix->kinds[i], &outcome->alone[i]);
		printf("  native %.3f  visits %.3f  rule %.3f%s\n", speed(outcome, MIX_NATIVE, i),
		       speed(outcome, MIX_VISITS, i), speed(outcome, MIX_RULE, i),
		       outcome->wrongs[i] ? "  WRONGED" : "");
	}
}

static void print(unsigned number, const struct mix *mix, const void *outcome)
{
	mix_print_plain(number, mix, outcome);
}

static void print_wronged(uint64_t seed, unsigned count, const struct mix_outcome *outcomes)
{
	unsigned wronged = 0, tenants = 0;
	for (unsigned number = 0; number < count; number++) {
		const struct mix_outcome *outcome = &outcomes[number];
		struct mix mix = mix_draw(seed, number);
		tenants += mix.count;
		for (unsigned i = 0; i < mix.count; i++) {
			if (!outcome->wrongs[i])
				continue;
			wronged++;
			printf("  mix %u: %s: native %.3f, rule %.3f\n", number, mix.kinds[i].name,
			       speed(outcome, MIX_NATIVE, i), speed(outcome, MIX_RULE, i));
		}
	}
	printf("tenants below 0.93 x min(native, w/W): %u of %u\n", wronged, tenants);
}

static void print_all(uint64_t seed, unsigned count, const void *all)
{
	const struct mix_outcome *outcomes = all;
	double regrets[MIX_MOST_MIXES] = {0};
	unsigned settled = 0, visits = 0;
	for (unsigned i = 0; i < count; i++) {
		regrets[i] = outcomes[i].regret;
		settled += mix_is_settled(&outcomes[i]);
		visits += outcomes[i].best == MIX_VISITS;
	}
	print_wronged(seed, count, outcomes);
	printf("seed %llu, %u mixes (%u best by visits): regret median %.1f, p90 %.1f, worst %.1f %%; settled in 3 s "
	       "%.0f %%\n",
	       (unsigned long long)seed, count, visits, 100 * mix_quantile(regrets, count, 0.5),
	       100 * mix_quantile(regrets, count, 0.9), 100 * mix_quantile(regrets, count, 1), 100.0 * settled / count);
}

const struct mix_table mix_plain_table = {.name = "plain",
					  .outcome_bytes = sizeof(struct mix_outcome),
					  .draw = mix_draw,
					  .run = run,
					  .fault = fault,
					  .print = print,
					  .print_all = print_all};
