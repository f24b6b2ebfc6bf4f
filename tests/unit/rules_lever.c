/* How long those beneath a higher class are held: a job of that class has one speed while they are, and another one
 * while they are not. */
#include "rules/share/lever.h"

#include <math.h>
#include <string.h>

#include "test.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S (1000 * MS)

/* The higher class: pieces of work, each of so much time alone, and pauses. */
struct world {
	struct ll_lever lever;
	struct ll_lever_gauge gauge;
	uint64_t now_ns;
	double open;      /* its speed while nobody is held, of its speed alone */
	double launch_ns; /* alone */
	double work_ns;   /* of a piece; 0: without end */
	double pause_ns;  /* between pieces */
	double left_ns;   /* of the piece, or of the pause */
	bool is_pause;
	unsigned slowdown_permille;
	double launches;
	uint64_t held_ns, held_idle_ns; /* those beneath were held, and were so while there was no work */
	uint64_t pieces, pieces_ns, piece_since_ns;
	bool has_none_beneath;
};

static struct world new_world(double open, double slowdown)
{
	return (struct world){
	    .now_ns = S, .open = open, .launch_ns = 50000, .slowdown_permille = (unsigned)(slowdown * 1000)};
}

static void end_stage(struct world *world)
{
	world->is_pause = !world->is_pause;
	world->left_ns = world->is_pause ? world->pause_ns : world->work_ns;
	if (world->is_pause) {
		world->pieces++;
		world->pieces_ns += world->now_ns - world->piece_since_ns;
	}
	world->piece_since_ns = world->now_ns;
}

/* Nothing but what the choice and the gauge say went into it. */
static void assert_choice_replays(const struct world *world)
{
	const struct ll_lever_choice *choice = &world->lever.choice;
	struct ll_lever again = {.part = choice->from_part,
				 .busy = choice->busy,
				 .weighed_s = choice->weighed_s,
				 .is_known = choice->was_known};
	struct ll_lever_gauge gauge = {0};
	memcpy(gauge.launches, world->gauge.launches, sizeof gauge.launches);
	memcpy(gauge.seconds, world->gauge.seconds, sizeof gauge.seconds);
	struct ll_lever_job job = {.gauge = &gauge, .slowdown_permille = world->slowdown_permille};
	ll_lever_step(&again, &job, 1, true, world->now_ns);
	assert_int_equal(again.choice.move, choice->move);
	assert_true(again.part == world->lever.part && choice->part == world->lever.part);
}

static void step(struct world *world, uint64_t ns)
{
	double speed = world->lever.is_held ? 1 : world->open;
	world->now_ns += ns;
	world->held_ns += world->lever.is_held ? ns : 0;
	world->held_idle_ns += world->lever.is_held && world->is_pause ? ns : 0;
	if (!world->is_pause)
		world->launches += speed * (double)ns / world->launch_ns;
	world->left_ns -= (world->is_pause ? 1 : speed) * (double)ns;
	if (world->work_ns > 0 && world->left_ns <= 0)
		end_stage(world);
	struct ll_lever_job job = {.gauge = &world->gauge,
				   .completed = (uint64_t)world->launches,
				   .slowdown_permille = world->slowdown_permille,
				   .has_work = !world->is_pause};
	ll_lever_step(&world->lever, &job, 1, !world->has_none_beneath, world->now_ns);
	if (!world->lever.is_forced)
		assert_choice_replays(world);
}

static void play(struct world *world, uint64_t ns)
{
	for (uint64_t until_ns = world->now_ns + ns; world->now_ns < until_ns;)
		step(world, 200 * US);
}

/* The speed alone over that of the time that passes. */
static double slowdown_of(struct world *world, uint64_t ns)
{
	double before = world->launches;
	play(world, ns);
	return (double)ns / world->launch_ns / (world->launches - before);
}

static void assert_near(double value, double wanted, double tolerance)
{
	if (fabs(value - wanted) > tolerance)
		fail_msg("%.3f is not within %.3f of %.3f", value, tolerance, wanted);
}

TEST(the_higher_class_is_as_slow_as_it_accepts)
{
	static const double opens[] = {0.01, 0.2, 0.5, 0.7}, slowdowns[] = {1.1, 1.3, 2};
	for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
		for (size_t k = 0; k < sizeof slowdowns / sizeof *slowdowns; k++) {
			struct world world = new_world(opens[i], slowdowns[k]);
			play(&world, 15 * S);
			double most = 1 / (LL_LEVER_LEAST + (1 - LL_LEVER_LEAST) * opens[i]);
			double wanted = fmin(slowdowns[k], most);
			double is = slowdown_of(&world, 5 * S);
			if (is > 1.1 * wanted || is < 0.9 * wanted)
				fail_msg("open %.2f: %.3f, wanted %.3f", opens[i], is, wanted);
			assert_near(ll_lever_slowdown(&world.lever, &world.gauge), is, 0.1 * is);
		}
	}
}

/* What was queued when a part began is done after 2 ms. What is done from then on counts, so there is a step then. */
TEST(a_part_is_looked_at_when_it_begins_to_count)
{
	struct world world = new_world(0.2, 1.3);
	play(&world, 5 * S);
	enum ll_lever_way phase = world.lever.phase;
	while (world.lever.phase == phase)
		step(&world, 200 * US);
	assert_int_equal(world.lever.due_ns, world.lever.phase_ns + 2 * MS);
	step(&world, 2 * MS);
	assert_true(world.lever.due_ns > world.now_ns + 2 * MS);
}

TEST(holding_that_buys_nothing_is_not_done)
{
	struct world world = new_world(0.93, 1.0);
	play(&world, 10 * S);
	assert_near(world.lever.part, LL_LEVER_LEAST, 1e-9);
	world.held_ns = 0;
	play(&world, 10 * S);
	assert_true(world.held_ns < 300 * MS);
}

/* Short requests, seldom: those beneath are held in each of them from its first moment, and not after it. */
TEST(short_requests_have_the_card_to_themselves)
{
	struct world world = new_world(0.5, 1.3);
	world.work_ns = 2 * MS;
	world.pause_ns = world.left_ns = 50 * MS;
	world.is_pause = true;
	play(&world, 10 * S);
	assert_near(world.lever.part, 1, 1e-9);
	assert_true(world.pieces > 100);
	assert_true((double)world.pieces_ns / (double)world.pieces < 2.2 * MS);
	assert_true(world.held_idle_ns <= world.pieces * (LL_LEVER_HOLD_AFTER_NS + 400 * US));
}

/* Pieces that are shorter than a period are held for their part of the time too. */
TEST(dense_requests_have_their_part)
{
	struct world world = new_world(0.5, 1.3);
	world.work_ns = 5 * MS;
	world.pause_ns = 10 * MS;
	play(&world, 20 * S);
	world.pieces = world.pieces_ns = 0;
	play(&world, 20 * S);
	assert_near((double)world.pieces_ns / (double)world.pieces / (5 * MS), 1.3, 0.13);
}

TEST(a_mix_that_changes_has_its_part_soon)
{
	struct world world = new_world(0.95, 1.3);
	play(&world, 20 * S);
	world.open = 0.3;
	play(&world, 15 * S);
	assert_near(slowdown_of(&world, 5 * S), 1.3, 0.13);
	world.open = 0.7;
	play(&world, 15 * S);
	assert_near(slowdown_of(&world, 5 * S), 1.3, 0.13);
}

TEST(each_step_says_what_it_did_about_the_part)
{
	static const enum ll_lever_move order[] = {LL_LEVER_MOVE_SPARSE, LL_LEVER_MOVE_DENSE,  LL_LEVER_MOVE_FOUND,
						   LL_LEVER_MOVE_STAYS,  LL_LEVER_MOVE_MENDED, LL_LEVER_MOVE_STAYS};
	enum { MOVES = sizeof order / sizeof *order };
	struct world world = new_world(0.5, 1.3);
	enum ll_lever_move last = LL_LEVER_MOVE_NONE;
	size_t seen = 0;
	while (world.now_ns < 21 * S && seen < MOVES) {
		step(&world, 200 * US);
		enum ll_lever_move move = world.lever.choice.move;
		if (move == LL_LEVER_MOVE_NONE || move == LL_LEVER_MOVE_UNSEEN || move == last)
			continue;
		last = move;
		assert_int_equal(move, order[seen++]);
		if (move == LL_LEVER_MOVE_STAYS)
			world.slowdown_permille = 1100;
	}
	assert_int_equal(seen, MOVES);
	world.lever.is_forced = true;
	play(&world, S);
	assert_int_equal(world.lever.choice.move, LL_LEVER_MOVE_NONE);
}

TEST(a_part_of_0_that_was_forced_is_found_again)
{
	struct world world = new_world(0.5, 1.3);
	world.lever.is_forced = true;
	play(&world, 20 * S);
	assert_near(world.lever.part, 0, 1e-9);
	world.lever.is_forced = false;
	play(&world, 15 * S);
	assert_near(slowdown_of(&world, 5 * S), 1.3, 0.13);
}

TEST(nobody_is_held_for_a_class_that_has_left_or_for_nobody)
{
	struct world world = new_world(0.5, 1.3);
	play(&world, 5 * S);
	world.has_none_beneath = true;
	world.held_ns = 0;
	step(&world, 200 * US);
	assert_false(world.lever.is_held);
	assert_true(world.lever.due_ns == UINT64_MAX);
	ll_lever_step(&world.lever, NULL, 0, true, world.now_ns + MS);
	assert_false(world.lever.is_held);
}
