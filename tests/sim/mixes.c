/*
 * What the sharing rule loses on random mixes of programs, in model time (doc/share.md, "What the rule loses").
 *
 *   sim_mixes                              the check: some mixes
 *   sim_mixes --mixes 240 --seed 17        the worst of them, who is wronged, and a summary of all
 *   sim_mixes --only 12 --seed 17          one mix, in detail
 *   --of classes                           mixes with classes
 *   --of sparse                            short requests of a higher class
 *   --of caps                              mixes with caps
 *   --jobs 2                               so many at once
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mix_caps.h"
#include "mix_classes.h"
#include "mix_plain.h"
#include "test.h"

enum { MOST_JOBS = 64, WORST_SHOWN = 12, CHECKED_FIRST = 1, CHECKED_LAST = 2, CHECKED_SEED = 39 };

struct options {
	const struct mix_table *table;
	unsigned mixes, jobs;
	int only;
	uint64_t seed;
};

/* ---- tables ---- */

static const void *outcome_at(const struct options *options, const void *outcomes, unsigned number)
{
	return (const char *)outcomes + number * options->table->outcome_bytes;
}

struct fault {
	unsigned number;
	double fault;
};

static int compare_faults(const void *a, const void *b)
{
	double first = ((const struct fault *)a)->fault, second = ((const struct fault *)b)->fault;
	return (first < second) - (first > second);
}

static void print_worst(const struct options *options, const void *outcomes)
{
	struct fault faults[MIX_MOST_MIXES] = {{0, 0}};
	for (unsigned i = 0; i < options->mixes; i++)
		faults[i] = (struct fault){i, options->table->fault(outcome_at(options, outcomes, i))};
	qsort(faults, options->mixes, sizeof faults[0], compare_faults);
	for (unsigned i = 0; i < options->mixes && i < WORST_SHOWN; i++) {
		struct mix mix = options->table->draw(options->seed, faults[i].number);
		options->table->print(faults[i].number, &mix, outcome_at(options, outcomes, faults[i].number));
	}
}

static void run_one(const struct options *options, unsigned number, char *outcomes)
{
	void *outcome = outcomes + number * options->table->outcome_bytes;
	struct mix mix = options->table->draw(options->seed, number);
	options->table->run(&mix, outcome);
	fprintf(stderr, "mix %u: fault %.3f\n", number, options->table->fault(outcome));
}

/* Each job takes every so manyth mix. */
static void run_all(const struct options *options, char *outcomes)
{
	pid_t jobs[MOST_JOBS];
	for (unsigned job = 0; job < options->jobs; job++) {
		jobs[job] = fork();
		for (unsigned i = job; jobs[job] == 0 && i < options->mixes; i += options->jobs)
			run_one(options, i, outcomes);
		if (jobs[job] == 0)
			_exit(0);
	}
	for (unsigned job = 0; job < options->jobs; job++)
		waitpid(jobs[job], NULL, 0);
}

static int print_table(const struct options *options)
{
	size_t bytes = options->mixes * options->table->outcome_bytes;
	void *outcomes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcomes == MAP_FAILED)
		return 1;
	run_all(options, outcomes);
	print_worst(options, outcomes);
	options->table->print_all(options->seed, options->mixes, outcomes);
	munmap(outcomes, bytes);
	return 0;
}

static int print_one(const struct options *options)
{
	struct mix mix = options->table->draw(options->seed, (unsigned)options->only);
	void *outcome = calloc(1, options->table->outcome_bytes);
	if (!outcome)
		return 1;
	options->table->run(&mix, outcome);
	options->table->print((unsigned)options->only, &mix, outcome);
	free(outcome);
	return 0;
}

/* ---- the check ---- */

/* Two programs that wait for each kernel have 0.087 each on the card natively, 0.45 by visits (doc/share.md). */
TEST(programs_that_wait_for_each_kernel_are_visited)
{
	struct mix mix = {.count = 2};
	for (unsigned i = 0; i < mix.count; i++)
		mix.kinds[i] = (struct mix_kind){.name = "waits",
						 .launches = 1,
						 .kernel_ns = 5000,
						 .call_ns = 3800,
						 .pause_ns = 10000,
						 .streams = 1,
						 .weight_permille = 1000,
						 .seed = i + 1};
	struct mix_outcome outcome = mix_run_plain(&mix);
	mix_print_plain(0, &mix, &outcome);
	for (unsigned i = 0; i < mix.count; i++) {
		double native = mix_speed(&outcome.by[MIX_NATIVE], i, &outcome.alone[i]);
		double visits = mix_speed(&outcome.by[MIX_VISITS], i, &outcome.alone[i]);
		assert_true(native > 0.07 && native < 0.10);
		assert_true(visits > 0.40 && visits < 0.5);
	}
	assert_true(outcome.best == MIX_VISITS && outcome.by[MIX_RULE].ends_with_visits && mix_is_settled(&outcome));
	assert_true(outcome.regret < 0.05);
}

TEST(programs_that_launch_ahead_are_as_without_loadline)
{
	struct mix mix = {.count = 2};
	for (unsigned i = 0; i < mix.count; i++)
		mix.kinds[i] = (struct mix_kind){.name = "steps",
						 .launches = 200,
						 .kernel_ns = 20000 + 40000 * i,
						 .call_ns = 12000,
						 .pause_ns = 400000,
						 .drift = 0.05,
						 .streams = 1,
						 .weight_permille = 1000,
						 .seed = i + 1};
	struct mix_outcome outcome = mix_run_plain(&mix);
	mix_print_plain(1, &mix, &outcome);
	assert_false(outcome.by[MIX_RULE].ends_with_visits);
	for (unsigned i = 0; i < mix.count; i++) {
		double of_native =
		    mix_done(&outcome.by[MIX_RULE], i, 0, 1) / mix_done(&outcome.by[MIX_NATIVE], i, 0, 1);
		assert_true(of_native > 0.98 && of_native < 1.02);
	}
}

/* The figures that the table of doc/share.md must reach, for the worst. */
TEST(no_mix_loses_more_than_a_fifth)
{
	for (unsigned number = CHECKED_FIRST; number <= CHECKED_LAST; number++) {
		struct mix mix = mix_draw(CHECKED_SEED, number);
		struct mix_outcome outcome = mix_run_plain(&mix);
		mix_print_plain(number, &mix, &outcome);
		assert_true(outcome.regret < 0.20 && mix_is_settled(&outcome));
	}
}

/* A program of class high that has 0.04 of its speed beside another one, and one of class low that fills the card. */
TEST(a_higher_class_keeps_to_its_slowdown_and_the_lower_one_has_the_rest)
{
	struct mix mix = {.count = 2,
			  .kinds = {{.name = "waits",
				     .launches = 1,
				     .kernel_ns = 30000,
				     .call_ns = 4000,
				     .pause_ns = 18000,
				     .streams = 1,
				     .weight_permille = 1000,
				     .rank = LL_PRIORITY_HIGH,
				     .seed = 1},
				    {.name = "steps",
				     .launches = 250,
				     .kernel_ns = 24000,
				     .call_ns = 11000,
				     .pause_ns = 220000,
				     .streams = 1,
				     .weight_permille = 1000,
				     .rank = LL_PRIORITY_LOW,
				     .seed = 2}}};
	struct mix_class_outcome outcome = mix_run_classes(&mix);
	mix_print_classes(0, &mix, &outcome);
	assert_true(mix_class_pace(&mix, &outcome, MIX_NATIVE, 0) < 0.1);
	assert_true(mix_class_pace(&mix, &outcome, MIX_HELD_ALL, 0) > 0.95);
	assert_true(mix_class_pace(&mix, &outcome, MIX_HELD_ALL, 1) < 0.05);
	assert_true(outcome.slowdown > 1.1 && outcome.slowdown < 1.6);
	assert_true(outcome.low > 0.7 * outcome.low_best);
}

/* Two programs that fill the card; slices give each of them 0.47. */
TEST(caps_hold_and_nobody_stands_still_for_long)
{
	static const unsigned caps[] = {300, 600};
	struct mix mix = {.count = 2};
	for (unsigned i = 0; i < mix.count; i++)
		mix.kinds[i] = (struct mix_kind){.name = "flood",
						 .launches = 1,
						 .kernel_ns = i ? 2000000 : 200000,
						 .call_ns = 4000,
						 .ahead = 10,
						 .streams = 1,
						 .weight_permille = 1000,
						 .cap_permille = caps[i],
						 .seed = i + 1};
	struct mix_cap_outcome outcome = mix_run_caps(&mix);
	mix_print_caps(0, &mix, &outcome);
	assert_true(outcome.alone[0].used > 0.95 && outcome.native.used[0] > 0.4);
	assert_true(outcome.over < 0.015 && outcome.stall < 1);
	assert_true(outcome.used > 0.97 * outcome.wanted);
}

/* ---- main ---- */

static const struct mix_table *find_table(const char *name)
{
	static const struct mix_table *const tables[] = {&mix_plain_table, &mix_classes_table, &mix_sparse_table,
							 &mix_caps_table};
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		if (strcmp(tables[i]->name, name) == 0)
			return tables[i];
	}
	return NULL;
}

static bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
	    {"mixes", required_argument, NULL, 'm'}, {"seed", required_argument, NULL, 's'},
	    {"only", required_argument, NULL, 'o'},  {"jobs", required_argument, NULL, 'j'},
	    {"of", required_argument, NULL, 't'},    {0}};
	for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (name) {
		case 'm':
			options->mixes = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			options->seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			options->only = (int)strtol(optarg, NULL, 10);
			break;
		case 'j':
			options->jobs = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 't':
			options->table = find_table(optarg);
			break;
		default:
			return false;
		}
	}
	return options->table && options->mixes <= MIX_MOST_MIXES && options->jobs >= 1 && options->jobs <= MOST_JOBS;
}

int main(int argc, char **argv)
{
	struct options options = {.table = &mix_plain_table, .jobs = 1, .only = -1, .seed = 1};
	if (!read_options(argc, argv, &options))
		return 2;
	if (options.only >= 0)
		return print_one(&options);
	return options.mixes ? print_table(&options) : tests_run(argc, argv);
}
