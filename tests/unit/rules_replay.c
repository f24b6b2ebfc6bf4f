/* Arrivals of the past, run again in model time. */
#include "rules/queue/replay.h"
#include "rules_queue.h"

TEST_EACH(set_up, tear_down);

#define S UINT64_C(1000000000)
enum { MANY = 600 };

static struct ll_replay_job arrivals[MANY];

static struct ll_replay_job arrival(uint32_t tenant, uint64_t gib, uint64_t came_s, uint64_t runs_s)
{
	return (struct ll_replay_job){.queued = {.tenant = tenant,
						 .uid = tenant,
						 .card_count = 1,
						 .memory_bytes = gib * GIB,
						 .duration_ns = HOUR_NS,
						 .has_time = true,
						 .allowed = 0xf0},
				      .came_ns = came_s * S,
				      .runs_ns = runs_s * S,
				      .may_borrow = true};
}

static void replay_all(const struct scene *scene, size_t count, uint32_t steps, uint64_t pool_gib,
		       uint64_t min_runtime_ns)
{
	const struct ll_replay replay = {.machine = &scene->machine,
					 .rules = {2, {LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_AGE}},
					 .has_backfill = true,
					 .half_life_ns = LL_QUEUE_NONE,
					 .steps = steps,
					 .pool_bytes = pool_gib * GIB,
					 .min_runtime_ns = min_runtime_ns,
					 .jobs = arrivals,
					 .count = count};
	assert_int_equal(ll_replay_run(&replay), 0);
}

/* Card 4 alone is there for shares: 80 GiB, 60 of which are the owners'. The guest comes at 0, and would run for 100 s;
 * the owner comes at 10 s, and runs for 20 s. */
static void set_guest_and_owner(struct scene *scene)
{
	for (uint32_t card = 5; card < CARDS; card++)
		add_interval(scene, card, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	scene->guarantees[OWNERS][PARTS].memory_bytes = 60 * GIB;
	arrivals[0] = arrival(GUESTS, 70, 0, 100);
	arrivals[1] = arrival(OWNERS, 40, 10, 20);
	arrivals[2] = arrival(GUESTS, 5, 500, 1);
}

/* The guest leaves from 10 s to 11 s, sleeps until the owner's end at 31 s, and ends at 121 s. */
TEST_GIVEN(struct scene *scene, a_borrower_sleeps_while_its_owner_runs_and_has_all_its_time)
{
	set_guest_and_owner(scene);
	replay_all(scene, 3, 1U << LL_LEND_EVICT, 400, 0);
	assert_int_equal(arrivals[0].began_ns, 0);
	assert_int_equal(arrivals[0].recalls, 1);
	assert_int_equal(arrivals[0].on_card_ns, 100 * S);
	assert_int_equal(arrivals[0].borrowed_ns, 100 * S);
	assert_int_equal(arrivals[0].since_ns, 121 * S);
	assert_int_equal(arrivals[1].began_ns, 11 * S);
	assert_int_equal(arrivals[1].since_ns, 31 * S);
	assert_int_equal(arrivals[1].borrowed_ns, 0);
	assert_int_equal(arrivals[2].began_ns, 500 * S);
	assert_int_equal(arrivals[2].borrowed_ns, 0);
}

TEST_GIVEN(struct scene *scene, without_steps_the_guest_never_begins)
{
	set_guest_and_owner(scene);
	replay_all(scene, 3, 0, 0, 0);
	assert_true(arrivals[0].began_ns == LL_QUEUE_NONE && !arrivals[0].on_card_ns);
	assert_int_equal(arrivals[1].began_ns, 10 * S);
	assert_int_equal(arrivals[2].began_ns, 500 * S);
}

TEST_GIVEN(struct scene *scene, an_owner_waits_for_min_runtime_and_a_borrower_that_can_only_be_stopped_ends)
{
	set_guest_and_owner(scene);
	replay_all(scene, 3, 1U << LL_LEND_STOP, 0, 30 * S);
	assert_int_equal(arrivals[0].on_card_ns, 30 * S);
	assert_int_equal(arrivals[0].recalls, 1);
	assert_int_equal(arrivals[1].began_ns, 31 * S);
}

/* The rest of the guarantee, which the owner gives back at 30 s, is room of the guest's own. */
TEST_GIVEN(struct scene *scene, a_borrower_that_finds_room_of_its_own_borrows_no_more)
{
	set_guest_and_owner(scene);
	scene->guarantees[OWNERS][PARTS].memory_bytes = 0;
	arrivals[0] = arrival(OWNERS, 40, 0, 30);
	arrivals[1] = arrival(BORROWERS, 30, 0, 100);
	scene->guarantees[GUESTS][PARTS].memory_bytes = 20 * GIB;
	replay_all(scene, 3, 1U << LL_LEND_EVICT, 400, 0);
	assert_int_equal(arrivals[1].began_ns, 0);
	assert_int_equal(arrivals[1].borrowed_ns, 30 * S);
	assert_int_equal(arrivals[1].on_card_ns, 100 * S);
}

TEST_GIVEN(struct scene *scene, each_job_has_its_time_however_often_it_is_recalled)
{
	unsigned recalls = 0, state = 7;
	uint64_t came_s = 0;
	for (size_t i = 0; i < MANY; i++) {
		state = state * 1103515245 + 12345;
		came_s += state >> 16 & 31;
		arrivals[i] =
		    arrival(state >> 8 & 1 ? OWNERS : GUESTS, 10 + (state >> 21 & 63), came_s, 1 + (state >> 24));
	}
	replay_all(scene, MANY, 1U << LL_LEND_EVICT, 400, 0);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(arrivals[i].began_ns >= arrivals[i].came_ns && arrivals[i].began_ns != LL_QUEUE_NONE);
		assert_int_equal(arrivals[i].on_card_ns, arrivals[i].runs_ns);
		assert_true(arrivals[i].borrowed_ns <= arrivals[i].on_card_ns);
		recalls += arrivals[i].recalls;
	}
	assert_true(recalls > 10);
}
