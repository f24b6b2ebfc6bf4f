/*
 * The queue in model time, against strict order and against three rules that serve no order.
 *
 *     queue_model [--jobs N] [--seeds N] [--seed FIRST] [--spread MINUTES] [--forks N] [--least RATIO]
 *
 * For each seed and each kind of machine: N jobs of three users with random sizes and times, on 8 cards, arrive within
 * the spread. The program fails if
 *   - a job never starts;
 *   - the running jobs break a limit: memory or compute of a card, the guarantee of another tenant, a limit;
 *   - a job starts later than in strict order. At an arrival the order is frozen, and a copy of all jobs is run in
 * strict order from there on, by arithmetic of its own (rules.c). No start of the plan may be later than in the copy,
 * and no start until the next arrival either. --forks: at how many arrivals this is done; the last one is always among
 * them;
 *   - on the machines without limits (by card, by memory) the use (work / cards / time until the last end) is below
 * 0.95 of the best of first fit, best fit and EASY backfill on the same arrivals. --least: another ratio. With few jobs
 * the last ones, which run alone, decide. On the department's machine the limits of tenants and users decide when the
 *     last jobs run; its ratio is printed.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

struct settings {
	size_t jobs, seeds, forks;
	uint64_t first_seed, spread_ns;
	double least_ratio;
};

struct model {
	const struct settings *settings;
	struct world_machine world;
	struct world_job *jobs;
	struct ll_queue queue;
	struct world_job **running;
	uint64_t *bounds_ns; /* start in strict order, by job; WORLD_NEVER: unknown */
	size_t arrived;
	size_t late, faults, compared;
};

static const struct ll_queue_rules rules = {
    4, {LL_QUEUE_BY_RESERVATION, LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_FAIRSHARE, LL_QUEUE_BY_AGE}};

static struct world_job *job_of(const struct model *model, const struct ll_queue_job *facts)
{
	return &model->jobs[facts->number - 1];
}

/* ---- comparison with strict order ---- */

/* Copies of the running jobs and of the waiting ones in their order, which run in strict order. */
static void compare_with_strict(struct model *model, uint64_t now_ns)
{
	const struct ll_queue *queue = &model->queue;
	struct world_job *copies = calloc(queue->count + 1, sizeof *copies);
	struct world_job **list = calloc(queue->count + 1, sizeof *list);
	for (size_t i = 0; i < queue->count; i++) {
		copies[i] = *job_of(model, queue->jobs[i]);
		list[i] = &copies[i];
	}
	world_run(&model->world, list, queue->count, now_ns, WORLD_STRICT);
	for (size_t i = queue->running_count; i < queue->count; i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		model->bounds_ns[job->number - 1] = copies[i].start_ns;
		model->compared++;
		if (job->planned.begin_ns > copies[i].start_ns || job->strict.begin_ns != copies[i].start_ns) {
			model->late++;
			fprintf(stderr, "job %llu: planned in %.1f min, strict order in %.1f min (own: %.1f)\n",
				(unsigned long long)job->number, (double)(job->planned.begin_ns - now_ns) / MINUTE_NS,
				(double)(copies[i].start_ns - now_ns) / MINUTE_NS,
				(double)(job->strict.begin_ns - now_ns) / MINUTE_NS);
		}
	}
	free(copies);
	free(list);
}

/* Between two comparisons a newer arrival may go ahead. The old bounds are void then. */
static void forget_bounds(struct model *model)
{
	for (size_t i = 0; i < model->settings->jobs; i++)
		model->bounds_ns[i] = WORLD_NEVER;
}

/* ---- a run ---- */

static void check_running(struct model *model)
{
	for (size_t i = 0; i < model->queue.running_count; i++)
		model->running[i] = job_of(model, model->queue.jobs[i]);
	const char *fault = world_fault(&model->world, model->running, model->queue.running_count);
	if (fault) {
		model->faults++;
		fprintf(stderr, "broken: %s\n", fault);
	}
}

static void end_jobs(struct model *model, uint64_t now_ns)
{
	for (size_t i = 0; i < model->queue.running_count;) {
		struct ll_queue_job *job = model->queue.jobs[i];
		if (ll_queue_end_ns(job) <= now_ns)
			ll_queue_remove(&model->queue, job, now_ns);
		else
			i++;
	}
}

/* Returns whether jobs have come. */
static bool let_arrive(struct model *model, uint64_t now_ns)
{
	size_t before = model->arrived;
	while (model->arrived < model->settings->jobs && model->jobs[model->arrived].arrival_ns <= now_ns)
		ll_queue_add(&model->queue, &model->jobs[model->arrived++].facts);
	return model->arrived > before;
}

static void start_due(struct model *model, uint64_t now_ns)
{
	struct ll_queue_job *due;
	while ((due = ll_queue_due(&model->queue, now_ns))) {
		struct world_job *job = job_of(model, due);
		ll_queue_start(&model->queue, due, now_ns);
		job->start_ns = now_ns;
		job->cards = due->planned.cards;
		model->late += now_ns > model->bounds_ns[due->number - 1];
		check_running(model);
	}
}

static uint64_t next_event(const struct model *model, uint64_t now_ns)
{
	uint64_t next_ns = ll_queue_next_ns(&model->queue);
	if (model->arrived < model->settings->jobs && model->jobs[model->arrived].arrival_ns < next_ns)
		next_ns = model->jobs[model->arrived].arrival_ns;
	for (size_t i = 0; i < model->queue.running_count; i++) {
		uint64_t end_ns = ll_queue_end_ns(model->queue.jobs[i]);
		next_ns = end_ns > now_ns && end_ns < next_ns ? end_ns : next_ns;
	}
	return next_ns;
}

/* Whether the copy in strict order is run at this arrival. */
static bool is_fork(const struct model *model)
{
	size_t jobs = model->settings->jobs, forks = model->settings->forks;
	return model->arrived == jobs || (forks && model->arrived % (jobs / forks + 1) == 0);
}

static uint64_t run_queue(struct model *model)
{
	uint64_t last_ns = 0;
	for (uint64_t now_ns = model->jobs[0].arrival_ns; now_ns != WORLD_NEVER; now_ns = next_event(model, now_ns)) {
		last_ns = now_ns;
		end_jobs(model, now_ns);
		bool is_new = let_arrive(model, now_ns);
		ll_queue_charge(&model->queue, now_ns, 7 * 24 * 60 * MINUTE_NS);
		if (is_new)
			ll_queue_arrange(&model->queue, &rules, now_ns);
		ll_queue_plan(&model->queue, now_ns);
		if (is_new)
			forget_bounds(model);
		if (is_new && is_fork(model))
			compare_with_strict(model, now_ns);
		start_due(model, now_ns);
	}
	return last_ns;
}

/* The end of the last job by one of the other rules. */
static uint64_t run_rule(const struct model *model, enum world_rule rule)
{
	size_t count = model->settings->jobs;
	struct world_job *copies = malloc(count * sizeof *copies);
	struct world_job **list = malloc(count * sizeof *list);
	memcpy(copies, model->jobs, count * sizeof *copies);
	for (size_t i = 0; i < count; i++) {
		copies[i].start_ns = WORLD_NEVER;
		list[i] = &copies[i];
	}
	uint64_t end_ns = world_run(&model->world, list, count, copies[0].arrival_ns, rule);
	free(copies);
	free(list);
	return end_ns;
}

/* Returns the ratio of our use to the best of the others, and prints the row. */
static double report(const struct model *model, uint64_t seed, enum world_kind kind, uint64_t end_ns)
{
	double work_ns = world_work_ns(&model->world, model->jobs, model->settings->jobs) / WORLD_CARDS;
	uint64_t first_ns = model->jobs[0].arrival_ns, best_ns = WORLD_NEVER;
	printf("%4llu  %-10s  %.3f", (unsigned long long)seed, world_kind_names[kind],
	       work_ns / (double)(end_ns - first_ns));
	for (enum world_rule rule = WORLD_STRICT; rule < WORLD_RULES; rule++) {
		uint64_t other_ns = run_rule(model, rule);
		printf("  %.3f", work_ns / (double)(other_ns - first_ns));
		if (rule != WORLD_STRICT && other_ns < best_ns)
			best_ns = other_ns;
	}
	double ratio = (double)(best_ns - first_ns) / (double)(end_ns - first_ns);
	printf("  %.3f  %zu of %zu\n", ratio, model->late, model->compared);
	fflush(stdout);
	return ratio;
}

/* Returns whether the run is as it must be. */
static bool run_one(const struct settings *settings, uint64_t seed, enum world_kind kind, double *ret_ratio)
{
	struct model model = {.settings = settings};
	world_machine_make(&model.world, kind);
	model.jobs = world_jobs_make(&model.world, settings->jobs, seed, settings->spread_ns);
	model.running = calloc(settings->jobs, sizeof *model.running);
	model.bounds_ns = calloc(settings->jobs, sizeof *model.bounds_ns);
	ll_queue_init(&model.queue, &model.world.machine);
	uint64_t end_ns = run_queue(&model);
	size_t left = model.queue.count + settings->jobs - model.arrived;
	if (left)
		fprintf(stderr, "%zu jobs never ended\n", left);
	*ret_ratio = report(&model, seed, kind, end_ns);
	ll_queue_fini(&model.queue);
	free(model.jobs);
	free(model.running);
	free(model.bounds_ns);
	return !left && !model.faults && !model.late &&
	       (kind == WORLD_DEPARTMENT || *ret_ratio >= settings->least_ratio);
}

static int compare_ratios(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return (first > second) - (first < second);
}

static void report_spread(enum world_kind kind, double *ratios, size_t count)
{
	qsort(ratios, count, sizeof *ratios, compare_ratios);
	printf("%s: use against the best of the three: least %.3f, median %.3f, most %.3f\n", world_kind_names[kind],
	       ratios[0], ratios[count / 2], ratios[count - 1]);
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {
	    {"jobs", required_argument, NULL, 'j'},
	    {"seeds", required_argument, NULL, 'n'},
	    {"seed", required_argument, NULL, 's'},
	    {"spread", required_argument, NULL, 'p'},
	    {"forks", required_argument, NULL, 'f'},
	    {"least", required_argument, NULL, 'l'},
	    {NULL, 0, NULL, 0},
	};
	int letter;
	while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t value = letter == '?' ? 0 : strtoull(optarg, NULL, 10);
		if (letter == 'j')
			settings->jobs = value;
		else if (letter == 'n')
			settings->seeds = value;
		else if (letter == 's')
			settings->first_seed = value;
		else if (letter == 'p')
			settings->spread_ns = value * MINUTE_NS;
		else if (letter == 'f')
			settings->forks = value;
		else if (letter == 'l')
			settings->least_ratio = strtod(optarg, NULL);
		else
			return false;
	}
	return settings->jobs && settings->seeds;
}

int main(int argc, char **argv)
{
	struct settings settings = {
	    .jobs = 500, .seeds = 1, .forks = 10, .first_seed = 1, .spread_ns = 60 * MINUTE_NS, .least_ratio = 0.95};
	bool is_good = true;
	if (!read_settings(argc, argv, &settings)) {
		fputs("usage: queue_model [--jobs N] [--seeds N] [--seed FIRST] [--spread MINUTES] [--forks N] "
		      "[--least RATIO]\n",
		      stderr);
		return 2;
	}
	double *ratios = calloc(settings.seeds * WORLD_KINDS, sizeof *ratios);
	printf("seed  machine     queue  strict  first  best   EASY   ratio  later than in strict order\n");
	for (size_t i = 0; i < settings.seeds; i++) {
		for (enum world_kind kind = WORLD_BY_CARD; kind < WORLD_KINDS; kind++)
			is_good &= run_one(&settings, settings.first_seed + i, kind,
					   &ratios[(size_t)kind * settings.seeds + i]);
	}
	for (enum world_kind kind = WORLD_BY_CARD; kind < WORLD_KINDS; kind++)
		report_spread(kind, ratios + (size_t)kind * settings.seeds, settings.seeds);
	free(ratios);
	return is_good ? 0 : 1;
}
