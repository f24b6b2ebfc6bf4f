/*
 * A fuzz target for the plan of the queue (rules/queue): any jobs, in any order of acts, on a machine that the bytes
 * describe. The plan ends, no job starts where there is no room, and no job starts later than in strict order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/queue/queue.h"
#include "target.h"

enum { CARDS = 4, GROUPS = 2, TENANTS = 2, USERS = 3, JOBS = 24, INTERVALS = 2, PERMILLE = 1000 };

/* ---- numbers out of the bytes ---- */

struct source {
	const uint8_t *bytes;
	size_t left;
};

static uint64_t below(struct source *source, uint64_t limit)
{
	if (!source->left)
		return 0;
	source->left--;
	return *source->bytes++ % limit;
}

/* Some small, some at the ends of the range. */
static uint64_t any_number(struct source *source)
{
	static const uint64_t far[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
	uint64_t first = below(source, 256);
	return first < 250 ? first : far[first - 250];
}

static uint64_t any_duration(struct source *source)
{
	uint64_t duration_ns = any_number(source);
	return duration_ns ? duration_ns : 1;
}

/* ---- a machine ---- */

struct scene {
	struct ll_queue_machine machine;
	struct ll_queue_card cards[CARDS];
	struct ll_queue_group groups[GROUPS];
	struct ll_queue_tenant tenants[TENANTS];
	struct ll_queue_amount guarantees[TENANTS][GROUPS], limits[TENANTS][GROUPS];
	struct ll_queue_interval intervals[INTERVALS];
	struct ll_queue_job jobs[JOBS];
	size_t job_count;
	struct ll_queue queue;
	uint64_t now_ns;
};

static struct ll_queue_amount any_amount(struct source *source)
{
	return (struct ll_queue_amount){any_number(source), any_number(source), any_number(source)};
}

/* Sums of guarantees fit into the machine, as the check of a configuration sees to. */
static struct ll_queue_amount small_amount(struct source *source)
{
	return (struct ll_queue_amount){below(source, 2), below(source, 20), below(source, PERMILLE / 2)};
}

static void make_machine(struct scene *scene, struct source *source)
{
	for (uint32_t i = 0; i < CARDS; i++)
		scene->cards[i] = (struct ll_queue_card){40 + below(source, 41), i / 2, (int)below(source, 3) - 1};
	for (uint32_t i = 0; i < GROUPS; i++)
		scene->groups[i].is_whole = below(source, 2);
	for (uint32_t i = 0; i < TENANTS; i++) {
		for (uint32_t group = 0; group < GROUPS; group++) {
			scene->guarantees[i][group] = small_amount(source);
			scene->limits[i][group] = any_amount(source);
		}
		scene->tenants[i] = (struct ll_queue_tenant){.guarantees = scene->guarantees[i],
							     .limits = scene->limits[i],
							     .weight = 1 + below(source, 3),
							     .each_user = {any_amount(source), any_number(source)}};
	}
	for (uint32_t i = 0; i < INTERVALS; i++) {
		uint32_t tenant = below(source, 2) ? LL_QUEUE_NOBODY : (uint32_t)below(source, TENANTS);
		scene->intervals[i] = (struct ll_queue_interval){(uint32_t)below(source, CARDS), tenant,
								 any_number(source), any_number(source)};
	}
	scene->machine = (struct ll_queue_machine){.card_count = CARDS,
						   .group_count = GROUPS,
						   .tenant_count = TENANTS,
						   .interval_count = INTERVALS,
						   .cards = scene->cards,
						   .groups = scene->groups,
						   .tenants = scene->tenants,
						   .intervals = scene->intervals};
}

/* ---- acts ---- */

/* As the daemon does: what can never start is not added. */
static void add_job(struct scene *scene, struct source *source)
{
	if (scene->job_count == JOBS)
		return;
	struct ll_queue_job *job = &scene->jobs[scene->job_count];
	*job = (struct ll_queue_job){.number = scene->job_count + 1,
				     .tenant = (uint32_t)below(source, TENANTS),
				     .uid = (uint32_t)below(source, USERS),
				     .card_count = (uint32_t)below(source, CARDS + 1),
				     .memory_bytes = any_number(source),
				     .compute_permille = 4 * below(source, 251),
				     .duration_ns = any_duration(source),
				     .allowed = below(source, 1 << CARDS)};
	if (ll_queue_check(&scene->machine, job) != LL_QUEUE_FITS)
		return;
	expect(ll_queue_add(&scene->queue, job) == 0, "a job is added");
	scene->job_count++;
}

static struct ll_queue_job *any_job(struct scene *scene, struct source *source)
{
	return scene->queue.count ? scene->queue.jobs[below(source, scene->queue.count)] : NULL;
}

static void change_job(struct scene *scene, struct source *source)
{
	struct ll_queue_job *job = any_job(scene, source);
	if (!job)
		return;
	switch (below(source, 3)) {
	case 0:
		job->is_held = !job->is_held && !job->is_running;
		break;
	case 1:
		job->position = (uint32_t)any_number(source);
		break;
	default:
		job->duration_ns = any_duration(source);
		break;
	}
	ll_queue_changed(&scene->queue);
}

static void plan_and_start(struct scene *scene)
{
	struct ll_queue_job *due;
	struct ll_queue *queue = &scene->queue;
	expect(ll_queue_plan(queue, scene->now_ns) == 0, "there is memory");
	for (size_t i = queue->running_count; i < queue->count; i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		bool is_planned = job->planned.begin_ns != LL_QUEUE_NONE;
		expect(!is_planned || job->planned.begin_ns >= scene->now_ns, "no start is in the past");
		expect(!is_planned || __builtin_popcountll(job->planned.cards) == (int)job->card_count,
		       "a start has its cards");
		expect(!is_planned || !(job->planned.cards & ~job->allowed), "the cards are those that it may have");
		expect(job->planned.begin_ns <= job->strict.begin_ns, "no job starts later than in strict order");
	}
	while ((due = ll_queue_due(queue, scene->now_ns)))
		ll_queue_start(queue, due, scene->now_ns);
}

/* Of each card no more is used than it has. Whole cards have one job. */
static void check_cards(const struct scene *scene)
{
	for (uint32_t card = 0; card < CARDS; card++) {
		uint64_t memory_bytes = 0, compute = 0, jobs = 0;
		for (size_t i = 0; i < scene->queue.running_count; i++) {
			const struct ll_queue_job *job = scene->queue.jobs[i];
			bool is_there = job->planned.cards >> card & 1;
			memory_bytes += is_there ? job->memory_bytes : 0;
			compute += is_there ? job->compute_permille : 0;
			jobs += is_there;
		}
		bool is_whole = scene->groups[scene->cards[card].group].is_whole;
		expect(memory_bytes <= scene->cards[card].memory_bytes, "the memory of a card is enough");
		expect(is_whole ? jobs <= 1 : compute <= PERMILLE, "the compute of a card is enough");
	}
}

static void do_act(struct scene *scene, struct source *source)
{
	static const struct ll_queue_rules rules = {
	    4, {LL_QUEUE_BY_RESERVATION, LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_FAIRSHARE, LL_QUEUE_BY_AGE}};
	struct ll_queue_job *job;
	switch (below(source, 5)) {
	case 0:
	case 1:
		add_job(scene, source);
		break;
	case 2:
		job = any_job(scene, source);
		if (job)
			ll_queue_remove(&scene->queue, job, scene->now_ns);
		break;
	case 3:
		change_job(scene, source);
		break;
	default:
		scene->now_ns += below(source, 64);
		break;
	}
	ll_queue_charge(&scene->queue, scene->now_ns, any_number(source));
	ll_queue_arrange(&scene->queue, &rules, scene->now_ns);
	plan_and_start(scene);
	check_cards(scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct source source = {bytes, length};
	static struct scene scene;
	memset(&scene, 0, sizeof scene);
	scene.now_ns = 1;
	make_machine(&scene, &source);
	expect(ll_queue_init(&scene.queue, &scene.machine) == 0, "there is memory");
	while (source.left)
		do_act(&scene, &source);
	ll_queue_fini(&scene.queue);
	return 0;
}

#ifndef LL_LIBFUZZER
enum { ROUNDS = 3000, BYTES = 400 };

int main(void)
{
	uint8_t bytes[BYTES];
	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < BYTES; i++)
			bytes[i] = (uint8_t)(rand() >> 7);
		LLVMFuzzerTestOneInput(bytes, (size_t)rand() % BYTES);
	}
	printf("%d queues\n", ROUNDS);
	return 0;
}
#endif
