/* Which programs' memory is on the card: each rule of residency.h. control_residency_walk.c has scenes that go on in
 * time. */
#include "rules_residency.h"

/* ---- who is served ---- */

TEST(test_nothing_moves_while_nobody_lacks_room)
{
	struct ll_residency_program programs[] = {here(30), here(30), in_state(LL_RESIDENCY_AWAY, 10)};
	programs[1].idle_since_ns = 1;
	assert_waits(programs, 0, UINT64_MAX);
	assert_waits(programs, 80, UINT64_MAX);
}

TEST(test_if_there_is_room_one_returns_and_nobody_leaves)
{
	struct ll_residency_program programs[] = {here(30), waiting(30, 0)};
	programs[0].idle_since_ns = 1;
	assert_step(programs, 31, LL_RESIDENCY_RESUME, 1);
}

TEST(test_the_higher_class_is_served_first_and_then_who_has_waited_longer)
{
	struct ll_residency_program programs[] = {waiting(10, 3 * S), waiting(10, 2 * S), waiting(10, 5 * S)};
	assert_step(programs, 50, LL_RESIDENCY_RESUME, 2);
	programs[1].priority = HIGH;
	assert_step(programs, 50, LL_RESIDENCY_RESUME, 1);
	programs[1].wants = false;
	programs[2].priority = LOW;
	assert_step(programs, 50, LL_RESIDENCY_RESUME, 0);
}

TEST(test_of_two_that_wait_equally_long_both_are_served)
{
	struct ll_residency_program programs[] = {waiting(10, S), waiting(10, S)};
	assert_step(programs, 30, LL_RESIDENCY_RESUME, 0);
	programs[0] = in_state(LL_RESIDENCY_RESUMING, 10);
	assert_step(programs, 30, LL_RESIDENCY_RESUME, 1);
	assert_int_equal(decide(programs, 19).step, LL_RESIDENCY_WAIT); /* the room of the first is kept for it */
}

TEST(test_a_margin_is_left_free_unless_nobody_can_make_it)
{
	struct ll_residency_program programs[] = {waiting(10, S), here(10)};
	assert_step(programs, 10, LL_RESIDENCY_EVICT, 1);
	programs[1].priority = HIGH;
	assert_step(programs, 10, LL_RESIDENCY_RESUME, 0);
	assert_waits(programs, 9, UINT64_MAX);
}

TEST(test_memory_that_is_on_its_way_out_is_waited_for)
{
	const enum ll_residency ways[] = {LL_RESIDENCY_PREPARING, LL_RESIDENCY_STOPPING};
	for (size_t i = 0; i < 2; i++) {
		struct ll_residency_program programs[] = {in_state(ways[i], 20), here(20), waiting(15, S)};
		assert_waits(programs, 1, UINT64_MAX);
		programs[0].is_silent = true; /* it does not do what it was asked to */
		assert_step(programs, 1, LL_RESIDENCY_EVICT, 1);
	}
	struct ll_residency_program halting[] = {in_state(LL_RESIDENCY_SUSPENDING, 20), here(20), waiting(15, S)};
	assert_step(halting, 1, LL_RESIDENCY_EVICT, 1);
}

TEST(test_memory_that_is_being_copied_out_is_counted_on)
{
	const enum ll_residency ways[] = {LL_RESIDENCY_EVICTING, LL_RESIDENCY_STAYING};
	for (size_t i = 0; i < 2; i++) {
		struct ll_residency_program programs[] = {in_state(ways[i], 20), here(20), waiting(15, S)};
		assert_step(programs, 1, LL_RESIDENCY_RESUME, 2);
		programs[0].left_bytes = 10 * GIB; /* the rest is free already */
		assert_step(programs, 6, LL_RESIDENCY_RESUME, 2);
		assert_step(programs, 5, LL_RESIDENCY_EVICT, 1);
		programs[0].is_silent = true;
		assert_step(programs, 6, LL_RESIDENCY_EVICT, 1);
	}
}

/* It is returning, has had so much of its memory back, and finds no room for more. */
static struct ll_residency_program stuck(uint64_t gib, uint64_t has_gib, uint64_t since_ns)
{
	struct ll_residency_program program = waiting(gib, since_ns);
	program.state = LL_RESIDENCY_RESUMING;
	program.left_bytes = (gib - has_gib) * GIB;
	program.came_bytes = has_gib * GIB;
	program.lacks_room = true;
	return program;
}

TEST(test_one_that_could_not_leave_gets_its_room_back_from_one_that_returns)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_RESUMING, 20), stuck(40, 10, S)};
	programs[0].left_bytes = 10 * GIB;
	programs[0].is_torn = true;
	assert_step(programs, 9, LL_RESIDENCY_STAY, 1);
	assert_waits(programs, 10, UINT64_MAX); /* its room is there */
	programs[1].lacks_room = false;         /* it may be back in a moment */
	assert_waits(programs, 0, UINT64_MAX);
	programs[1] = stuck(40, 0, S); /* it has nothing to free */
	assert_waits(programs, 0, UINT64_MAX);
	programs[1] = stuck(40, 10, S);
	programs[0].is_silent = true;
	assert_waits(programs, 0, UINT64_MAX);
	struct ll_residency_program leaving[] = {programs[0], programs[1], in_state(LL_RESIDENCY_EVICTING, 10)};
	leaving[0].is_silent = false;
	assert_waits(leaving, 0, UINT64_MAX); /* room comes */
}

TEST(test_of_two_that_lack_room_the_later_stays_away)
{
	struct ll_residency_program programs[] = {stuck(40, 10, S), stuck(40, 10, 2 * S)};
	assert_step(programs, 29, LL_RESIDENCY_STAY, 0);
	programs[0].want_since_ns = NOW - 3 * S;
	assert_step(programs, 29, LL_RESIDENCY_STAY, 1);
	assert_int_equal(decide(programs, 30).step, LL_RESIDENCY_WAIT);
	programs[1].came_bytes = 0; /* what the first has is its own */
	assert_int_equal(decide(programs, 29).step, LL_RESIDENCY_WAIT);
	programs[1] = stuck(40, 10, 2 * S);
	programs[1].is_torn = true; /* it comes first, since when it waits */
	programs[0].want_since_ns = NOW - 9 * S;
	assert_step(programs, 29, LL_RESIDENCY_STAY, 0);
}

TEST(test_one_that_lacks_room_makes_way_for_a_higher_class_and_not_for_its_own)
{
	struct ll_residency_program programs[] = {stuck(40, 20, S), waiting(30, 9 * S)};
	assert_int_equal(decide(programs, 15).step, LL_RESIDENCY_WAIT);
	programs[1].priority = HIGH;
	assert_step(programs, 15, LL_RESIDENCY_STAY, 0);
	assert_waits(programs, 9, UINT64_MAX); /* that would not be enough */
	programs[0].is_torn = true;            /* it could not go away */
	assert_int_equal(decide(programs, 15).step, LL_RESIDENCY_WAIT);
}

TEST(test_of_those_that_lack_room_the_first_takes_what_is_free)
{
	struct ll_residency_program programs[] = {stuck(40, 10, S), stuck(40, 10, 2 * S), here(20)};
	assert_true(ll_residency_may_go_on(programs, 3, 1, 0));
	assert_false(ll_residency_may_go_on(programs, 3, 0, 30 * GIB));
	assert_true(ll_residency_may_go_on(programs, 3, 0, 31 * GIB)); /* it is more than the first lacks */
	programs[0].is_torn = true;
	assert_true(ll_residency_may_go_on(programs, 3, 0, 0));
	assert_false(ll_residency_may_go_on(programs, 3, 1, 0));
	programs[0].is_silent = true;
	assert_true(ll_residency_may_go_on(programs, 3, 1, 0));
}

TEST(test_only_what_a_returning_program_does_not_have_yet_is_kept_for_it)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_RESUMING, 40), waiting(15, S), here(60)};
	assert_step(programs, 40, LL_RESIDENCY_EVICT, 2);
	programs[0].left_bytes = 10 * GIB;
	assert_step(programs, 40, LL_RESIDENCY_RESUME, 1);
	programs[0].left_bytes = 40 * GIB;
	programs[0].is_silent = true;
	assert_step(programs, 40, LL_RESIDENCY_RESUME, 1);
}

TEST(test_room_that_was_granted_is_not_given_twice)
{
	struct ll_residency_program programs[] = {here(60), waiting(15, S)};
	programs[0].retry_ns = NOW + S;
	programs[0].granted_bytes = 10 * GIB;
	assert_waits(programs, 20, NOW + S);
	programs[0].granted_bytes = 0;
	assert_step(programs, 20, LL_RESIDENCY_RESUME, 1);
}

TEST(test_a_program_that_returns_and_finds_no_room_has_others_leave)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_RESUMING, 40), here(20), here(20)};
	programs[0].lacks_room = true;
	programs[0].left_bytes = 10 * GIB;
	assert_step(programs, 5, LL_RESIDENCY_EVICT, 1);
	programs[1] = in_state(LL_RESIDENCY_EVICTING, 20);
	assert_waits(programs, 5, UINT64_MAX);
	assert_waits(programs, 10, UINT64_MAX); /* it goes on by itself */
	programs[1] = programs[2] = here(20);
	programs[1].priority = programs[2].priority = HIGH;
	assert_waits(programs, 5, UINT64_MAX);
}

/* ---- who leaves ---- */

TEST(test_an_idle_program_leaves_at_once_the_longest_idle_first)
{
	struct ll_residency_program programs[] = {here(20), here(20), here(20), waiting(10, S)};
	for (size_t i = 0; i < 3; i++)
		programs[i].here_since_ns = NOW - 4 * S;
	programs[0].idle_since_ns = NOW - 2 * S;
	programs[1].idle_since_ns = NOW - 3 * S;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 1);
}

TEST(test_one_that_was_idle_for_a_moment_is_not_idle_yet)
{
	struct ll_residency_program programs[] = {here(2), waiting(1, S)};
	programs[0].here_since_ns = NOW - 800 * MS;
	programs[0].idle_since_ns = NOW - LL_RESIDENCY_IDLE_NS + MS;
	assert_waits(programs, 0, NOW + MS);
}

TEST(test_a_working_program_stays_for_a_turn_the_longest_there_leaves_first)
{
	struct ll_residency_program programs[] = {here(20), here(20), waiting(10, S)};
	uint64_t turn_ns = turn_of(20, 10);
	programs[0].here_since_ns = NOW - turn_ns + 5 * MS;
	programs[1].here_since_ns = NOW - turn_ns + 2 * MS;
	assert_waits(programs, 0, NOW + 2 * MS);
	programs[1].here_since_ns = NOW - turn_ns - MS;
	programs[0].here_since_ns = NOW - turn_ns;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 1);
}

TEST(test_a_turn_is_ten_times_the_moves_and_a_second_at_least)
{
	assert_true(ll_residency_turn_ns(0, 0) == LL_RESIDENCY_TURN_NS);
	assert_true(turn_of(1, 1) == LL_RESIDENCY_TURN_NS);
	double moves_ns = 2 * 40e9 / 55e9 * (double)S;
	uint64_t move_ns = ll_residency_move_ns(UINT64_C(40000000000));
	double turn_ns = (double)ll_residency_turn_ns(move_ns, move_ns);
	assert_true(turn_ns > 9.8 * moves_ns && turn_ns < 10.2 * moves_ns);
	assert_true(turn_of(40, 0) == turn_of(0, 40));
}

TEST(test_a_higher_class_never_leaves_for_a_lower)
{
	struct ll_residency_program programs[] = {here(20), waiting(10, 100 * S)};
	programs[0].priority = HIGH;
	programs[0].idle_since_ns = 1;
	assert_waits(programs, 0, UINT64_MAX);
	programs[0].state = LL_RESIDENCY_SUSPENDED;
	programs[0].wish = LL_RESIDENCY_WISH_SUSPEND;
	assert_waits(programs, 0, UINT64_MAX);
}

TEST(test_a_lower_class_leaves_at_once_and_before_an_equal_one)
{
	struct ll_residency_program programs[] = {here(20), here(20), here(20), waiting(10, 0)};
	programs[0].idle_since_ns = 1;
	programs[1].priority = NORMAL;
	programs[2].priority = LOW;
	programs[2].here_since_ns = NOW;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 2);
	programs[2].retry_ns = NOW + S; /* it could not leave just now */
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
}

TEST(test_nobody_leaves_before_enough_may)
{
	struct ll_residency_program programs[] = {here(20), here(20), waiting(35, S)};
	uint64_t turn_ns = turn_of(20, 35);
	programs[0].idle_since_ns = 1;
	programs[1].here_since_ns = NOW + 7 * MS - turn_ns;
	assert_waits(programs, 0, NOW + 7 * MS);
	programs[1].here_since_ns = NOW - turn_ns;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
	programs[0].state = LL_RESIDENCY_STOPPING;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 1);
	programs[1].state = LL_RESIDENCY_PREPARING;
	assert_waits(programs, 0, UINT64_MAX);
}

TEST(test_one_that_waits_for_turns_to_end_keeps_others_from_beginning_new_ones)
{
	struct ll_residency_program programs[] = {here(20), here(20), waiting(35, 2 * S), waiting(10, S)};
	programs[0].idle_since_ns = 1; /* would leave for the small one at once */
	programs[1].here_since_ns = NOW;
	assert_waits(programs, 0, NOW + turn_of(20, 35));
	assert_step(programs, 11, LL_RESIDENCY_RESUME, 3); /* but what is free serves it */
	programs[2].bytes = 70 * GIB;                      /* it can never have room */
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
}

TEST(test_room_that_is_being_made_for_one_is_not_given_to_another)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_EVICTING, 20), waiting(30, 2 * S),
						  waiting(10, S)};
	assert_step(programs, 15, LL_RESIDENCY_RESUME, 1);
	programs[1].wants = false;
	assert_step(programs, 15, LL_RESIDENCY_RESUME, 2);
	struct ll_residency_program stopping[] = {in_state(LL_RESIDENCY_STOPPING, 20), waiting(30, 2 * S),
						  waiting(10, S)};
	assert_waits(stopping, 15, UINT64_MAX);
	stopping[1] = stuck(30, 8, 2 * S);
	assert_waits(stopping, 12, UINT64_MAX);
}

TEST(test_one_that_could_not_leave_is_not_asked_again_too_soon)
{
	struct ll_residency_program programs[] = {here(20), waiting(10, S)};
	programs[0].retry_ns = NOW + 9 * MS;
	assert_waits(programs, 0, NOW + 9 * MS);
	programs[0].retry_ns = NOW;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
}

TEST(test_one_without_memory_does_not_leave)
{
	struct ll_residency_program programs[] = {here(0), waiting(10, S)};
	assert_waits(programs, 0, UINT64_MAX);
}

/* ---- by hand ---- */

TEST(test_what_a_person_asks_for_is_done_at_once)
{
	struct ll_residency_program programs[] = {here(20)};
	programs[0].wish = LL_RESIDENCY_WISH_EVICT;
	assert_step(programs, 80, LL_RESIDENCY_EVICT, 0);
	programs[0].wish = LL_RESIDENCY_WISH_SUSPEND;
	assert_step(programs, 80, LL_RESIDENCY_SUSPEND, 0);
	programs[0].retry_ns = NOW + MS;
	assert_waits(programs, 80, NOW + MS);
	programs[0] = in_state(LL_RESIDENCY_SUSPENDED, 20);
	programs[0].wish = LL_RESIDENCY_WISH_EVICT;
	assert_step(programs, 80, LL_RESIDENCY_EVICT, 0);
	programs[0].wish = LL_RESIDENCY_WISH_NONE;
	assert_step(programs, 0, LL_RESIDENCY_RESUME, 0);
	programs[0].wish = LL_RESIDENCY_WISH_SUSPEND;
	assert_waits(programs, 80, UINT64_MAX);
}

TEST(test_what_was_evicted_or_stopped_by_hand_stays_away)
{
	struct ll_residency_program programs[] = {waiting(10, S)};
	programs[0].wish = LL_RESIDENCY_WISH_EVICT;
	assert_waits(programs, 80, UINT64_MAX);
	programs[0].wish = LL_RESIDENCY_WISH_SUSPEND;
	assert_waits(programs, 80, UINT64_MAX);
}

TEST(test_one_on_its_way_is_not_asked_twice)
{
	const enum ll_residency ways[] = {LL_RESIDENCY_PREPARING, LL_RESIDENCY_STOPPING, LL_RESIDENCY_SUSPENDING,
					  LL_RESIDENCY_EVICTING, LL_RESIDENCY_RESUMING};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct ll_residency_program programs[] = {in_state(ways[i], 10)};
		for (int wish = LL_RESIDENCY_WISH_NONE; wish <= LL_RESIDENCY_WISH_EVICT; wish++) {
			programs[0].wish = (enum ll_residency_wish)wish;
			programs[0].is_torn = true;
			assert_waits(programs, 80, UINT64_MAX);
		}
	}
}

TEST(test_one_that_is_evicted_while_it_returns_stays_away)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_RESUMING, 10)};
	assert_waits(programs, 80, UINT64_MAX);
	programs[0].wish = LL_RESIDENCY_WISH_EVICT;
	assert_step(programs, 80, LL_RESIDENCY_STAY, 0);
	programs[0].state = LL_RESIDENCY_STAYING;
	assert_waits(programs, 80, UINT64_MAX);
}

TEST(test_a_stopped_program_leaves_as_an_idle_one_does)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_SUSPENDED, 20), waiting(10, S)};
	programs[0].wish = LL_RESIDENCY_WISH_SUSPEND;
	programs[0].here_since_ns = NOW;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
}
