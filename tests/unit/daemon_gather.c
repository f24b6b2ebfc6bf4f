/* Processes that stop and leave together. The test plays them. */
#include <stdlib.h>

#include "evictable_world.h"

#include "daemon/residency/evictable.h"

enum { COUNT = 3 };

struct scene {
	struct evictable_job job;
	struct process processes[COUNT];
	struct ll_residency_books books;
	struct ll_gather *gather;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	assert_non_null(scene);
	for (unsigned i = 0; i < COUNT; i++) {
		struct process *process = &scene->processes[i];
		process_open(process, &scene->job);
		process_begin(process, LL_MOVE_HERE, 0, 100 * MIB, 0, START);
		process->evictable.next = scene->books.evictables;
		scene->books.evictables = &process->evictable;
	}
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	ll_gathers_fini(&scene->books);
	for (unsigned i = 0; i < COUNT; i++)
		process_close(&scene->processes[i]);
	free(scene);
	return 0;
}

TEST_EACH(set_up, tear_down);

static void gather_all(struct scene *scene, enum ll_gather_end end, bool is_by_hand, uint64_t now_ns)
{
	scene->gather = ll_gather_new(&scene->books, end, is_by_hand, 0, now_ns);
	assert_non_null(scene->gather);
	for (unsigned i = 0; i < COUNT; i++) {
		scene->processes[i].evictable.rule.wish = !is_by_hand                ? LL_RESIDENCY_WISH_NONE
							  : end == LL_GATHER_SUSPEND ? LL_RESIDENCY_WISH_SUSPEND
										     : LL_RESIDENCY_WISH_EVICT;
		ll_gather_add(scene->gather, &scene->processes[i].evictable);
	}
	ll_gather_look(&scene->books, scene->gather, now_ns);
}

/* As residency.c does. */
static void says(struct scene *scene, unsigned which, enum ll_message_kind kind, uint64_t away_bytes, uint64_t now_ns)
{
	struct ll_evictable *evictable = &scene->processes[which].evictable;
	if (process_says(&scene->processes[which], kind, 100 * MIB, away_bytes, now_ns) == LL_EVICTABLE_FAILED &&
	    evictable->gather)
		ll_gather_fail(&scene->books, evictable, now_ns);
	if (evictable->gather)
		ll_gather_look(&scene->books, evictable->gather, now_ns);
}

static enum ll_residency state_of(const struct scene *scene, unsigned which)
{
	return scene->processes[which].evictable.rule.state;
}

#define assert_all_told(scene, kind, flags)                                                                            \
	do {                                                                                                           \
		for (unsigned which_ = 0; which_ < COUNT; which_++)                                                    \
			assert_told(&(scene)->processes[which_], kind, flags);                                         \
	} while (0)

TEST_GIVEN(struct scene *scene, all_leave_when_all_are_quiet)
{
	gather_all(scene, LL_GATHER_EVICT, false, START);
	assert_all_told(scene, LL_MESSAGE_EVICT, LL_MOVE_HOLD);
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + MS);
	says(scene, 1, LL_MESSAGE_QUIET, 0, START + 2 * MS);
	assert_told_nothing(&scene->processes[0]);
	says(scene, 2, LL_MESSAGE_QUIET, 0, START + 3 * MS);
	assert_all_told(scene, LL_MESSAGE_EVICT, 0);
	for (unsigned i = 0; i < COUNT; i++) {
		says(scene, i, LL_MESSAGE_QUIET, 0, START + 4 * MS);
		assert_int_equal(state_of(scene, i), LL_RESIDENCY_EVICTING);
		assert_non_null(scene->books.gathers);
	}
	for (unsigned i = 0; i < COUNT; i++)
		says(scene, i, LL_MESSAGE_AWAY, 100 * MIB, START + 5 * MS);
	assert_null(scene->books.gathers);
}

/* Those that could stop go on for a moment, and all are asked again, with more patience. */
TEST_GIVEN(struct scene *scene, if_one_cannot_stop_all_go_on_and_are_asked_again)
{
	union ll_message message;
	gather_all(scene, LL_GATHER_EVICT, false, START);
	assert_int_equal(process_hear(&scene->processes[1], &message), LL_MESSAGE_EVICT);
	uint64_t first_ns = message.move.value;
	process_hear(&scene->processes[0], &message);
	process_hear(&scene->processes[2], &message);
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + MS);
	says(scene, 1, LL_MESSAGE_BUSY, 0, START + 250 * MS);
	assert_told(&scene->processes[0], LL_MESSAGE_RESUME, 0);
	assert_told(&scene->processes[2], LL_MESSAGE_RESUME, 0); /* it has not said anything yet */
	assert_told_nothing(&scene->processes[1]);
	says(scene, 0, LL_MESSAGE_BACK, 0, START + 251 * MS);
	ll_gathers_tick(&scene->books, START + 300 * MS);
	assert_told_nothing(&scene->processes[0]); /* the third is not on yet */
	says(scene, 2, LL_MESSAGE_BACK, 0, START + 301 * MS);
	assert_int_equal(ll_gathers_due_ns(&scene->books), START + 321 * MS);
	ll_gathers_tick(&scene->books, START + 320 * MS);
	assert_told_nothing(&scene->processes[1]);
	ll_gathers_tick(&scene->books, START + 321 * MS);
	assert_int_equal(process_hear(&scene->processes[1], &message), LL_MESSAGE_EVICT);
	assert_int_equal(message.move.flags, LL_MOVE_HOLD);
	assert_true(message.move.value > first_ns);
}

/* The attempts but the last take 10 s together, and the last one may take as long. */
TEST(after_the_last_attempt_all_stay_and_are_not_asked_for_ten_times_as_long)
{
	struct scene *scene = *state;
	union ll_message message;
	uint64_t now_ns = START, spent_ns = 0, last_ns = 0;
	unsigned attempts = 0;
	gather_all(scene, LL_GATHER_EVICT, false, START);
	while (scene->books.gathers) {
		assert_int_equal(process_hear(&scene->processes[1], &message), LL_MESSAGE_EVICT);
		last_ns = message.move.value;
		spent_ns += last_ns;
		now_ns += last_ns;
		attempts++;
		says(scene, 0, LL_MESSAGE_QUIET, 0, now_ns);
		says(scene, 2, LL_MESSAGE_QUIET, 0, now_ns);
		says(scene, 1, LL_MESSAGE_BUSY, 0, now_ns);
		says(scene, 0, LL_MESSAGE_BACK, 0, now_ns);
		says(scene, 2, LL_MESSAGE_BACK, 0, now_ns);
		now_ns += 20 * MS;
		ll_gathers_tick(&scene->books, now_ns);
		assert_true(attempts < 20);
	}
	assert_true(attempts > 5);
	assert_int_equal(last_ns, 10 * S);
	assert_true(spent_ns > 15 * S && spent_ns <= 20 * S);
	for (unsigned i = 0; i < COUNT; i++) {
		const struct ll_residency_program *rule = &scene->processes[i].evictable.rule;
		assert_int_equal(rule->state, LL_RESIDENCY_HERE);
		assert_true(rule->retry_ns > START + 10 * spent_ns);
		assert_false(rule->is_gathering);
	}
}

TEST_GIVEN(struct scene *scene, one_that_does_not_answer_keeps_all_here)
{
	union ll_message message;
	gather_all(scene, LL_GATHER_EVICT, false, START);
	for (unsigned i = 0; i < COUNT; i++)
		process_hear(&scene->processes[i], &message);
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + MS);
	says(scene, 2, LL_MESSAGE_QUIET, 0, START + MS);
	assert_int_equal(ll_evictable_tick(&scene->processes[1].evictable, false, START + 20 * S), LL_EVICTABLE_FAILED);
	ll_gather_fail(&scene->books, &scene->processes[1].evictable, START + 20 * S);
	assert_told(&scene->processes[0], LL_MESSAGE_RESUME, 0);
	assert_told(&scene->processes[2], LL_MESSAGE_RESUME, 0);
	assert_null(scene->books.gathers);
	assert_true(scene->processes[0].evictable.rule.retry_ns > START + 21 * S);
}

static void begin_leaving(struct scene *scene, bool is_by_hand)
{
	union ll_message message;
	gather_all(scene, LL_GATHER_EVICT, is_by_hand, START);
	for (unsigned i = 0; i < COUNT; i++)
		says(scene, i, LL_MESSAGE_QUIET, 0, START + MS);
	for (unsigned i = 0; i < COUNT; i++) {
		while (process_hear(&scene->processes[i], &message))
			;
	}
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + 2 * MS);
	says(scene, 0, LL_MESSAGE_AWAY, 100 * MIB, START + 3 * MS);
	says(scene, 1, LL_MESSAGE_QUIET, 0, START + 3 * MS);
}

TEST_GIVEN(struct scene *scene, if_one_cannot_leave_after_all_the_others_return)
{
	begin_leaving(scene, false);
	says(scene, 2, LL_MESSAGE_BUSY, 0, START + 4 * MS);
	assert_told(&scene->processes[0], LL_MESSAGE_RESUME, 0);
	assert_told(&scene->processes[1], LL_MESSAGE_RESUME, 0);
	assert_int_equal(state_of(scene, 0), LL_RESIDENCY_RESUMING);
	assert_int_equal(state_of(scene, 1), LL_RESIDENCY_RESUMING);
	assert_null(scene->books.gathers);
}

TEST_GIVEN(struct scene *scene, by_hand_the_others_leave_all_the_same)
{
	begin_leaving(scene, true);
	says(scene, 2, LL_MESSAGE_BUSY, 0, START + 4 * MS);
	assert_told_nothing(&scene->processes[0]);
	assert_told_nothing(&scene->processes[1]);
	assert_int_equal(scene->processes[1].evictable.rule.wish, LL_RESIDENCY_WISH_EVICT);
	assert_int_equal(scene->processes[2].evictable.rule.wish, LL_RESIDENCY_WISH_NONE);
}

TEST_GIVEN(struct scene *scene, the_others_do_not_wait_for_one_that_has_ended)
{
	union ll_message message;
	gather_all(scene, LL_GATHER_EVICT, false, START);
	for (unsigned i = 0; i < COUNT; i++)
		process_hear(&scene->processes[i], &message);
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + MS);
	says(scene, 1, LL_MESSAGE_QUIET, 0, START + MS);
	ll_gather_forget(&scene->books, &scene->processes[2].evictable, START + 2 * MS);
	assert_told(&scene->processes[0], LL_MESSAGE_EVICT, 0);
	assert_told(&scene->processes[1], LL_MESSAGE_EVICT, 0);
	assert_told_nothing(&scene->processes[2]);
}

TEST_GIVEN(struct scene *scene, a_wish_for_one_ends_it_for_all)
{
	union ll_message message;
	gather_all(scene, LL_GATHER_SUSPEND, true, START);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(process_hear(&scene->processes[i], &message), LL_MESSAGE_SUSPEND);
		assert_int_equal(message.move.flags, LL_MOVE_BY_HAND);
	}
	says(scene, 0, LL_MESSAGE_QUIET, 0, START + MS);
	ll_gather_remove(&scene->books, &scene->processes[1].evictable, START + 2 * MS);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_told(&scene->processes[i], LL_MESSAGE_RESUME, 0);
		assert_int_equal(scene->processes[i].evictable.rule.wish, LL_RESIDENCY_WISH_NONE);
	}
	assert_null(scene->books.gathers);
}

TEST(one_that_was_suspended_before_stays_so)
{
	struct scene *scene = *state;
	scene->processes[0].evictable.rule.state = LL_RESIDENCY_SUSPENDED;
	gather_all(scene, LL_GATHER_EVICT, true, START);
	assert_told_nothing(&scene->processes[0]);
	ll_gather_remove(&scene->books, &scene->processes[1].evictable, START + 2 * MS);
	assert_told_nothing(&scene->processes[0]);
	assert_int_equal(scene->processes[0].evictable.rule.wish, LL_RESIDENCY_WISH_SUSPEND);
}
