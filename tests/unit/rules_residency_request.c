/* What a tenant is promised by its request, and in which order programs that wait get room. */
#include "rules/residency/residency.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000000)

enum { HIGH = 1, NORMAL, LOW };

/* All times of the tests are seconds after this. */
#define NOW (1000 * SECOND)

static struct ll_residency_program here(uint64_t gib)
{
	return (struct ll_residency_program){
	    .state = LL_RESIDENCY_HERE, .priority = NORMAL, .bytes = gib * GIB, .here_since_ns = NOW - SECOND / 10};
}

static struct ll_residency_program away(uint64_t gib)
{
	return (struct ll_residency_program){.state = LL_RESIDENCY_AWAY,
					     .priority = NORMAL,
					     .bytes = gib * GIB,
					     .wants = true,
					     .want_since_ns = NOW - SECOND};
}

static struct ll_residency_program lacks(uint64_t gib, uint64_t short_gib)
{
	struct ll_residency_program program = here(gib);
	program.short_bytes = short_gib * GIB;
	program.want_since_ns = NOW - SECOND;
	return program;
}

static struct ll_residency_program within(struct ll_residency_program program)
{
	program.is_within = true;
	return program;
}

static struct ll_residency_program of_class(unsigned priority, struct ll_residency_program program)
{
	program.priority = priority;
	return program;
}

static struct ll_residency_program idle(struct ll_residency_program program)
{
	program.idle_since_ns = NOW - 10 * SECOND;
	return program;
}

/* It has been on the card for so long that its turn is over. */
static struct ll_residency_program long_here(struct ll_residency_program program)
{
	program.here_since_ns = NOW - 500 * SECOND;
	return program;
}

#define DECIDE(free_gib, programs)                                                                                     \
	ll_residency_decide(programs, sizeof(programs) / sizeof *(programs), (const uint64_t[]){(free_gib)*GIB}, NOW)

#define assert_step(decision, expected_step, expected_who)                                                             \
	do {                                                                                                           \
		struct ll_residency_decision made = decision;                                                          \
		assert_int_equal(made.step, expected_step);                                                            \
		assert_int_equal(made.who, expected_who);                                                              \
	} while (0)

#define assert_waits(decision) assert_int_equal((decision).step, LL_RESIDENCY_WAIT)

TEST(one_within_its_request_never_leaves_for_others)
{
	for (unsigned above = HIGH; above <= LOW; above++) {
		const struct ll_residency_program programs[] = {idle(within(of_class(LOW, here(60)))),
								of_class(above, away(60))};
		assert_waits(DECIDE(10, programs));
	}
	const struct ll_residency_program short_one[] = {within(long_here(here(60))), of_class(HIGH, lacks(10, 20))};
	assert_step(DECIDE(10, short_one), LL_RESIDENCY_REFUSE, 1);
}

TEST(one_within_its_request_leaves_by_hand)
{
	struct ll_residency_program programs[] = {within(here(60))};
	programs[0].wish = LL_RESIDENCY_WISH_EVICT;
	assert_step(DECIDE(10, programs), LL_RESIDENCY_EVICT, 0);
}

TEST(beside_one_within_its_request_another_leaves)
{
	const struct ll_residency_program programs[] = {within(long_here(here(30))), long_here(here(30)), away(30)};
	assert_step(DECIDE(10, programs), LL_RESIDENCY_EVICT, 1);
}

TEST(for_one_within_its_request_others_leave_before_their_turn_ends)
{
	const struct ll_residency_program turn[] = {here(60), lacks(10, 20)};
	assert_waits(DECIDE(10, turn));
	const struct ll_residency_program promised[] = {here(60), within(lacks(10, 20))};
	assert_step(DECIDE(10, promised), LL_RESIDENCY_EVICT, 0);
	const struct ll_residency_program returning[] = {here(60), within(away(30))};
	assert_step(DECIDE(10, returning), LL_RESIDENCY_EVICT, 0);
}

TEST(a_class_above_does_not_leave_for_a_request_below)
{
	const struct ll_residency_program programs[] = {of_class(HIGH, idle(long_here(here(60)))),
							within(lacks(10, 20))};
	assert_waits(DECIDE(10, programs));
}

TEST(an_allocation_within_the_request_is_never_refused)
{
	const struct ll_residency_program promised[] = {within(lacks(10, 20))};
	assert_waits(DECIDE(1, promised));
	const struct ll_residency_program other[] = {lacks(10, 20)};
	assert_step(DECIDE(1, other), LL_RESIDENCY_REFUSE, 0);
}

TEST(an_allocation_is_not_refused_while_another_returns)
{
	struct ll_residency_program returning = here(60);
	returning.state = LL_RESIDENCY_RESUMING;
	struct ll_residency_program programs[] = {returning, lacks(30, 20)};
	programs[0].left_bytes = 60 * GIB;
	assert_waits(DECIDE(50, programs)); /* as it begins */
	programs[0].left_bytes = 20 * GIB;
	assert_waits(DECIDE(10, programs)); /* after 40 GiB */
}

TEST(in_a_class_one_within_its_request_is_served_first)
{
	struct ll_residency_program programs[] = {away(20), within(away(20))};
	programs[0].want_since_ns = NOW - 9 * SECOND;
	assert_step(DECIDE(30, programs), LL_RESIDENCY_RESUME, 1);
	programs[0].priority = HIGH;
	assert_step(DECIDE(30, programs), LL_RESIDENCY_RESUME, 0);
}

TEST(one_that_left_while_its_allocation_waited_comes_back_for_both)
{
	struct ll_residency_program programs[] = {away(20)};
	programs[0].wants = false;
	programs[0].short_bytes = 20 * GIB;
	assert_step(DECIDE(30, programs), LL_RESIDENCY_REFUSE,
		    0); /* nobody can make room for both: it returns without */
	assert_step(DECIDE(50, programs), LL_RESIDENCY_RESUME, 0);
	programs[0].state = LL_RESIDENCY_HERE;
	assert_step(DECIDE(30, programs), LL_RESIDENCY_GRANT, 0);
}

/* Room that is being made for one must not be taken by those behind it, or it waits for ever. */
TEST(room_that_comes_free_is_the_first_ones)
{
	struct ll_residency_program leaving = here(40);
	leaving.state = LL_RESIDENCY_STOPPING;
	struct ll_residency_program behind = away(10);
	behind.want_since_ns = NOW - SECOND / 2;
	const struct ll_residency_program programs[] = {leaving, away(50), behind};
	assert_waits(DECIDE(15, programs));
	leaving.state = LL_RESIDENCY_EVICTING;
	leaving.left_bytes = leaving.bytes;
	const struct ll_residency_program counted[] = {leaving, away(50), behind};
	assert_step(DECIDE(15, counted), LL_RESIDENCY_RESUME, 1);
	const struct ll_residency_program alone[] = {leaving, behind};
	assert_step(DECIDE(15, alone), LL_RESIDENCY_RESUME, 1);
}

TEST(a_small_one_may_use_the_room_while_the_first_waits_for_a_long_turn)
{
	struct ll_residency_program behind = away(10);
	behind.want_since_ns = NOW - SECOND / 2;
	/* The turn of 60 GiB ends in 25 s, that of the small one would in 16 s. */
	const struct ll_residency_program long_turn[] = {here(60), away(70), behind};
	assert_step(DECIDE(15, long_turn), LL_RESIDENCY_RESUME, 2);
	struct ll_residency_program at_the_end = here(60);
	at_the_end.here_since_ns = NOW - 20 * SECOND;
	const struct ll_residency_program short_turn[] = {at_the_end, away(70), behind};
	assert_waits(DECIDE(15, short_turn));
	/* The one that leaves makes room for both. */
	assert_step(DECIDE(25, short_turn), LL_RESIDENCY_RESUME, 2);
}

/* Two that grow: the one must not be moved for the other's sake while it waits for the other to leave. */
TEST(one_that_waits_does_not_leave_for_one_behind_it)
{
	struct ll_residency_program front = long_here(lacks(40, 20)), behind = lacks(40, 20);
	front.want_since_ns = NOW - 9 * SECOND;
	const struct ll_residency_program programs[] = {front, behind};
	assert_waits(DECIDE(10, programs));
	const struct ll_residency_program after_its_turn[] = {front, long_here(behind)};
	assert_step(DECIDE(10, after_its_turn), LL_RESIDENCY_EVICT, 1);
	struct ll_residency_program returner = away(40);
	const struct ll_residency_program returning[] = {front, returner, here(20)};
	assert_waits(DECIDE(10, returning));
}

/* Else two programs would send each other away for ever, and none would do any work. */
TEST(one_that_was_idle_while_it_was_away_has_its_turn)
{
	const struct ll_residency_program programs[] = {idle(here(40)), away(40)};
	struct ll_residency_decision decision = DECIDE(10, programs);
	assert_waits(decision);
	assert_int_equal(decision.again_ns, programs[0].here_since_ns + LL_RESIDENCY_IDLE_NS);
}

TEST(a_turn_is_as_long_as_ten_moves)
{
	assert_int_equal(ll_residency_turn_ns(0, 0), LL_RESIDENCY_TURN_NS);
	assert_int_equal(ll_residency_turn_ns(SECOND, SECOND / 2), 15 * SECOND);
	assert_int_equal(ll_residency_turn_ns(UINT64_MAX / 4, UINT64_MAX / 4), LL_RESIDENCY_TURN_MAX_NS);
	struct ll_residency_program programs[] = {here(2), away(1)};
	programs[0].here_since_ns = NOW - 15 * SECOND;
	programs[0].moved_ns = programs[1].moved_ns = SECOND;
	assert_int_equal(DECIDE(0, programs).again_ns, NOW + 5 * SECOND);
}

TEST(one_that_can_never_be_served_delays_nobody)
{
	struct ll_residency_program behind = away(5);
	behind.want_since_ns = NOW - SECOND / 2;
	const struct ll_residency_program programs[] = {within(here(60)), away(60), behind};
	assert_step(DECIDE(15, programs), LL_RESIDENCY_RESUME, 2);
}

TEST(one_that_waits_for_a_program_that_cannot_leave_delays_nobody)
{
	struct ll_residency_program behind = away(5), stuck = long_here(here(60));
	behind.want_since_ns = NOW - SECOND / 2;
	stuck.retry_ns = NOW + SECOND;
	const struct ll_residency_program programs[] = {stuck, away(60), behind};
	assert_step(DECIDE(15, programs), LL_RESIDENCY_RESUME, 2);
}

TEST(two_that_fit_do_not_move)
{
	const struct ll_residency_program programs[] = {idle(long_here(here(30))), lacks(30, 5)};
	assert_step(DECIDE(20, programs), LL_RESIDENCY_GRANT, 1);
	const struct ll_residency_program quiet[] = {idle(long_here(here(30))), long_here(here(30))};
	assert_waits(DECIDE(0, quiet));
}
