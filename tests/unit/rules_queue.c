#include "rules_queue.h"

static const struct ll_queue_rules by_age = {1, {LL_QUEUE_BY_AGE}};
static const struct ll_queue_rules all_keys = {
    4, {LL_QUEUE_BY_RESERVATION, LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_FAIRSHARE, LL_QUEUE_BY_AGE}};

TEST_EACH(set_up, tear_down);

/* ---- placement ---- */

TEST_GIVEN(struct scene *scene, a_job_gets_the_shared_card_with_the_least_memory_left)
{
	const struct ll_queue_job *large = add_part(scene, OWNERS, 60, 1);
	const struct ll_queue_job *medium = add_part(scene, OWNERS, 50, 1);
	const struct ll_queue_job *small = add_part(scene, OWNERS, 20, 1);
	run_at(scene, 0);
	assert_int_equal(large->planned.cards, 1 << 4);
	assert_int_equal(medium->planned.cards, 1 << 5);
	assert_int_equal(small->planned.cards, 1 << 4);
}

TEST_GIVEN(struct scene *scene, whole_cards_of_a_job_are_of_one_numa_node)
{
	const struct ll_queue_job *one = add_whole(scene, OWNERS, 1, 1);
	const struct ll_queue_job *two = add_whole(scene, OWNERS, 2, 1);
	run_at(scene, 0);
	assert_int_equal(one->planned.cards, 1 << 0);
	assert_int_equal(two->planned.cards, 1 << 2 | 1 << 3);
}

TEST_GIVEN(struct scene *scene, a_single_card_leaves_whole_nodes_free)
{
	add_whole(scene, OWNERS, 1, 1);
	const struct ll_queue_job *second = add_whole(scene, OWNERS, 1, 1);
	run_at(scene, 0);
	assert_int_equal(second->planned.cards, 1 << 1);
}

TEST_GIVEN(struct scene *scene, compute_of_a_shared_card_is_not_promised_twice)
{
	struct ll_queue_job facts = {
	    .memory_bytes = GIB, .compute_permille = 600, .duration_ns = HOUR_NS, .allowed = 1 << 4};
	const struct ll_queue_job *first = add_job(scene, facts);
	const struct ll_queue_job *second = add_job(scene, facts);
	run_at(scene, 0);
	assert_true(first->is_running);
	assert_int_equal(second->planned.begin_ns, HOUR_NS);
}

/* A third group by memory is the guests' guarantee; theirs is the last card. */
TEST_GIVEN(struct scene *scene, a_job_goes_to_the_group_of_its_tenants_guarantee_if_that_is_as_early)
{
	enum { OWN = 2 };
	struct ll_queue_group groups[3] = {scene->groups[WHOLE], scene->groups[PARTS], {0}};
	struct ll_queue_amount guarantees[TENANTS][3] = {{{0}}}, limits[TENANTS][3];
	for (unsigned i = 0; i < TENANTS; i++) {
		for (unsigned j = 0; j < 3; j++)
			limits[i][j] = scene->limits[i][0];
		scene->tenants[i].guarantees = guarantees[i];
		scene->tenants[i].limits = limits[i];
	}
	guarantees[GUESTS][OWN].memory_bytes = 80 * GIB;
	scene->cards[7].group = OWN;
	scene->machine.groups = groups;
	scene->machine.group_count = 3;
	const struct ll_queue_job *guest = add_part(scene, GUESTS, 50, 1);
	const struct ll_queue_job *beyond = add_part(scene, GUESTS, 50, 1);
	const struct ll_queue_job *borrower = add_part(scene, BORROWERS, 20, 1);
	run_at(scene, 0);
	assert_int_equal(guest->planned.cards, 1 << 7);
	assert_int_equal(beyond->planned.cards, 1 << 4);
	assert_int_equal(borrower->planned.cards, 1 << 4);
	assert_true(guest->is_running && beyond->is_running && borrower->is_running);
}

TEST_GIVEN(struct scene *scene, a_job_has_cards_that_it_may_have_within_the_guarantee_only_there)
{
	struct ll_queue_job facts = {
	    .tenant = OWNERS, .memory_bytes = 10 * GIB, .duration_ns = HOUR_NS, .allowed = 0xff, .within = 0x0f};
	scene->guarantees[OWNERS][WHOLE].cards = 1;
	scene->guarantees[OWNERS][PARTS].memory_bytes = 0;
	const struct ll_queue_job *own = add_job(scene, facts), *beyond = add_job(scene, facts);
	run_at(scene, 0);
	assert_int_equal(own->planned.cards, 1 << 0);
	assert_int_equal(beyond->planned.cards, 1 << 4);
}

/* ---- guarantees and limits ---- */

TEST_GIVEN(struct scene *scene, room_that_a_guarantee_covers_is_not_given_to_others)
{
	const struct ll_queue_job *first = add_whole(scene, GUESTS, 1, 1);
	const struct ll_queue_job *second = add_whole(scene, GUESTS, 1, 1);
	const struct ll_queue_job *owner = add_whole(scene, OWNERS, 3, 1);
	run_at(scene, 0);
	assert_true(first->is_running);
	assert_false(second->is_running);
	assert_true(owner->is_running);
}

TEST_GIVEN(struct scene *scene, memory_that_a_guarantee_covers_is_not_given_to_others)
{
	const struct ll_queue_job *first = add_part(scene, GUESTS, 80, 1);
	const struct ll_queue_job *second = add_part(scene, GUESTS, 80, 1);
	run_at(scene, 0);
	assert_true(first->is_running);
	assert_false(second->is_running);
}

TEST_GIVEN(struct scene *scene, a_tenant_within_its_guarantee_starts_although_a_card_is_drained)
{
	add_interval(scene, 3, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	add_interval(scene, 2, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	const struct ll_queue_job *guest = add_whole(scene, GUESTS, 1, 1);
	const struct ll_queue_job *owner = add_whole(scene, OWNERS, 2, 1);
	run_at(scene, 0);
	assert_false(guest->is_running);
	assert_true(owner->is_running);
}

TEST_GIVEN(struct scene *scene, a_tenant_does_not_pass_its_limit)
{
	scene->limits[OWNERS][WHOLE].cards = 2;
	const struct ll_queue_job *first = add_whole(scene, OWNERS, 2, 1);
	const struct ll_queue_job *second = add_whole(scene, OWNERS, 1, 1);
	run_at(scene, 0);
	assert_true(first->is_running);
	assert_int_equal(second->planned.begin_ns, HOUR_NS);
	assert_ptr_equal(ll_queue_blocker(&scene->queue, second), first);
}

TEST_GIVEN(struct scene *scene, each_user_of_a_tenant_has_the_limit)
{
	scene->tenants[OWNERS].each_user.running = 1;
	struct ll_queue_job facts = {.tenant = OWNERS, .uid = 1, .duration_ns = HOUR_NS};
	const struct ll_queue_job *first = add_job(scene, facts);
	const struct ll_queue_job *second = add_job(scene, facts);
	facts.uid = 2;
	const struct ll_queue_job *other = add_job(scene, facts);
	run_at(scene, 0);
	assert_true(first->is_running);
	assert_false(second->is_running);
	assert_true(other->is_running);
}

/* ---- backfill ---- */

TEST_GIVEN(struct scene *scene, a_short_job_overtakes_and_a_long_one_does_not)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	add_whole(scene, OWNERS, 3, 2);
	const struct ll_queue_job *blocked = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *lengthy = add_whole(scene, GUESTS, 1, 3);
	const struct ll_queue_job *brief = add_whole(scene, GUESTS, 1, 2);
	run_at(scene, 0);
	assert_int_equal(blocked->planned.begin_ns, 2 * HOUR_NS);
	assert_true(brief->is_running);
	assert_int_equal(lengthy->planned.begin_ns, 3 * HOUR_NS);
}

TEST_GIVEN(struct scene *scene, without_backfill_no_job_overtakes)
{
	scene->queue.has_backfill = false;
	add_whole(scene, OWNERS, 3, 2);
	const struct ll_queue_job *blocked = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *brief = add_whole(scene, GUESTS, 1, 1);
	run_at(scene, 0);
	assert_false(brief->is_running);
	assert_true(brief->planned.begin_ns >= blocked->planned.begin_ns);
}

TEST_GIVEN(struct scene *scene, jobs_move_forward_if_one_ends_early)
{
	struct ll_queue_job *first = add_whole(scene, OWNERS, 4, 5);
	const struct ll_queue_job *second = add_whole(scene, OWNERS, 4, 1);
	run_at(scene, 0);
	assert_int_equal(second->planned.begin_ns, 5 * HOUR_NS);
	ll_queue_remove(&scene->queue, first, HOUR_NS);
	run_at(scene, HOUR_NS);
	assert_true(second->is_running);
	assert_int_equal(second->planned.begin_ns, HOUR_NS);
}

TEST_GIVEN(struct scene *scene, a_job_over_its_time_keeps_its_cards)
{
	add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *second = add_whole(scene, OWNERS, 1, 1);
	run_at(scene, 0);
	run_at(scene, 2 * HOUR_NS);
	assert_false(second->is_running);
	assert_int_equal(second->planned.begin_ns, 2 * HOUR_NS + LL_QUEUE_OVERRUN_NS);
}

TEST_GIVEN(struct scene *scene, a_held_job_does_not_start_and_blocks_nobody)
{
	struct ll_queue_job *held = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *other = add_whole(scene, OWNERS, 4, 1);
	held->is_held = true;
	run_at(scene, 0);
	assert_false(held->is_running);
	assert_true(other->is_running);
	held->is_held = false;
	ll_queue_changed(&scene->queue);
	run_at(scene, 1);
	assert_int_equal(held->planned.begin_ns, HOUR_NS);
}

/* ---- windows ---- */

TEST_GIVEN(struct scene *scene, no_job_starts_that_would_not_end_before_maintenance)
{
	for (uint32_t card = 0; card < CARDS; card++)
		add_interval(scene, card, LL_QUEUE_NOBODY, 2 * HOUR_NS, 5 * HOUR_NS);
	const struct ll_queue_job *brief = add_whole(scene, OWNERS, 1, 2);
	const struct ll_queue_job *lengthy = add_whole(scene, OWNERS, 1, 3);
	run_at(scene, 0);
	assert_true(brief->is_running);
	assert_int_equal(lengthy->planned.begin_ns, 5 * HOUR_NS);
}

TEST_GIVEN(struct scene *scene, a_reservation_is_for_its_tenant_alone)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	for (uint32_t card = 0; card < 4; card++)
		add_interval(scene, card, GUESTS, HOUR_NS, 3 * HOUR_NS);
	const struct ll_queue_job *other = add_whole(scene, OWNERS, 1, 2);
	const struct ll_queue_job *guest = add_whole(scene, GUESTS, 4, 2);
	run_at(scene, 0);
	assert_int_equal(other->planned.begin_ns, 3 * HOUR_NS);
	assert_int_equal(guest->planned.begin_ns, 0);
}

/* ---- a change of a running job ---- */

static bool may_change(struct scene *scene, const struct ll_queue_job *job, uint64_t gib, uint64_t hours)
{
	struct ll_queue_job wanted = *job;
	wanted.memory_bytes = gib * GIB;
	wanted.duration_ns = hours * HOUR_NS;
	return ll_queue_may_change(&scene->queue, job, &wanted, HOUR_NS / 2);
}

TEST_GIVEN(struct scene *scene, a_job_that_was_let_forward_may_not_delay_those_that_it_overtook)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	const struct ll_queue_job *first = add_whole(scene, OWNERS, 3, 2);
	const struct ll_queue_job *overtaken = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *brief = add_whole(scene, GUESTS, 1, 1);
	run_at(scene, 0);
	assert_true(brief->is_running && brief->overtook == overtaken->number && !first->overtook);
	assert_true(may_change(scene, brief, 0, 2));
	assert_false(may_change(scene, brief, 0, 3));
	/* Whoever was first in the order may: the other would have waited as long. */
	assert_true(may_change(scene, first, 0, 20));
	assert_int_equal(overtaken->planned.begin_ns, 2 * HOUR_NS);
}

TEST_GIVEN(struct scene *scene, a_running_job_grows_within_what_is_left_of_its_card)
{
	scene->guarantees[OWNERS][PARTS].memory_bytes = 0;
	const struct ll_queue_job *job = add_part(scene, OWNERS, 40, 2);
	add_part(scene, GUESTS, 30, 1);
	run_at(scene, 0);
	assert_true(may_change(scene, job, 50, 2));
	assert_false(may_change(scene, job, 51, 2));
	struct ll_queue_job wanted = *job;
	wanted.compute_permille = 1000;
	assert_true(ll_queue_may_change(&scene->queue, job, &wanted, 0));
	wanted.compute_permille = 1001;
	assert_false(ll_queue_may_change(&scene->queue, job, &wanted, 0));
	scene->limits[OWNERS][PARTS].memory_bytes = 45 * GIB;
	assert_true(may_change(scene, job, 45, 2));
	assert_false(may_change(scene, job, 46, 2));
}

TEST_GIVEN(struct scene *scene, a_running_job_does_not_last_into_a_window)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	const struct ll_queue_job *job = add_whole(scene, OWNERS, 1, 1);
	run_at(scene, 0);
	for (uint32_t card = 0; card < 4; card++)
		add_interval(scene, card, GUESTS, 3 * HOUR_NS, 5 * HOUR_NS);
	assert_true(may_change(scene, job, 0, 3));
	assert_false(may_change(scene, job, 0, 4));
}

/* ---- the order ---- */

static void assert_order(const struct scene *scene, const struct ll_queue_job *const *expected, size_t count)
{
	assert_int_equal(scene->queue.count - scene->queue.running_count, count);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(scene->queue.jobs[scene->queue.running_count + i], expected[i]);
}

TEST_GIVEN(struct scene *scene, users_with_many_jobs_and_with_few_take_turns)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	struct ll_queue_job *many[3];
	for (int i = 0; i < 3; i++)
		many[i] = add_whole(scene, BORROWERS, 1, 1);
	const struct ll_queue_job *first = add_whole(scene, GUESTS, 1, 1);
	const struct ll_queue_job *second = add_whole(scene, GUESTS, 1, 1);
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_order(scene, (const struct ll_queue_job *[]){many[0], first, many[1], second, many[2]}, 5);
}

TEST_GIVEN(struct scene *scene, a_tenant_of_double_weight_gets_two_places_of_three)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	scene->tenants[BORROWERS].weight = 2;
	struct ll_queue_job *heavy[4], *light[2];
	for (int i = 0; i < 4; i++)
		heavy[i] = add_whole(scene, BORROWERS, 1, 1);
	for (int i = 0; i < 2; i++)
		light[i] = add_whole(scene, GUESTS, 1, 1);
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_order(scene, (const struct ll_queue_job *[]){heavy[0], light[0], heavy[1], heavy[2], light[1], heavy[3]},
		     6);
}

TEST_GIVEN(struct scene *scene, jobs_within_the_guarantee_go_first)
{
	const struct ll_queue_job *guest = add_whole(scene, GUESTS, 1, 1);
	const struct ll_queue_job *owner = add_whole(scene, OWNERS, 3, 1);
	const struct ll_queue_job *beyond = add_whole(scene, OWNERS, 1, 1);
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_order(scene, (const struct ll_queue_job *[]){owner, guest, beyond}, 3);
	ll_queue_arrange(&scene->queue, &by_age, 0);
	assert_order(scene, (const struct ll_queue_job *[]){guest, owner, beyond}, 3);
}

TEST_GIVEN(struct scene *scene, a_reservation_goes_before_a_guarantee_while_it_lasts)
{
	add_interval(scene, 0, GUESTS, HOUR_NS, 2 * HOUR_NS);
	const struct ll_queue_job *owner = add_whole(scene, OWNERS, 3, 1);
	const struct ll_queue_job *guest = add_whole(scene, GUESTS, 1, 1);
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_order(scene, (const struct ll_queue_job *[]){owner, guest}, 2);
	ll_queue_arrange(&scene->queue, &all_keys, HOUR_NS);
	assert_order(scene, (const struct ll_queue_job *[]){guest, owner}, 2);
}

TEST_GIVEN(struct scene *scene, use_halves_with_the_half_life)
{
	struct ll_queue_job *job = add_whole(scene, OWNERS, 2, 24);
	run_at(scene, 0);
	ll_queue_charge(&scene->queue, DAY_NS, 7 * DAY_NS);
	ll_queue_remove(&scene->queue, job, DAY_NS);
	assert_true(scene->queue.tenant_use_ns[OWNERS] == 2.0 * (double)DAY_NS);
	ll_queue_charge(&scene->queue, 8 * DAY_NS, 7 * DAY_NS);
	assert_true(scene->queue.tenant_use_ns[OWNERS] == (double)DAY_NS);
	assert_true(scene->queue.users[job->user].use_ns == (double)DAY_NS);
}

TEST_GIVEN(struct scene *scene, who_has_used_less_goes_first)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	struct ll_queue_job *before = add_whole(scene, BORROWERS, 4, 5);
	run_at(scene, 0);
	ll_queue_charge(&scene->queue, 5 * HOUR_NS, LL_QUEUE_NONE);
	ll_queue_remove(&scene->queue, before, 5 * HOUR_NS);
	const struct ll_queue_job *used = add_whole(scene, BORROWERS, 4, 1);
	const struct ll_queue_job *fresh = add_whole(scene, GUESTS, 4, 1);
	ll_queue_arrange(&scene->queue, &all_keys, 5 * HOUR_NS);
	assert_order(scene, (const struct ll_queue_job *[]){fresh, used}, 2);
}

TEST_GIVEN(struct scene *scene, an_operator_moves_a_job)
{
	struct ll_queue_job *jobs[4];
	for (int i = 0; i < 4; i++)
		jobs[i] = add_whole(scene, GUESTS, 1, 1);
	jobs[3]->position = 2;
	ll_queue_arrange(&scene->queue, &by_age, 0);
	assert_order(scene, (const struct ll_queue_job *[]){jobs[0], jobs[3], jobs[1], jobs[2]}, 4);
	jobs[0]->position = 4;
	jobs[3]->position = 0;
	ll_queue_arrange(&scene->queue, &by_age, 0);
	assert_order(scene, (const struct ll_queue_job *[]){jobs[1], jobs[2], jobs[3], jobs[0]}, 4);
}

/* ---- no starvation ---- */

/* Each hour one more job of one card comes, from a tenant that has used less. The job of four cards starts when those
 * that ran before it have ended. */
TEST_GIVEN(struct scene *scene, a_stream_of_small_jobs_does_not_starve_a_large_one)
{
	scene->guarantees[OWNERS][WHOLE].cards = 0;
	add_whole(scene, GUESTS, 1, 3);
	add_whole(scene, GUESTS, 1, 4);
	const struct ll_queue_job *large = add_whole(scene, BORROWERS, 4, 1);
	for (uint64_t hour = 0; hour < 40 && !large->is_running; hour++) {
		uint64_t now_ns = hour * HOUR_NS;
		for (size_t i = 0; i < scene->queue.running_count;) {
			struct ll_queue_job *job = scene->queue.jobs[i];
			i += ll_queue_end_ns(job) > now_ns;
			if (ll_queue_end_ns(job) <= now_ns)
				ll_queue_remove(&scene->queue, job, now_ns);
		}
		add_whole(scene, GUESTS, 1, 3);
		ll_queue_charge(&scene->queue, now_ns, 7 * DAY_NS);
		ll_queue_arrange(&scene->queue, &all_keys, now_ns);
		run_at(scene, now_ns);
	}
	assert_true(large->is_running);
	assert_true(large->planned.begin_ns <= 12 * HOUR_NS);
}

/* ---- what can never start ---- */

TEST_GIVEN(struct scene *scene, what_can_never_start_is_said_with_its_reason)
{
	struct ll_queue_job job = {.card_count = 5, .allowed = 0x0f, .duration_ns = HOUR_NS};
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_NO_CARDS);
	job = (struct ll_queue_job){.card_count = 1, .allowed = 0xf0, .memory_bytes = 81 * GIB};
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_TOO_LARGE);
	job.memory_bytes = 80 * GIB;
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_FITS);
	job.card_count = 2;
	job.tenant = GUESTS;
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_ALL_GUARANTEED);
	scene->limits[GUESTS][PARTS].memory_bytes = 100 * GIB;
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_BEYOND_LIMIT);
	job.card_count = 1;
	scene->tenants[GUESTS].each_user.most.memory_bytes = 70 * GIB;
	assert_int_equal(ll_queue_check(&scene->machine, &job), LL_QUEUE_BEYOND_USER);
}

TEST_GIVEN(struct scene *scene, jobs_ahead_without_a_time_are_counted)
{
	struct ll_queue_job *running = add_whole(scene, OWNERS, 4, 1);
	struct ll_queue_job *ahead = add_whole(scene, OWNERS, 4, 1);
	const struct ll_queue_job *last = add_whole(scene, OWNERS, 1, 1);
	run_at(scene, 0);
	assert_int_equal(ll_queue_untimed_ahead(&scene->queue, last), 0);
	running->has_time = ahead->has_time = false;
	assert_int_equal(ll_queue_untimed_ahead(&scene->queue, last), 2);
	assert_int_equal(ll_queue_position(&scene->queue, last), 2);
}

/* ---- more jobs than a plan has ---- */

static size_t count_planned(const struct scene *scene)
{
	size_t count = 0;
	for (size_t i = scene->queue.running_count; i < scene->queue.count; i++)
		count += scene->queue.jobs[i]->planned.begin_ns != LL_QUEUE_NONE;
	return count;
}

/* The first ones may have a card alone that is out of use: they take nobody's place in the plan. */
static struct ll_queue_job *add_many(struct scene *scene, unsigned count, unsigned without_card)
{
	struct ll_queue_job *jobs = calloc(count, sizeof *jobs);
	add_interval(scene, 0, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	for (unsigned i = 0; i < count; i++) {
		jobs[i] = (struct ll_queue_job){.number = i + 1,
						.tenant = OWNERS,
						.uid = 1000,
						.card_count = 1,
						.duration_ns = HOUR_NS,
						.has_time = true,
						.allowed = i < without_card ? 0x01 : 0x0e};
		assert_int_equal(ll_queue_add(&scene->queue, &jobs[i]), 0);
	}
	return jobs;
}

TEST_GIVEN(struct scene *scene, a_plan_has_so_many_jobs_of_a_user_and_the_other_users_have_room)
{
	enum { MANY = 5000, WITHOUT_CARD = 300 };
	struct ll_queue_job *jobs = add_many(scene, MANY, WITHOUT_CARD);
	struct ll_queue_job other = {.number = MANY + 1,
				     .tenant = BORROWERS,
				     .uid = 2000,
				     .card_count = 1,
				     .duration_ns = HOUR_NS,
				     .has_time = true,
				     .allowed = 0xf0,
				     .memory_bytes = GIB};
	struct ll_queue_why why;
	scene->queue.has_backfill = true;
	assert_int_equal(ll_queue_add(&scene->queue, &other), 0);
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_int_equal(ll_queue_plan(&scene->queue, 0), 0);
	assert_int_equal(count_planned(scene), LL_QUEUE_PLANNED_OF_USER + 1);
	assert_int_equal(other.planned.begin_ns, 0);
	assert_int_equal(jobs[0].planned.begin_ns, LL_QUEUE_NONE);
	assert_int_equal(jobs[WITHOUT_CARD].planned.begin_ns, 0);
	const struct ll_queue_job *last = &jobs[MANY - 1];
	assert_int_equal(last->planned.begin_ns, LL_QUEUE_NONE);
	ll_queue_explain(&scene->queue, last, &why);
	assert_int_equal(why.rule, LL_QUEUE_RULE_ROOM);
	assert_int_equal(ll_queue_position(&scene->queue, last), MANY + 1);
	free(jobs);
}

TEST_GIVEN(struct scene *scene, a_plan_of_many_users_has_so_many_jobs)
{
	enum { MANY = 2 * LL_QUEUE_PLANNED_MAX };
	struct ll_queue_job *jobs = calloc(MANY, sizeof *jobs);
	for (unsigned i = 0; i < MANY; i++) {
		jobs[i] = (struct ll_queue_job){.number = i + 1,
						.tenant = OWNERS,
						.uid = 1000 + i,
						.card_count = 1,
						.duration_ns = HOUR_NS,
						.allowed = 0x0f};
		assert_int_equal(ll_queue_add(&scene->queue, &jobs[i]), 0);
	}
	ll_queue_arrange(&scene->queue, &all_keys, 0);
	assert_int_equal(ll_queue_plan(&scene->queue, 0), 0);
	assert_int_equal(count_planned(scene), LL_QUEUE_PLANNED_MAX);
	free(jobs);
}

TEST_GIVEN(struct scene *scene, jobs_come_into_the_plan_as_others_begin)
{
	enum { MANY = 5 * LL_QUEUE_PLANNED_OF_USER };
	struct ll_queue_job *jobs = add_many(scene, MANY, 0);
	uint64_t now_ns = 0;
	size_t ended = 0;
	ll_queue_arrange(&scene->queue, &by_age, now_ns);
	for (; ended < MANY && now_ns < MANY * HOUR_NS; now_ns += HOUR_NS) {
		while (scene->queue.running_count) {
			ll_queue_remove(&scene->queue, scene->queue.jobs[0], now_ns);
			ended++;
		}
		run_at(scene, now_ns);
		assert_true(count_planned(scene) <= LL_QUEUE_PLANNED_OF_USER);
		assert_true(ended == MANY || scene->queue.running_count);
	}
	assert_int_equal(ended, MANY);
	free(jobs);
}
