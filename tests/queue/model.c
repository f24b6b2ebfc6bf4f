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
 * the last ones, which run alone, decide: so the ratio until nine tenths of the work are done is printed beside. On the
 * department's machine the limits of tenants and users decide when the last jobs run; its ratio is printed.
 */
#include <getopt.h>
#include <math.h>
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

/* How long a run takes until all work is done, and until nine tenths of it are. */
struct lengths {
	double all_ns, most_ns;
};

static double work_until(const struct model *model, const struct world_job *jobs, double passed_ns)
{
	double first_ns = (double)model->jobs[0].arrival_ns, work_ns = 0;
	for (size_t i = 0; i < model->settings->jobs; i++) {
		double ran_ns = first_ns + passed_ns - (double)jobs[i].start_ns;
		double part = ran_ns / (double)jobs[i].facts.duration_ns;
		work_ns += world_work_ns(&model->world, &jobs[i], 1) * (part < 0 ? 0 : part > 1 ? 1 : part);
	}
	return work_ns;
}

static struct lengths lengths_of(const struct model *model, const struct world_job *jobs, uint64_t end_ns)
{
	static const double most = 0.9;
	enum { STEPS = 40 };
	double all_ns = (double)(end_ns - model->jobs[0].arrival_ns), low_ns = 0, high_ns = all_ns;
	double wanted_ns = most * world_work_ns(&model->world, jobs, model->settings->jobs);
	for (int i = 0; i < STEPS; i++) {
		double middle_ns = (low_ns + high_ns) / 2;
		if (work_until(model, jobs, middle_ns) < wanted_ns)
			low_ns = middle_ns;
		else
			high_ns = middle_ns;
	}
	return (struct lengths){all_ns, high_ns};
}

static struct lengths run_rule(const struct model *model, enum world_rule rule)
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
	struct lengths lengths = lengths_of(model, copies, end_ns);
	free(copies);
	free(list);
	return lengths;
}

/* Our use against the best of the others, and the same until nine tenths of the work are done. */
struct ratios {
	double all, most;
};

/* Prints the row. */
static struct ratios report(const struct model *model, uint64_t seed, enum world_kind kind, uint64_t end_ns)
{
	double work_ns = world_work_ns(&model->world, model->jobs, model->settings->jobs) / WORLD_CARDS;
	struct lengths own = lengths_of(model, model->jobs, end_ns), best = {INFINITY, INFINITY};
	printf("%4llu  %-10s  %.3f", (unsigned long long)seed, world_kind_names[kind], work_ns / own.all_ns);
	for (enum world_rule rule = WORLD_STRICT; rule < WORLD_RULES; rule++) {
		struct lengths other = run_rule(model, rule);
		printf("  %.3f", work_ns / other.all_ns);
		if (rule == WORLD_STRICT)
			continue;
		best.all_ns = fmin(best.all_ns, other.all_ns);
		best.most_ns = fmin(best.most_ns, other.most_ns);
	}
	struct ratios ratios = {best.all_ns / own.all_ns, best.most_ns / own.most_ns};
	printf("  %.3f  %.3f  %zu of %zu\n", ratios.all, ratios.most, model->late, model->compared);
	fflush(stdout);
	return ratios;
}

/* Returns whether the run is as it must be. */
static bool run_one(const struct settings *settings, uint64_t seed, enum world_kind kind, struct ratios *ret_ratios)
{
	struct model model = {.settings = settings};
	world_machine_make(&model.world, kind);
	model.jobs = world_jobs_make(&model.world, settings->jobs, seed, settings->spread_ns);
	model.running = calloc(settings->jobs, sizeof *model.running);
	model.bounds_ns = calloc(settings->jobs, sizeof *model.bounds_ns);
	ll_queue_init(&model.queue, &model.world.machine);
	model.queue.planned_most = model.queue.planned_of_user = SIZE_MAX; /* all are compared with strict order */
	uint64_t end_ns = run_queue(&model);
	size_t left = model.queue.count + settings->jobs - model.arrived;
	if (left)
		fprintf(stderr, "%zu jobs never ended\n", left);
	*ret_ratios = report(&model, seed, kind, end_ns);
	ll_queue_fini(&model.queue);
	free(model.jobs);
	free(model.running);
	free(model.bounds_ns);
	return !left && !model.faults && !model.late &&
	       (kind == WORLD_DEPARTMENT || ret_ratios->all >= settings->least_ratio);
}

static int compare_all(const void *a, const void *b)
{
	const struct ratios *first = a, *second = b;
	return (first->all > second->all) - (first->all < second->all);
}

static int compare_most(const void *a, const void *b)
{
	const struct ratios *first = a, *second = b;
	return (first->most > second->most) - (first->most < second->most);
}

static void report_spread(enum world_kind kind, struct ratios *ratios, size_t count)
{
	qsort(ratios, count, sizeof *ratios, compare_all);
	printf("%s: use against the best of the three: least %.3f, median %.3f, most %.3f\n", world_kind_names[kind],
	       ratios[0].all, ratios[count / 2].all, ratios[count - 1].all);
	qsort(ratios, count, sizeof *ratios, compare_most);
	printf("%s: the same until nine tenths of the work are done: least %.3f, median %.3f, most %.3f\n",
	       world_kind_names[kind], ratios[0].most, ratios[count / 2].most, ratios[count - 1].most);
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
	struct ratios *ratios = calloc(settings.seeds * WORLD_KINDS, sizeof *ratios);
	printf("seed  machine     queue  strict  first  best   EASY   ratio  until 9/10  later than in strict order\n");
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
