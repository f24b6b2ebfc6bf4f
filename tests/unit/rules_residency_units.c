/* Which processes of a job are one for the rules of residency.h. */
#include "rules_residency.h"

#include "rules/residency/residency_units.h"

enum { MOST = 8 };
enum { FREE_CARDS = 2 };

static struct ll_residency_member of_job(struct ll_residency_program rule, unsigned job, unsigned process,
					 unsigned card)
{
	static unsigned number;
	rule.job = job;
	rule.card = card;
	if (!process) /* its own */
		process = 1000 + ++number;
	return (struct ll_residency_member){.rule = rule, .process = process};
}

static const uint64_t *free_gib(uint64_t first, uint64_t second)
{
	static uint64_t bytes[FREE_CARDS];
	bytes[0] = first * GIB;
	bytes[1] = second * GIB;
	return bytes;
}

#define join(members, free_bytes, programs)                                                                            \
	ll_residency_units_join(members, sizeof(members) / sizeof *(members), free_bytes, true, NOW, programs)

#define follow(members) ll_residency_units_follow(members, sizeof(members) / sizeof *(members))

TEST(processes_of_a_job_on_a_card_are_one)
{
	struct ll_residency_program programs[MOST], working = here(10), idle = here(20);
	working.here_since_ns = NOW - 3 * S;
	idle.here_since_ns = NOW - 5 * S;
	idle.idle_since_ns = NOW - 4 * S;
	struct ll_residency_member members[] = {of_job(working, 1, 0, 0), of_job(idle, 1, 0, 0),
						of_job(here(7), 2, 0, 0)};
	assert_int_equal(join(members, free_gib(0, 0), programs), 2);
	assert_int_equal(members[0].unit, members[1].unit);
	assert_int_not_equal(members[0].unit, members[2].unit);
	assert_int_equal(programs[0].bytes, 30 * GIB);
	assert_int_equal(programs[0].idle_since_ns, 0);
	assert_int_equal(programs[0].here_since_ns, NOW - 5 * S);
	members[0].rule.idle_since_ns = NOW - 2 * S;
	join(members, free_gib(0, 0), programs);
	assert_int_equal(programs[0].idle_since_ns, NOW - 2 * S);
}

TEST(a_unit_wants_since_the_first_of_its_processes_wants)
{
	struct ll_residency_program programs[MOST], calm = waiting(10, 0);
	calm.wants = false;
	struct ll_residency_member members[] = {of_job(calm, 1, 0, 0), of_job(waiting(20, 3 * S), 1, 0, 0),
						of_job(waiting(20, 5 * S), 1, 0, 1)};
	assert_int_equal(join(members, free_gib(50, 50), programs), 2);
	assert_true(programs[0].wants && programs[1].wants);
	assert_int_equal(programs[0].want_since_ns, NOW - 5 * S);
	assert_int_equal(programs[0].unit, programs[1].unit);
	assert_int_equal(programs[0].bytes, 30 * GIB);
	assert_int_equal(programs[1].bytes, 20 * GIB);
}

TEST(a_unit_is_within_its_request_if_it_is_on_each_card)
{
	struct ll_residency_program programs[MOST], within = here(10);
	within.is_within = true;
	struct ll_residency_member members[] = {of_job(within, 1, 0, 0), of_job(here(10), 1, 0, 1)};
	assert_int_equal(join(members, free_gib(0, 0), programs), 2);
	assert_false(programs[0].is_within || programs[1].is_within);
	members[1].rule.is_within = true;
	join(members, free_gib(0, 0), programs);
	assert_true(programs[0].is_within && programs[1].is_within);
}

TEST(one_that_could_not_leave_keeps_all_until_it_is_asked_again)
{
	struct ll_residency_program programs[MOST], refused = here(10);
	refused.retry_ns = NOW + 3 * S;
	struct ll_residency_member members[] = {of_job(here(10), 1, 0, 0), of_job(refused, 1, 0, 0),
						of_job(waiting(20, 100 * S), 2, 0, 0)};
	assert_int_equal(join(members, free_gib(1, 0), programs), 2);
	struct ll_residency_decision decision = ll_residency_decide(programs, 2, free_gib(1, 0), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_WAIT);
	decision = ll_residency_decide(programs, 2, free_gib(1, 0), NOW + 3 * S);
	assert_int_equal(decision.step, LL_RESIDENCY_EVICT);
	assert_int_equal(programs[decision.who].unit, members[0].unit);
}

TEST(one_that_is_evicted_by_hand_is_alone)
{
	struct ll_residency_program programs[MOST], evicted = in_state(LL_RESIDENCY_AWAY, 10);
	evicted.wish = LL_RESIDENCY_WISH_EVICT;
	struct ll_residency_member members[] = {of_job(evicted, 1, 0, 0), of_job(here(10), 1, 0, 0),
						of_job(here(10), 1, 0, 1)};
	assert_int_equal(join(members, free_gib(0, 0), programs), 3);
	assert_int_not_equal(members[0].unit, members[1].unit);
	assert_int_equal(members[1].unit, members[2].unit);
}

TEST(what_still_leaves_is_counted_and_what_is_away_goes_with_it)
{
	struct ll_residency_program programs[MOST], leaving = in_state(LL_RESIDENCY_EVICTING, 10);
	leaving.left_bytes = 4 * GIB;
	struct ll_residency_member members[] = {of_job(leaving, 1, 0, 0), of_job(waiting(20, S), 1, 0, 0),
						of_job(waiting(5, S), 1, 0, 1)};
	assert_int_equal(join(members, free_gib(40, 40), programs), 2);
	assert_int_equal(members[0].unit, members[2].unit);
	assert_int_equal(programs[0].state, LL_RESIDENCY_EVICTING);
	assert_int_equal(programs[0].left_bytes, 4 * GIB);
	assert_int_equal(programs[1].state, LL_RESIDENCY_EVICTING);
	assert_int_equal(programs[1].left_bytes, 0);
	/* It does not return while others of it leave. */
	assert_int_equal(ll_residency_decide(programs, 2, free_gib(40, 40), NOW).step, LL_RESIDENCY_WAIT);
}

TEST(those_that_are_asked_to_leave_and_go_on_for_a_moment_count_as_asked)
{
	struct ll_residency_program programs[MOST], pausing = here(10);
	pausing.is_gathering = true;
	struct ll_residency_member members[] = {of_job(pausing, 1, 0, 0), of_job(pausing, 1, 0, 0),
						of_job(here(30), 2, 0, 0), of_job(waiting(19, S), 3, 0, 0)};
	assert_int_equal(join(members, free_gib(0, 0), programs), 3);
	assert_int_equal(programs[0].state, LL_RESIDENCY_STOPPING);
	assert_int_equal(ll_residency_decide(programs, 3, free_gib(0, 0), NOW).step, LL_RESIDENCY_WAIT);
	/* So do they while they are told to go on, and an allocation is not refused then. */
	members[0].rule.state = LL_RESIDENCY_RESUMING;
	members[0].rule.is_torn = true;
	members[3].rule = here(1);
	members[3].rule.card = 0;
	members[3].rule.job = 3;
	members[3].rule.short_bytes = 20 * GIB;
	members[2].rule.is_within = true;
	assert_int_equal(join(members, free_gib(0, 0), programs), 3);
	assert_int_equal(programs[0].state, LL_RESIDENCY_STOPPING);
	assert_int_equal(ll_residency_decide(programs, 3, free_gib(0, 0), NOW).step, LL_RESIDENCY_WAIT);
}

TEST(a_job_returns_to_all_of_its_cards_or_to_none)
{
	struct ll_residency_program programs[MOST], fresh = here(30);
	fresh.here_since_ns = NOW;
	struct ll_residency_member members[] = {of_job(waiting(20, 100 * S), 1, 0, 0), of_job(here(30), 2, 0, 0),
						of_job(waiting(20, 100 * S), 1, 0, 1), of_job(fresh, 3, 0, 1)};
	assert_int_equal(join(members, free_gib(0, 0), programs), 4);
	/* One that could leave the first card now stays as long as one on the second card has its turn. */
	struct ll_residency_decision decision = ll_residency_decide(programs, 4, free_gib(0, 0), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_WAIT);
	assert_int_equal(decision.again_ns, NOW + turn_of(30, 20));
	/* The first card has the room. */
	decision = ll_residency_decide(programs, 4, free_gib(40, 0), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_WAIT);
	decision = ll_residency_decide(programs, 4, free_gib(40, 0), NOW + turn_of(30, 20));
	assert_int_equal(decision.step, LL_RESIDENCY_EVICT);
	assert_int_equal(decision.who, 3);
	decision = ll_residency_decide(programs, 4, free_gib(40, 40), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_RESUME);
	assert_int_equal(programs[decision.who].unit, members[0].unit);
}

TEST(one_that_waits_for_another_card_lets_those_behind_it_use_the_room_meanwhile)
{
	struct ll_residency_program programs[MOST], fresh = here(60);
	fresh.here_since_ns = NOW;
	/* Its turn of 60 GiB is longer than a move and a turn of 1 GiB. */
	struct ll_residency_member members[] = {of_job(waiting(20, 100 * S), 1, 0, 0), of_job(waiting(1, S), 2, 0, 0),
						of_job(waiting(20, 100 * S), 1, 0, 1), of_job(fresh, 3, 0, 1)};
	join(members, free_gib(20, 0), programs);
	struct ll_residency_decision decision = ll_residency_decide(programs, 4, free_gib(20, 0), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_RESUME);
	assert_int_equal(decision.who, 1);
	/* One that needs longer does not. */
	members[1].rule.bytes = 20 * GIB;
	members[1].rule.moved_ns = 10 * S;
	join(members, free_gib(20, 0), programs);
	assert_int_equal(ll_residency_decide(programs, 4, free_gib(20, 0), NOW).step, LL_RESIDENCY_WAIT);
}

TEST(of_a_job_too_large_for_its_card_processes_take_turns)
{
	struct ll_residency_program programs[MOST], away = waiting(30, 100 * S);
	struct ll_residency_member members[] = {of_job(here(30), 1, 1, 0), of_job(away, 1, 2, 0),
						of_job(here(5), 1, 1, 1)};
	members[0].large_since_ns = NOW - LL_RESIDENCY_LARGE_NS;
	assert_int_equal(join(members, free_gib(10, 50), programs), 3);
	assert_int_equal(members[0].unit, members[2].unit); /* the same process */
	assert_int_not_equal(members[0].unit, members[1].unit);
	struct ll_residency_decision decision = ll_residency_decide(programs, 3, free_gib(10, 50), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_EVICT);
	assert_int_equal(decision.who, 0);
	/* With room for both they do not leave for each other. */
	join(members, free_gib(31, 50), programs);
	assert_int_equal(ll_residency_decide(programs, 3, free_gib(31, 50), NOW).step, LL_RESIDENCY_RESUME);
	struct ll_residency_member beside[] = {members[0], members[1], of_job(here(10), 2, 0, 0)};
	assert_int_equal(join(beside, free_gib(25, 50), programs), 3);
	decision = ll_residency_decide(programs, 3, free_gib(25, 50), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_EVICT);
	assert_int_equal(decision.who, 2);
}

/* Else those that were asked to leave together would be taken for programs that cannot leave. */
TEST(a_job_does_not_become_too_large_while_it_is_asked_to_leave)
{
	struct ll_residency_program programs[MOST], pausing = here(20), lacks = here(10);
	pausing.is_gathering = true;
	lacks.short_bytes = 15 * GIB;
	struct ll_residency_member members[] = {of_job(pausing, 1, 0, 0), of_job(pausing, 1, 0, 0),
						of_job(lacks, 2, 0, 0)};
	members[0].rule.short_bytes = 20 * GIB;
	assert_int_equal(join(members, free_gib(0, 0), programs), 2);
	assert_int_equal(members[0].unit, members[1].unit);
	members[0].rule.is_gathering = members[1].rule.is_gathering = false;
	members[0].large_since_ns = NOW - LL_RESIDENCY_LARGE_NS;
	assert_int_equal(join(members, free_gib(0, 0), programs), 3);
	/* Nor one that is, one. */
	members[0].rule.is_gathering = members[1].rule.is_gathering = true;
	members[0].rule.short_bytes = 0;
	assert_int_equal(join(members, free_gib(0, 0), programs), 3);
	assert_int_equal(programs[0].state, LL_RESIDENCY_STOPPING);
	assert_int_equal(ll_residency_decide(programs, 3, free_gib(0, 0), NOW).step, LL_RESIDENCY_WAIT);
}

TEST(nothing_is_granted_without_some_slack_or_refused_while_a_job_may_be_too_large)
{
	struct ll_residency_program programs[MOST], lacks = here(10);
	lacks.short_bytes = GIB;
	struct ll_residency_member members[] = {of_job(lacks, 1, 0, 0), of_job(here(10), 1, 0, 0)};
	size_t count = ll_residency_units_join(members, 2, free_gib(1, 0), false, NOW, programs);
	assert_int_equal(count, 1);
	assert_int_equal(ll_residency_decide(programs, count, free_gib(1, 0), NOW).step, LL_RESIDENCY_WAIT);
	count = ll_residency_units_join(members, 2, free_gib(0, 0), false, NOW, programs);
	assert_int_equal(ll_residency_decide(programs, count, free_gib(0, 0), NOW).step, LL_RESIDENCY_WAIT);
	count = ll_residency_units_join(members, 2, free_gib(2, 0), false, NOW, programs);
	assert_int_equal(ll_residency_decide(programs, count, free_gib(2, 0), NOW).step, LL_RESIDENCY_GRANT);
	/* What a program has is told a little late. */
	count = ll_residency_units_join(members, 2, free_gib(1, 0), true, NOW, programs);
	assert_int_equal(count, 1);
	assert_int_equal(ll_residency_decide(programs, count, free_gib(1, 0), NOW).step, LL_RESIDENCY_WAIT);
	count = ll_residency_units_join(members, 2, free_gib(2, 0), true, NOW + LL_RESIDENCY_LARGE_NS, programs);
	assert_int_equal(count, 1);
	assert_int_equal(members[0].large_since_ns, 0);
	/* When it is known, the other one makes room. What was not measured in between says nothing. */
	ll_residency_units_join(members, 2, free_gib(1, 0), true, NOW, programs);
	ll_residency_units_join(members, 2, free_gib(2, 0), false, NOW, programs);
	count = ll_residency_units_join(members, 2, free_gib(1, 0), true, NOW + LL_RESIDENCY_LARGE_NS, programs);
	assert_int_equal(count, 2);
	assert_int_equal(ll_residency_decide(programs, count, free_gib(1, 0), NOW).step, LL_RESIDENCY_EVICT);
}

/* Neither leaves for a process of its own job: they would wait for each other for ever. */
TEST(of_a_job_too_large_one_that_finds_no_room_and_one_that_waits_take_turns)
{
	struct ll_residency_program programs[MOST], stuck = in_state(LL_RESIDENCY_RESUMING, 10), lacks = here(10);
	stuck.left_bytes = 4 * GIB;
	stuck.came_bytes = 6 * GIB;
	stuck.lacks_room = true;
	lacks.short_bytes = GIB;
	struct ll_residency_member members[] = {of_job(stuck, 1, 0, 0), of_job(lacks, 1, 0, 0)};
	join(members, free_gib(0, 0), programs);
	size_t count = ll_residency_units_join(members, 2, free_gib(0, 0), true, NOW + LL_RESIDENCY_LARGE_NS, programs);
	struct ll_residency_decision decision =
	    ll_residency_decide(programs, count, free_gib(0, 0), NOW + LL_RESIDENCY_LARGE_NS);
	assert_true(decision.step == LL_RESIDENCY_EVICT || decision.step == LL_RESIDENCY_STAY);
}

TEST(those_that_are_back_go_on_when_all_are)
{
	struct ll_residency_program programs[MOST], back = in_state(LL_RESIDENCY_RESUMING, 10), coming = back;
	back.left_bytes = 0;
	struct ll_residency_member members[] = {of_job(back, 1, 0, 0), of_job(coming, 1, 0, 1)};
	members[0].is_held = members[1].is_held = true;
	join(members, free_gib(40, 40), programs);
	assert_int_equal(follow(members).step, LL_RESIDENCY_WAIT);
	/* Nobody waits for one that is silent. */
	members[1].rule.is_silent = true;
	join(members, free_gib(40, 40), programs);
	assert_int_equal(follow(members).step, LL_RESIDENCY_RESUME_FULLY);
	members[1].rule.is_silent = false;
	members[1].rule.left_bytes = 0;
	join(members, free_gib(40, 40), programs);
	assert_int_equal(follow(members).step, LL_RESIDENCY_RESUME_FULLY);
	assert_int_equal(follow(members).who, 0);
	members[0].is_held = false;
	assert_int_equal(follow(members).who, 1);
}

TEST(those_that_return_wait_for_one_that_was_not_told_yet)
{
	struct ll_residency_program programs[MOST], back = in_state(LL_RESIDENCY_RESUMING, 10);
	back.left_bytes = 0;
	struct ll_residency_member members[] = {of_job(back, 1, 0, 0),
						of_job(in_state(LL_RESIDENCY_AWAY, 10), 1, 0, 1)};
	members[0].is_held = true;
	join(members, free_gib(40, 40), programs);
	assert_int_equal(follow(members).step, LL_RESIDENCY_RESUME);
	assert_int_equal(follow(members).who, 1);
}

TEST(of_two_jobs_that_hold_one_card_each_and_lack_the_other_one_stays_away)
{
	struct ll_residency_program programs[MOST], has = in_state(LL_RESIDENCY_RESUMING, 10), lacks = has;
	has.left_bytes = 0;
	has.came_bytes = 10 * GIB;
	lacks.lacks_room = true;
	has.want_since_ns = lacks.want_since_ns = NOW - 5 * S;
	struct ll_residency_member members[] = {of_job(has, 1, 0, 0), of_job(lacks, 2, 0, 0), of_job(lacks, 1, 0, 1),
						of_job(has, 2, 0, 1)};
	for (unsigned i = 0; i < 4; i++)
		members[i].is_held = true;
	members[0].rule.want_since_ns = members[2].rule.want_since_ns = NOW - 6 * S;
	assert_int_equal(join(members, free_gib(5, 5), programs), 4);
	struct ll_residency_decision decision = ll_residency_decide(programs, 4, free_gib(5, 5), NOW);
	assert_int_equal(decision.step, LL_RESIDENCY_STAY);
	assert_int_equal(programs[decision.who].unit, members[1].unit);
	/* All of it does. */
	members[3].rule.state = LL_RESIDENCY_STAYING;
	join(members, free_gib(5, 5), programs);
	assert_int_equal(follow(members).step, LL_RESIDENCY_STAY);
	assert_int_equal(follow(members).who, 1);
}

TEST(an_allocation_of_the_first_that_waits_is_served)
{
	struct ll_residency_program programs[MOST], first = here(10), second = here(10);
	first.short_bytes = 3 * GIB;
	first.want_since_ns = NOW - 2 * S;
	second.short_bytes = 2 * GIB;
	second.want_since_ns = NOW - S;
	struct ll_residency_member members[] = {of_job(second, 1, 0, 0), of_job(first, 1, 0, 0)};
	assert_int_equal(join(members, free_gib(9, 0), programs), 1);
	assert_true(programs[0].short_bytes >= 3 * GIB && programs[0].short_bytes < 4 * GIB);
	assert_int_equal(ll_residency_decide(programs, 1, free_gib(9, 0), NOW).step, LL_RESIDENCY_GRANT);
	assert_int_equal(ll_residency_units_short(members, 2, members[0].unit, 0), 1);
}
