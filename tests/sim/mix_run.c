#include "mix_run.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "../unit/test.h"
#include "card/defaults.h"
#include "card/engine.h"

/* The other ways need no time to settle but for queues that fill. */
#define OTHERS_SETTLE_NS (1 * LL_NS_PER_S)
#define ALONE_NS (1 * LL_NS_PER_S)
#define WINDOWS_BEGIN_NS (MIX_BEGIN_NS + MIX_SETTLE_S * LL_NS_PER_S)
#define LEAST_SHARE 0.93
/* A program that completes nothing counts as this many launches. */
#define NEXT_TO_NONE 0.25
#define PERMILLE 1000.0

struct run {
	struct sim_world *w;
	struct mix_program programs[MIX_MOST];
	unsigned count;
	bool has_arbiter;
	struct mix_arbiter arbiter;
};

static struct run *run_begin(const struct mix_kind *kinds, unsigned count, enum mix_way way, uint64_t now_ns)
{
	static struct run run;
	memset(&run, 0, sizeof run);
	run.w = mmap(NULL, sizeof *run.w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(run.w != MAP_FAILED);
	sim_world_init(run.w, now_ns, 0);
	run.count = count;
	run.has_arbiter = way != MIX_NATIVE;
	for (unsigned i = 0; i < count; i++)
		mix_program_init(&run.programs[i], run.w, &kinds[i]);
	if (run.has_arbiter)
		mix_arbiter_init(&run.arbiter, run.programs, count,
				 way == MIX_VISITS ? LL_LIMIT_SHARING_VISITS : LL_LIMIT_SHARING_MEASURED);
	return &run;
}

static void run_end(struct run *run)
{
	if (run->has_arbiter)
		mix_arbiter_fini(&run->arbiter);
	munmap(run->w, sizeof *run->w);
}

static uint64_t next_ns(const struct run *run)
{
	uint64_t next_ns = sim_next_event_ns(run->w);
	for (unsigned i = 0; i < run->count; i++) {
		uint64_t at_ns = mix_program_next_ns(&run->programs[i]);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	uint64_t arbiter_ns = run->has_arbiter ? mix_arbiter_next_ns(&run->arbiter) : SIM_NEVER;
	return arbiter_ns < next_ns ? arbiter_ns : next_ns;
}

static void run_until(struct run *run, uint64_t until_ns)
{
	struct sim_world *w = run->w;
	while (w->now_ns < until_ns) {
		uint64_t to_ns = next_ns(run);
		bool has_work = false;
		sim_advance(w, to_ns < until_ns ? to_ns : until_ns, 0);
		for (unsigned i = 0; i < run->count; i++)
			has_work |= mix_program_go_on(&run->programs[i]);
		if (run->has_arbiter)
			mix_arbiter_go_on(&run->arbiter, w->now_ns);
		if (has_work) /* it begins now */
			sim_advance(w, w->now_ns, 0);
	}
}

static void run_windows(struct run *run, double done[MIX_MOST][MIX_WINDOWS])
{
	uint64_t before[MIX_MOST] = {0};
	run_until(run, WINDOWS_BEGIN_NS);
	for (unsigned window = 0; window < MIX_WINDOWS; window++) {
		for (unsigned i = 0; i < run->count; i++)
			before[i] = run->programs[i].completed;
		run_until(run, WINDOWS_BEGIN_NS + (window + 1) * MIX_WINDOW_NS);
		for (unsigned i = 0; i < run->count; i++)
			done[i][window] = (double)(run->programs[i].completed - before[i]);
	}
}

static double run_alone(const struct mix_kind *kind)
{
	struct run *run = run_begin(kind, 1, MIX_NATIVE, WINDOWS_BEGIN_NS - LL_NS_PER_S / 4);
	run_until(run, WINDOWS_BEGIN_NS);
	double before = (double)run->programs[0].completed;
	run_until(run, WINDOWS_BEGIN_NS + ALONE_NS);
	double rate = ((double)run->programs[0].completed - before) * (double)LL_NS_PER_S / (double)ALONE_NS;
	run_end(run);
	return rate;
}

/* ---- the verdict ---- */

static double done_in(const struct mix_outcome *outcome, enum mix_way way, unsigned program, unsigned first,
		      unsigned step)
{
	double done = 0;
	for (unsigned window = first; window < MIX_WINDOWS; window += step)
		done += outcome->done[way][program][window];
	return done > NEXT_TO_NONE ? done : NEXT_TO_NONE;
}

double mix_speed(const struct mix_outcome *outcome, enum mix_way way, unsigned program)
{
	double seconds = MIX_WINDOWS * (double)MIX_WINDOW_NS / (double)LL_NS_PER_S;
	return done_in(outcome, way, program, 0, 1) / seconds / outcome->alone[program];
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
			log(done_in(outcome, way, i, first, step) / done_in(outcome, over, i, first, step));
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
		double least = LEAST_SHARE * fmin(mix_speed(outcome, MIX_NATIVE, i), share);
		outcome->wrongs[i] = mix_speed(outcome, MIX_RULE, i) < least;
	}
}

static void note_choice(const struct mix_arbiter *arbiter, struct mix_outcome *outcome)
{
	outcome->settled_s = (double)(arbiter->chosen_ns - MIX_BEGIN_NS) / (double)LL_NS_PER_S;
	outcome->ends_with_visits = arbiter->gives_visits;
	outcome->why = arbiter->card.regime.why;
	outcome->gain = arbiter->card.regime.gain;
}

struct mix_outcome mix_run(const struct mix *mix)
{
	struct mix_outcome outcome = {.regret = 0};
	for (unsigned i = 0; i < mix->count; i++)
		outcome.alone[i] = run_alone(&mix->kinds[i]);
	for (enum mix_way way = MIX_NATIVE; way < MIX_WAYS; way++) {
		uint64_t from_ns = way == MIX_RULE ? MIX_BEGIN_NS : WINDOWS_BEGIN_NS - OTHERS_SETTLE_NS;
		struct run *run = run_begin(mix->kinds, mix->count, way, from_ns);
		run_windows(run, outcome.done[way]);
		if (way == MIX_RULE)
			note_choice(&run->arbiter, &outcome);
		run_end(run);
	}
	judge(mix, &outcome);
	return outcome;
}
