/* Allocations that wait for room on the card: residency.h. */
#include "rules_residency.h"

static struct ll_residency_program lacking(uint64_t has_gib, uint64_t short_gib)
{
	struct ll_residency_program program = here(has_gib);
	program.short_bytes = short_gib * GIB;
	program.want_since_ns = NOW - S;
	return program;
}

TEST(test_an_allocation_is_granted_refused_or_waits)
{
	struct ll_residency_program programs[] = {lacking(10, 20), here(15)};
	assert_step(programs, 21, LL_RESIDENCY_GRANT, 0);
	assert_step(programs, 10, LL_RESIDENCY_EVICT, 1);
	assert_step(programs, 4, LL_RESIDENCY_REFUSE, 0);
	programs[1] = in_state(LL_RESIDENCY_EVICTING, 20);
	assert_waits(programs, 10, UINT64_MAX);
	programs[1] = here(15);
	programs[1].here_since_ns = NOW;
	assert_waits(programs, 10, NOW + turn_of(15, 0));
	programs[1].priority = HIGH;
	assert_step(programs, 10, LL_RESIDENCY_REFUSE, 0);
}

TEST(test_others_leave_for_one_that_fits_without_the_margin_only)
{
	struct ll_residency_program programs[] = {here(20), waiting(20, S)};
	programs[0].idle_since_ns = NOW - S;
	assert_step(programs, 0, LL_RESIDENCY_EVICT, 0);
	programs[0].state = LL_RESIDENCY_EVICTING;
	programs[0].left_bytes = programs[0].bytes;
	assert_step(programs, 0, LL_RESIDENCY_RESUME, 1);
	struct ll_residency_program allocating[] = {here(20), here(5)};
	allocating[0].idle_since_ns = NOW - S;
	allocating[1].short_bytes = 21 * GIB;
	assert_step(allocating, 1, LL_RESIDENCY_EVICT, 0);
	assert_step(allocating, 0, LL_RESIDENCY_REFUSE, 1);
}

TEST(test_an_allocation_that_fits_without_the_margin_is_granted)
{
	struct ll_residency_program programs[] = {lacking(10, 20)};
	assert_step(programs, 20, LL_RESIDENCY_GRANT, 0);
	assert_step(programs, 19, LL_RESIDENCY_REFUSE, 0);
}

TEST(test_an_allocation_waits_for_one_that_will_be_there_and_may_leave_then)
{
	struct ll_residency_program programs[] = {lacking(10, 20), in_state(LL_RESIDENCY_RESUMING, 15)};
	assert_waits(programs, 20, NOW + turn_of(15, 0));
	assert_waits(programs, 19, UINT64_MAX);
	programs[1].state = LL_RESIDENCY_AWAY;
	assert_step(programs, 19, LL_RESIDENCY_REFUSE, 0);
}

TEST(test_one_that_left_amid_an_allocation_returns_with_room_for_it)
{
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_AWAY, 10), here(15)};
	programs[0].short_bytes = 20 * GIB;
	assert_step(programs, 31, LL_RESIDENCY_RESUME, 0);
	assert_step(programs, 25, LL_RESIDENCY_EVICT, 1);
	assert_step(programs, 10, LL_RESIDENCY_REFUSE, 0); /* then it returns without */
}

TEST(test_an_allocation_is_not_refused_for_room_that_others_have_for_now)
{
	/* What is kept for those in front can leave again when they have had it. */
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_STOPPING, 40), here(20), waiting(20, 2 * S),
						  here(30)};
	programs[1].short_bytes = GIB;
	programs[1].want_since_ns = NOW - 3 * S;
	programs[3].short_bytes = 40 * GIB;
	programs[3].want_since_ns = NOW - S;
	assert_waits(programs, 0, UINT64_MAX);
	programs[3].short_bytes = 61 * GIB; /* more than all others have */
	assert_step(programs, 0, LL_RESIDENCY_REFUSE, 3);
	/* So can what was granted, when it is taken. */
	struct ll_residency_program granted[] = {here(20), here(30)};
	granted[0].granted_bytes = 10 * GIB;
	granted[1].short_bytes = 25 * GIB;
	assert_waits(granted, 10, UINT64_MAX);
	granted[0].granted_bytes = 0;
	assert_step(granted, 4, LL_RESIDENCY_REFUSE, 1);
}

TEST(test_an_allocation_in_pieces_begins_while_others_leave)
{
	/* One in a piece is tried once, so it waits until its room is there. */
	struct ll_residency_program programs[] = {in_state(LL_RESIDENCY_EVICTING, 20), here(20), waiting(4, S)};
	programs[1].short_bytes = 15 * GIB;
	programs[2].wants = false;
	assert_waits(programs, 1, UINT64_MAX);
	assert_step(programs, 16, LL_RESIDENCY_GRANT, 1);
	programs[1].waits_by_chunk = true;
	assert_step(programs, 1, LL_RESIDENCY_GRANT, 1);
	programs[0].left_bytes = 10 * GIB;
	assert_step(programs, 6, LL_RESIDENCY_GRANT, 1);
	assert_step(programs, 4, LL_RESIDENCY_REFUSE, 1); /* nobody else can leave */
	programs[0].state = LL_RESIDENCY_STOPPING;        /* it may refuse */
	assert_waits(programs, 6, UINT64_MAX);
	programs[0].state = LL_RESIDENCY_EVICTING;
	programs[2].state = LL_RESIDENCY_RESUMING; /* it takes what comes free */
	programs[2].left_bytes = GIB;
	assert_waits(programs, 7, UINT64_MAX);
}
