#include "rules_queue.h"

TEST_EACH(set_up, tear_down);

/* ---- why a job waits ---- */

static struct ll_queue_why why_of(const struct scene *scene, const struct ll_queue_job *job)
{
	struct ll_queue_why why;
	assert_false(job->is_running);
	ll_queue_explain(&scene->queue, job, &why);
	return why;
}

TEST_GIVEN(struct scene *scene, a_guest_beside_two_empty_cards_is_told_whose_guarantee_they_are)
{
	add_whole(scene, GUESTS, 1, 1);
	add_whole(scene, OWNERS, 1, 1);
	const struct ll_queue_job *guest = add_whole(scene, GUESTS, 1, 1);
	run_at(scene, 0);
	struct ll_queue_why why = why_of(scene, guest);
	assert_int_equal(why.rule, LL_QUEUE_RULE_GUARANTEE);
	assert_int_equal(why.what, LL_QUEUE_OF_CARDS);
	assert_int_equal(why.tenant, OWNERS);
	assert_int_equal(why.group, WHOLE);
	assert_int_equal(why.used, 2);
	assert_int_equal(why.left, 0);
	assert_int_equal(why.wanted, 1);
}

TEST_GIVEN(struct scene *scene, a_limit_is_told_with_its_figures)
{
	scene->limits[OWNERS][WHOLE].cards = 2;
	scene->tenants[GUESTS].each_user.most.memory_bytes = 60 * GIB;
	scene->tenants[BORROWERS].each_user.running = 1;
	add_whole(scene, OWNERS, 2, 1);
	add_part(scene, GUESTS, 50, 1);
	add_part(scene, BORROWERS, 1, 1);
	const struct ll_queue_job *owner = add_whole(scene, OWNERS, 1, 1);
	const struct ll_queue_job *guest = add_part(scene, GUESTS, 20, 1);
	const struct ll_queue_job *borrower = add_part(scene, BORROWERS, 1, 1);
	run_at(scene, 0);
	struct ll_queue_why why = why_of(scene, owner);
	assert_int_equal(why.rule, LL_QUEUE_RULE_TENANT_LIMIT);
	assert_true(why.what == LL_QUEUE_OF_CARDS && why.used == 2 && why.most == 2 && why.wanted == 1);
	why = why_of(scene, guest);
	assert_int_equal(why.rule, LL_QUEUE_RULE_USER_LIMIT);
	assert_true(why.what == LL_QUEUE_OF_MEMORY && why.used == 50 * GIB && why.most == 60 * GIB);
	assert_true(why.wanted == 20 * GIB);
	why = why_of(scene, borrower);
	assert_int_equal(why.rule, LL_QUEUE_RULE_USER_LIMIT);
	assert_true(why.what == LL_QUEUE_OF_JOBS && why.used == 1 && why.most == 1);
}

TEST_GIVEN(struct scene *scene, full_cards_are_told_with_what_is_free)
{
	add_whole(scene, OWNERS, 3, 1);
	for (int i = 0; i < 4; i++)
		add_part(scene, OWNERS, 60, 1);
	const struct ll_queue_job *whole = add_whole(scene, OWNERS, 2, 1);
	const struct ll_queue_job *part = add_part(scene, OWNERS, 30, 1);
	run_at(scene, 0);
	struct ll_queue_why why = why_of(scene, whole);
	assert_int_equal(why.rule, LL_QUEUE_RULE_ROOM);
	assert_true(why.what == LL_QUEUE_OF_CARDS && why.wanted == 2 && why.left == 1);
	why = why_of(scene, part);
	assert_int_equal(why.rule, LL_QUEUE_RULE_ROOM);
	assert_true(why.what == LL_QUEUE_OF_MEMORY && why.wanted == 30 * GIB && why.left == 20 * GIB);
}

TEST_GIVEN(struct scene *scene, a_job_that_would_put_off_one_ahead_is_told_that)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	add_whole(scene, OWNERS, 3, 2);
	const struct ll_queue_job *ahead = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *lengthy = add_whole(scene, GUESTS, 1, 3);
	run_at(scene, 0);
	struct ll_queue_why why = why_of(scene, lengthy);
	assert_int_equal(why.rule, LL_QUEUE_RULE_ORDER);
	assert_int_equal(why.number, ahead->number);
	assert_int_equal(why.begin_ns, 2 * HOUR_NS);
	scene->queue.has_backfill = false;
	const struct ll_queue_job *brief = add_whole(scene, GUESTS, 1, 1);
	run_at(scene, 1);
	why = why_of(scene, brief);
	assert_int_equal(why.rule, LL_QUEUE_RULE_ORDER);
	assert_int_equal(why.number, lengthy->number);
}

TEST_GIVEN(struct scene *scene, a_window_is_told_with_its_times)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	for (uint32_t card = 0; card < 4; card++)
		add_interval(scene, card, LL_QUEUE_NOBODY, 2 * HOUR_NS, 5 * HOUR_NS);
	for (uint32_t card = 4; card < CARDS; card++)
		add_interval(scene, card, GUESTS, 0, 3 * HOUR_NS);
	const struct ll_queue_job *whole = add_whole(scene, OWNERS, 1, 3);
	const struct ll_queue_job *part = add_part(scene, OWNERS, 10, 1);
	run_at(scene, 0);
	struct ll_queue_why why = why_of(scene, whole);
	assert_int_equal(why.rule, LL_QUEUE_RULE_OUT_OF_USE);
	assert_true(why.begin_ns == 2 * HOUR_NS && why.end_ns == 5 * HOUR_NS);
	why = why_of(scene, part);
	assert_int_equal(why.rule, LL_QUEUE_RULE_RESERVED);
	assert_int_equal(why.tenant, GUESTS);
	assert_true(why.begin_ns == 0 && why.end_ns == 3 * HOUR_NS);
}

/* Random queues: each waiting job has a reason, and to ask changes nothing of the plan. */
TEST_GIVEN(struct scene *scene, each_waiting_job_has_a_reason)
{
	uint32_t seed = 7;
	scene->tenants[GUESTS].each_user.running = 2;
	scene->limits[BORROWERS][PARTS].memory_bytes = 100 * GIB;
	add_interval(scene, 2, LL_QUEUE_NOBODY, HOUR_NS, 2 * HOUR_NS);
	for (int i = 0; i < JOBS; i++) {
		seed = seed * 1664525U + 1013904223U;
		uint32_t tenant = seed >> 8 & 1 ? GUESTS : seed >> 9 & 1 ? OWNERS : BORROWERS;
		uint64_t hours = 1 + (seed >> 12) % 4;
		if (seed >> 10 & 1)
			add_whole(scene, tenant, 1 + (seed >> 16) % (tenant == GUESTS ? 1 : 3), hours);
		else
			add_part(scene, tenant, 1 + (seed >> 16) % 80, hours);
	}
	run_at(scene, 0);
	for (size_t i = scene->queue.running_count; i < scene->queue.count; i++) {
		const struct ll_queue_job *job = scene->queue.jobs[i];
		struct ll_queue_slot before = job->planned;
		struct ll_queue_why why = why_of(scene, job), again = why_of(scene, job);
		assert_int_not_equal(why.rule, LL_QUEUE_RULE_NONE);
		assert_memory_equal(&why, &again, sizeof why);
		assert_int_equal(job->planned.begin_ns, before.begin_ns);
	}
}
