/* What loadlined asks of an evictable process, and what becomes of what that says. */
#include "evictable_world.h"

static struct evictable_job job;

static int set_up(void **state)
{
	static struct process process;
	process_open(&process, &job);
	process_begin(&process, LL_MOVE_HERE, 0, 100 * MIB, 0, START);
	*state = &process;
	return 0;
}

static int tear_down(void **state)
{
	process_close(*state);
	return 0;
}

TEST_EACH(set_up, tear_down);

static struct ll_residency_program *rule_of(struct process *process)
{
	return &process->evictable.rule;
}

static void leave(struct process *process, uint64_t now_ns)
{
	ll_evictable_evict(&process->evictable, now_ns);
	assert_told(process, LL_MESSAGE_EVICT, 0);
	assert_int_equal(process_says(process, LL_MESSAGE_QUIET, 100 * MIB, 0, now_ns + MS), LL_EVICTABLE_NONE);
}

static void leave_wholly(struct process *process, uint64_t now_ns)
{
	leave(process, now_ns);
	assert_int_equal(process_says(process, LL_MESSAGE_AWAY, 100 * MIB, 100 * MIB, now_ns + 2 * MS),
			 LL_EVICTABLE_DONE);
}

TEST(a_process_leaves_and_returns)
{
	struct process *process = *state;
	struct ll_residency_program *rule = rule_of(process);
	assert_int_equal(rule->state, LL_RESIDENCY_HERE);
	assert_int_equal(rule->here_since_ns, START);
	leave(process, START);
	assert_int_equal(rule->state, LL_RESIDENCY_EVICTING);
	process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 40 * MIB, START + 2 * MS);
	assert_int_equal(rule->left_bytes, 60 * MIB);
	assert_int_equal(process_says(process, LL_MESSAGE_AWAY, 100 * MIB, 100 * MIB, START + 3 * MS),
			 LL_EVICTABLE_DONE);
	assert_true(process->evictable.is_move);
	process_says(process, LL_MESSAGE_WANT, 0, 0, START + S);
	assert_true(rule->wants && ll_evictable_is_waiting(&process->evictable));
	assert_int_equal(rule->want_since_ns, START + S);
	ll_evictable_resume(&process->evictable, START + 2 * S);
	assert_told(process, LL_MESSAGE_RESUME, 0);
	assert_int_equal(rule->left_bytes, 100 * MIB);
	process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 70 * MIB, START + 2 * S + MS);
	assert_int_equal(rule->left_bytes, 70 * MIB);
	assert_int_equal(rule->came_bytes, 30 * MIB);
	assert_int_equal(process_says(process, LL_MESSAGE_BACK, 100 * MIB, 0, START + 3 * S), LL_EVICTABLE_DONE);
	assert_int_equal(rule->state, LL_RESIDENCY_HERE);
	assert_int_equal(rule->here_since_ns, START + 3 * S);
	assert_false(rule->wants);
}

TEST(one_that_refuses_is_put_off_for_ten_times_as_long_and_a_second_at_least)
{
	struct process *process = *state;
	ll_evictable_evict(&process->evictable, START);
	assert_int_equal(process_says(process, LL_MESSAGE_BUSY, 100 * MIB, 0, START + 10 * MS), LL_EVICTABLE_FAILED);
	assert_int_equal(rule_of(process)->state, LL_RESIDENCY_HERE);
	assert_int_equal(rule_of(process)->retry_ns, START + 10 * MS + S);
	ll_evictable_evict(&process->evictable, START + 2 * S);
	process_says(process, LL_MESSAGE_BUSY, 100 * MIB, 0, START + 5 * S);
	assert_int_equal(rule_of(process)->retry_ns, START + 35 * S);
}

TEST_GIVEN(struct process *process, one_that_says_nothing_has_failed_and_goes_on_when_it_speaks_at_last)
{
	ll_evictable_evict(&process->evictable, START);
	assert_told(process, LL_MESSAGE_EVICT, 0);
	assert_int_equal(ll_evictable_tick(&process->evictable, false, START + 15 * S), LL_EVICTABLE_NONE);
	assert_int_equal(ll_evictable_tick(&process->evictable, false, START + 15 * S + 1), LL_EVICTABLE_FAILED);
	assert_int_equal(ll_evictable_tick(&process->evictable, false, START + 20 * S), LL_EVICTABLE_NONE);
	assert_true(rule_of(process)->is_silent);
	assert_int_equal(process_says(process, LL_MESSAGE_QUIET, 100 * MIB, 0, START + 60 * S), LL_EVICTABLE_NONE);
	assert_told(process, LL_MESSAGE_RESUME, 0);
	assert_false(rule_of(process)->is_silent);
}

TEST(while_it_makes_memory_of_the_host_ready_it_is_not_late)
{
	struct process *process = *state;
	ll_evictable_evict(&process->evictable, START);
	for (unsigned second = 1; second < 60; second++) {
		process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 0, START + second * S);
		assert_int_equal(ll_evictable_tick(&process->evictable, false, START + second * S), LL_EVICTABLE_NONE);
	}
	assert_int_equal(rule_of(process)->state, LL_RESIDENCY_STOPPING);
}

TEST(one_of_several_waits_when_it_is_quiet_and_leaves_when_it_is_told)
{
	struct process *process = *state;
	rule_of(process)->is_gathering = true;
	ll_evictable_gather(&process->evictable, START);
	assert_told(process, LL_MESSAGE_EVICT, LL_MOVE_HOLD);
	assert_int_equal(process_says(process, LL_MESSAGE_QUIET, 100 * MIB, 0, START + MS), LL_EVICTABLE_QUIET);
	assert_int_equal(rule_of(process)->state, LL_RESIDENCY_SUSPENDED);
	rule_of(process)->is_gathering = false;
	leave(process, START + 2 * MS);
	assert_int_equal(rule_of(process)->state, LL_RESIDENCY_EVICTING);
}

TEST_GIVEN(struct process *process, a_stop_that_is_undone_is_no_move)
{
	rule_of(process)->is_gathering = true;
	ll_evictable_gather(&process->evictable, START);
	process_says(process, LL_MESSAGE_QUIET, 100 * MIB, 0, START + MS);
	ll_evictable_resume(&process->evictable, START + 2 * MS);
	assert_int_equal(process_says(process, LL_MESSAGE_BACK, 100 * MIB, 0, START + 3 * MS), LL_EVICTABLE_DONE);
	assert_false(process->evictable.is_move);
	assert_int_equal(rule_of(process)->here_since_ns, START); /* its turn goes on */
}

TEST_GIVEN(struct process *process, one_of_several_that_is_back_waits_until_it_is_told_and_is_not_silent)
{
	leave_wholly(process, START);
	ll_evictable_resume_held(&process->evictable, START + S);
	assert_told(process, LL_MESSAGE_RESUME, LL_MOVE_HOLD);
	process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 10 * MIB, START + S + MS);
	assert_false(ll_evictable_is_back(&process->evictable));
	process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 0, START + S + 2 * MS);
	assert_true(ll_evictable_is_back(&process->evictable));
	ll_evictable_tick(&process->evictable, false, START + 60 * S);
	assert_false(rule_of(process)->is_silent);
	ll_evictable_resume_fully(&process->evictable);
	assert_told(process, LL_MESSAGE_RESUME, 0);
	assert_int_equal(process_says(process, LL_MESSAGE_BACK, 100 * MIB, 0, START + 61 * S), LL_EVICTABLE_DONE);
}

TEST_GIVEN(struct process *process, one_without_room_tries_again_when_it_may_and_is_still_held)
{
	leave_wholly(process, START);
	ll_evictable_resume_held(&process->evictable, START + S);
	assert_told(process, LL_MESSAGE_RESUME, LL_MOVE_HOLD);
	process_says(process, LL_MESSAGE_NO_ROOM, 100 * MIB, 100 * MIB, START + S + MS);
	assert_true(rule_of(process)->lacks_room);
	ll_evictable_tick(&process->evictable, true, START + S + 2 * MS); /* too early */
	assert_told_nothing(process);
	ll_evictable_tick(&process->evictable, false, START + S + 10 * MS);
	assert_told_nothing(process);
	ll_evictable_tick(&process->evictable, true, START + S + 20 * MS);
	assert_told(process, LL_MESSAGE_RESUME, LL_MOVE_HOLD);
}

TEST(one_that_stays_away_frees_what_had_come)
{
	struct process *process = *state;
	leave_wholly(process, START);
	ll_evictable_resume(&process->evictable, START + S);
	process_says(process, LL_MESSAGE_COPIED, 100 * MIB, 70 * MIB, START + S);
	ll_evictable_stay(&process->evictable);
	assert_int_equal(rule_of(process)->state, LL_RESIDENCY_STAYING);
	assert_int_equal(rule_of(process)->left_bytes, 30 * MIB);
	assert_int_equal(process_says(process, LL_MESSAGE_AWAY, 100 * MIB, 100 * MIB, START + 2 * S),
			 LL_EVICTABLE_STAYED);
}

TEST_GIVEN(struct process *process, one_that_could_not_copy_returns_and_its_turn_goes_on)
{
	union ll_message message;
	leave(process, START + S);
	ll_message_init(&message, LL_MESSAGE_BUSY);
	message.move.value = LL_MOVE_RESUMING;
	message.move.bytes = 100 * MIB;
	message.move.away_bytes = 40 * MIB;
	assert_int_equal(ll_evictable_handle(&process->evictable, LL_MESSAGE_BUSY, &message.move, START + 2 * S),
			 LL_EVICTABLE_FAILED);
	assert_true(rule_of(process)->is_torn);
	assert_int_equal(rule_of(process)->left_bytes, 40 * MIB);
	assert_int_equal(process_says(process, LL_MESSAGE_BACK, 100 * MIB, 0, START + 3 * S), LL_EVICTABLE_DONE);
	assert_int_equal(rule_of(process)->here_since_ns, START);
}

TEST_GIVEN(struct process *process, granted_room_is_kept_until_it_is_taken_or_half_a_second_is_over)
{
	struct ll_residency_program *rule = rule_of(process);
	process_says(process, LL_MESSAGE_SHORT, 30 * MIB, 0, START);
	assert_int_equal(rule->short_bytes, 30 * MIB);
	ll_evictable_reply_short(&process->evictable, LL_MOVE_ROOM_THERE, START);
	assert_int_equal(rule->short_bytes, 0);
	assert_int_equal(rule->granted_bytes, 30 * MIB);
	process_says(process, LL_MESSAGE_SIZES, 110 * MIB, 0, START + MS);
	assert_int_equal(rule->granted_bytes, 20 * MIB);
	assert_int_equal(rule->bytes, 110 * MIB);
	ll_evictable_tick(&process->evictable, false, START + 500 * MS);
	assert_int_equal(rule->granted_bytes, 20 * MIB);
	ll_evictable_tick(&process->evictable, false, START + 502 * MS);
	assert_int_equal(rule->granted_bytes, 0);
}

TEST_GIVEN(struct process *process, what_connects_again_says_how_it_is)
{
	struct ll_residency_program *rule = rule_of(process);
	process_begin(process, LL_MOVE_EVICTING, 0, 100 * MIB, 30 * MIB, START);
	assert_int_equal(rule->left_bytes, 70 * MIB);
	process_begin(process, LL_MOVE_RESUMING, LL_MOVE_HOLD, 100 * MIB, 0, START);
	assert_true(ll_evictable_is_back(&process->evictable));
	process_begin(process, LL_MOVE_RESUMING, 0, 100 * MIB, 30 * MIB, START);
	assert_false(process->evictable.is_held);
	assert_int_equal(rule->came_bytes, 70 * MIB);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_NONE);
}

static void forget(struct process *process)
{
	process->evictable.rule = (struct ll_residency_program){0};
	process->evictable.begun_ns = 0;
}

TEST_GIVEN(struct process *process, a_new_loadlined_learns_what_a_person_has_asked_for)
{
	struct ll_residency_program *rule = rule_of(process);
	forget(process);
	process_begin(process, LL_MOVE_STOPPED, LL_MOVE_BY_HAND, 100 * MIB, 0, START);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_SUSPEND);
	forget(process);
	process_begin(process, LL_MOVE_AWAY, LL_MOVE_BY_HAND | LL_MOVE_WANTS, 100 * MIB, 100 * MIB, START);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_EVICT);
	assert_true(rule->wants);
}

/* The connection ended before the process had received RESUME, so it says what it was told before. */
TEST_GIVEN(struct process *process, a_command_that_did_not_arrive_holds_when_the_process_connects_again)
{
	struct ll_residency_program *rule = rule_of(process);
	leave_wholly(process, START);
	rule->wish = LL_RESIDENCY_WISH_NONE;
	rule->wants = true; /* as the command resume has it */
	ll_evictable_resume(&process->evictable, START + S);
	process_begin(process, LL_MOVE_AWAY, LL_MOVE_BY_HAND, 100 * MIB, 100 * MIB, START + 2 * S);
	assert_int_equal(rule->state, LL_RESIDENCY_AWAY);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_NONE);
	assert_true(rule->wants && ll_evictable_is_waiting(&process->evictable));
	process_begin(process, LL_MOVE_STOPPED, LL_MOVE_BY_HAND, 100 * MIB, 0, START + 2 * S);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_NONE);
	process_begin(process, LL_MOVE_HERE, 0, 100 * MIB, 0, START + 2 * S);
	assert_false(rule->wants);
}

/* A full socket would end the connection of a process that is slow. */
TEST_GIVEN(struct process *process, a_process_that_does_not_answer_is_told_once_a_second_to_measure_its_card)
{
	struct ll_residency_books books = {.evictables = &process->evictable};
	struct ll_card_room room = {.number = 1};
	struct ll_residency_scene scene = {.rooms = {&room}, .room_count = 1};
	assert_false(ll_residency_scene_know_room(&scene, &books, START + S));
	assert_told(process, LL_MESSAGE_MEASURE, 0);
	for (unsigned ms = 30; ms < 300; ms += 30) {
		assert_false(ll_residency_scene_know_room(&scene, &books, START + S + ms * MS));
		assert_told_nothing(process);
	}
	assert_false(ll_residency_scene_know_room(&scene, &books, START + 2 * S));
	assert_told(process, LL_MESSAGE_MEASURE, 0);
	process_says(process, LL_MESSAGE_MEASURED, 100 * MIB, 0, START + 2 * S + 30 * MS);
	assert_false(ll_residency_scene_know_room(&scene, &books, START + 2 * S + 30 * MS));
	assert_told(process, LL_MESSAGE_MEASURE, 0);
}

/* A loadlined that is new finds it in the middle of a move, and does not know when that began. The length of the turns
 * follows from how long a move takes. */
TEST_GIVEN(struct process *process, a_move_that_is_found_counts_from_then)
{
	static const enum ll_move_state states[] = {LL_MOVE_EVICTING, LL_MOVE_RESUMING, LL_MOVE_AWAY};
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		forget(process);
		process_begin(process, states[i], 0, 100 * MIB, 30 * MIB, START);
		assert_int_equal(process->evictable.begun_ns, START);
	}
	/* it was asked to leave, and comes again while it does */
	process_begin(process, LL_MOVE_HERE, 0, 100 * MIB, 0, START);
	ll_evictable_evict(&process->evictable, START + S);
	process_begin(process, LL_MOVE_EVICTING, 0, 100 * MIB, 30 * MIB, START + 2 * S);
	assert_int_equal(process->evictable.begun_ns, START + S);
}

TEST(a_wish_that_cannot_be_leaves_what_was_before)
{
	struct process *process = *state;
	struct ll_residency_program *rule = rule_of(process);
	rule->wish = LL_RESIDENCY_WISH_EVICT;
	ll_evictable_revert_wish(&process->evictable);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_NONE);
	rule->state = LL_RESIDENCY_SUSPENDED;
	rule->wish = LL_RESIDENCY_WISH_EVICT;
	ll_evictable_evict(&process->evictable, START);
	ll_evictable_revert_wish(&process->evictable);
	assert_int_equal(rule->wish, LL_RESIDENCY_WISH_SUSPEND);
}

TEST(a_program_is_as_wished_only_when_what_it_does_will_not_be_undone)
{
	struct process *process = *state;
	struct ll_residency_program *rule = rule_of(process);
	rule->wish = LL_RESIDENCY_WISH_SUSPEND;
	rule->state = LL_RESIDENCY_SUSPENDED;
	assert_true(ll_evictable_is_as_wished(&process->evictable));
	rule->is_gathering = true;
	assert_false(ll_evictable_is_as_wished(&process->evictable));
}
