/*
 * rules_queue.h - a machine and its queue, for the tests of src/rules/queue.
 */
#ifndef LOADLINE_TESTS_RULES_QUEUE_H
#define LOADLINE_TESTS_RULES_QUEUE_H

#include "rules/queue/queue.h"
#include "test.h"

enum { CARDS = 8, GROUPS = 2, TENANTS = 3, JOBS = 64 };
enum { OWNERS, BORROWERS, GUESTS };
enum { WHOLE, PARTS };

#define HOUR_NS UINT64_C(3600000000000)
#define GIB (UINT64_C(1) << 30)
#define DAY_NS (24 * HOUR_NS)

/* Four whole cards on two nodes (0, 1 and 2, 3), four cards by memory. The owners have 3 whole cards and 200 GiB. */
struct scene {
	struct ll_queue_machine machine;
	struct ll_queue_card cards[CARDS];
	struct ll_queue_group groups[GROUPS];
	struct ll_queue_tenant tenants[TENANTS];
	struct ll_queue_amount guarantees[TENANTS][GROUPS], limits[TENANTS][GROUPS];
	struct ll_queue_interval intervals[CARDS];
	struct ll_queue queue;
	struct ll_queue_job jobs[JOBS];
	size_t count;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	for (unsigned i = 0; i < CARDS; i++)
		scene->cards[i] = (struct ll_queue_card){80 * GIB, i < 4 ? WHOLE : PARTS, (int)(i / 2)};
	scene->groups[WHOLE].is_whole = true;
	for (unsigned i = 0; i < TENANTS; i++) {
		for (unsigned j = 0; j < GROUPS; j++)
			scene->limits[i][j] = (struct ll_queue_amount){LL_QUEUE_NONE, LL_QUEUE_NONE, LL_QUEUE_NONE};
		scene->tenants[i] =
		    (struct ll_queue_tenant){scene->guarantees[i],
					     scene->limits[i],
					     1,
					     {{LL_QUEUE_NONE, LL_QUEUE_NONE, LL_QUEUE_NONE}, LL_QUEUE_NONE}};
	}
	scene->guarantees[OWNERS][WHOLE].cards = 3;
	scene->guarantees[OWNERS][PARTS].memory_bytes = 200 * GIB;
	scene->machine = (struct ll_queue_machine){CARDS,        GROUPS,        TENANTS,        0,
						   scene->cards, scene->groups, scene->tenants, scene->intervals};
	*state = scene;
	return ll_queue_init(&scene->queue, &scene->machine);
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	ll_queue_fini(&scene->queue);
	free(scene);
	return 0;
}

static struct ll_queue_job *add_job(struct scene *scene, struct ll_queue_job facts)
{
	struct ll_queue_job *job = &scene->jobs[scene->count++];
	*job = facts;
	job->number = scene->count;
	job->has_time = true;
	if (!job->allowed)
		job->allowed = job->memory_bytes ? 0xf0 : 0x0f;
	if (!job->card_count)
		job->card_count = 1;
	assert_int_equal(ll_queue_add(&scene->queue, job), 0);
	return job;
}

static inline struct ll_queue_job *add_whole(struct scene *scene, uint32_t tenant, uint32_t cards, uint64_t hours)
{
	return add_job(scene,
		       (struct ll_queue_job){
			   .tenant = tenant, .uid = tenant, .card_count = cards, .duration_ns = hours * HOUR_NS});
}

static inline struct ll_queue_job *add_part(struct scene *scene, uint32_t tenant, uint64_t gib, uint64_t hours)
{
	return add_job(scene,
		       (struct ll_queue_job){
			   .tenant = tenant, .uid = tenant, .memory_bytes = gib * GIB, .duration_ns = hours * HOUR_NS});
}

/* Plans in the order of arrival, and starts what is due. */
static inline void run_at(struct scene *scene, uint64_t now_ns)
{
	struct ll_queue_job *job;
	assert_int_equal(ll_queue_plan(&scene->queue, now_ns), 0);
	while ((job = ll_queue_due(&scene->queue, now_ns)))
		ll_queue_start(&scene->queue, job, now_ns);
}

static void add_interval(struct scene *scene, uint32_t card, uint32_t tenant, uint64_t begin_ns, uint64_t end_ns)
{
	scene->intervals[scene->machine.interval_count++] = (struct ll_queue_interval){card, tenant, begin_ns, end_ns};
	ll_queue_changed(&scene->queue);
}

#endif
