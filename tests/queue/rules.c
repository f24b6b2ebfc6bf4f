/* What the queue is compared with: strict order, first fit, best fit, and EASY backfill (a reservation of the first
 * blocked job alone). */
#include <stdlib.h>
#include <string.h>

#include "world.h"

const char *const world_rule_names[] = {"strict", "first fit", "best fit", "EASY backfill"};

/* A run of the jobs by a rule. */
struct run {
	const struct world_machine *world;
	struct world_job *const *jobs;
	size_t count;
	enum world_rule rule;
	uint64_t now_ns;
	struct world_job **running; /* those that run now */
	size_t running_count;
};

static void collect_running(struct run *run)
{
	run->running_count = 0;
	for (size_t i = 0; i < run->count; i++) {
		if (run->jobs[i]->start_ns <= run->now_ns && world_job_end(run->jobs[i]) > run->now_ns)
			run->running[run->running_count++] = run->jobs[i];
	}
}

static bool start_if_possible(struct run *run, struct world_job *job)
{
	enum world_choice choice = run->rule == WORLD_TAKE_FIRST_FIT ? WORLD_FIRST_FIT : WORLD_BEST_FIT;
	uint64_t cards = world_place(run->world, run->running, run->running_count, job, choice);
	if (!cards)
		return false;
	job->cards = cards;
	job->start_ns = run->now_ns;
	run->running[run->running_count++] = job;
	return true;
}

/* When the job could start if only the running ones went on. */
static uint64_t earliest_of(const struct run *run, const struct world_job *job)
{
	uint64_t at_ns = run->now_ns;
	struct world_job **left = calloc(run->running_count + 1, sizeof *left);
	for (;;) {
		size_t count = 0;
		uint64_t next_ns = WORLD_NEVER;
		for (size_t i = 0; i < run->running_count; i++) {
			uint64_t end_ns = world_job_end(run->running[i]);
			if (end_ns <= at_ns)
				continue;
			left[count++] = run->running[i];
			next_ns = end_ns < next_ns ? end_ns : next_ns;
		}
		if (world_place(run->world, left, count, job, WORLD_BEST_FIT) || next_ns == WORLD_NEVER)
			break;
		at_ns = next_ns;
	}
	free(left);
	return at_ns;
}

/* Starts the job if the first blocked one can start as early as without it. */
static void start_unless_delays(struct run *run, struct world_job *job, const struct world_job *blocked)
{
	uint64_t before_ns = earliest_of(run, blocked);
	if (!start_if_possible(run, job) || earliest_of(run, blocked) <= before_ns)
		return;
	job->start_ns = WORLD_NEVER;
	job->cards = 0;
	run->running_count--;
}

static void start_jobs(struct run *run)
{
	struct world_job *blocked = NULL;
	for (size_t i = 0; i < run->count; i++) {
		struct world_job *job = run->jobs[i];
		if (job->start_ns != WORLD_NEVER || job->arrival_ns > run->now_ns)
			continue;
		if (blocked && run->rule == WORLD_STRICT)
			return;
		if (blocked && run->rule == WORLD_EASY_BACKFILL)
			start_unless_delays(run, job, blocked);
		else if (!start_if_possible(run, job) && !blocked)
			blocked = job;
	}
}

static uint64_t next_event(const struct run *run)
{
	uint64_t next_ns = WORLD_NEVER;
	for (size_t i = 0; i < run->count; i++) {
		const struct world_job *job = run->jobs[i];
		uint64_t at_ns = job->start_ns == WORLD_NEVER ? job->arrival_ns : world_job_end(job);
		if (at_ns > run->now_ns && at_ns < next_ns)
			next_ns = at_ns;
	}
	return next_ns;
}

uint64_t world_run(const struct world_machine *world, struct world_job *const *jobs, size_t count, uint64_t now_ns,
		   enum world_rule rule)
{
	struct run run = {.world = world, .jobs = jobs, .count = count, .rule = rule, .now_ns = now_ns};
	uint64_t last_ns = 0;
	run.running = calloc(count + 1, sizeof *run.running);
	for (; run.now_ns != WORLD_NEVER; run.now_ns = next_event(&run)) {
		collect_running(&run);
		start_jobs(&run);
	}
	free(run.running);
	for (size_t i = 0; i < count; i++) {
		uint64_t end_ns = world_job_end(jobs[i]);
		last_ns = end_ns > last_ns ? end_ns : last_ns;
	}
	return last_ns;
}
