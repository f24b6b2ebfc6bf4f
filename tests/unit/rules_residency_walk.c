/*
 * Programs that share a card by residency.h, over minutes: a model of the card and of its bus, and random programs that
 * work and pause. Time goes on from event to event.
 */
#include "test.h"

#include "base/clock.h"
#include "rules/residency/residency.h"

#define MS LL_NS_PER_MS
#define S LL_NS_PER_S
#define GIB (UINT64_C(1) << 30)

enum { HIGH = 1, NORMAL, LOW };
enum { MOST = 8 };

enum { COPY_BYTES = 1 << 29 };

struct actor {
	struct ll_residency_program rule;
	uint64_t work_ns, pause_ns; /* it works and pauses in turn; pause 0: it always works */
	uint64_t change_ns;         /* when it begins to work or to pause */
	uint64_t copy_bytes;        /* of a move, not yet copied */
	uint64_t done_ns;           /* when it is quiet, or the chunk is copied; 0: nothing is under way */
	uint64_t here_ns;           /* how long it was on the card */
	uint64_t asked_ns;          /* since when it waits; 0: it does not */
	uint64_t longest_wait_ns;
	unsigned busy;     /* so many of its refusals are left */
	unsigned gives_up; /* so many moves out that it gives up when half is out */
	bool works;
};

struct world {
	struct actor actors[MOST];
	size_t count;
	uint64_t card_bytes, free_bytes, now_ns;
	uint64_t bus_ns; /* how long the bus was busy, both directions added */
	unsigned moves, stays;
	bool is_one_class, gave_up;
};

static uint32_t seed;
static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)(seed >> 4) * below) >> 28);
}

static uint64_t copy_ns(uint64_t bytes)
{
	return bytes / 55; /* 55 GB/s */
}

static void give_class(struct world *world, struct actor *actor)
{
	actor->rule.priority = world->is_one_class ? NORMAL : HIGH + draw(3);
}

/* Each program fits the card alone. At first all that fit are there, and the others want to return. */
static void make_world(struct world *world, bool is_working)
{
	*world = (struct world){.count = 2 + draw(MOST - 2), .card_bytes = (20 + draw(120)) * GIB, .now_ns = S};
	world->is_one_class = is_working || draw(2);
	world->free_bytes = world->card_bytes;
	for (size_t i = 0; i < world->count; i++) {
		struct actor *actor = &world->actors[i];
		actor->rule.bytes = GIB + draw((uint32_t)(world->card_bytes / GIB - 1)) * GIB;
		actor->rule.state = LL_RESIDENCY_AWAY;
		actor->work_ns = (1 + draw(10000)) * MS;
		actor->pause_ns = is_working || draw(2) ? 0 : (1 + draw(20000)) * MS;
		actor->change_ns = actor->pause_ns ? world->now_ns + actor->work_ns : UINT64_MAX;
		actor->works = true;
		actor->busy = draw(3) ? 0 : draw(4);
		actor->gives_up = draw(3) ? 0 : draw(4);
		give_class(world, actor);
		if (actor->rule.bytes > world->free_bytes)
			continue;
		actor->rule.state = LL_RESIDENCY_HERE;
		actor->rule.here_since_ns = world->now_ns;
		world->free_bytes -= actor->rule.bytes;
	}
}

/* An actor that works wants the card while it is away. */
static void note_wants(struct world *world)
{
	for (size_t i = 0; i < world->count; i++) {
		struct actor *actor = &world->actors[i];
		actor->rule.idle_since_ns = actor->works ? 0 : actor->rule.idle_since_ns;
		if (actor->rule.state != LL_RESIDENCY_AWAY || !actor->works || actor->rule.wants)
			continue;
		actor->rule.wants = true;
		actor->rule.want_since_ns = actor->asked_ns = world->now_ns;
	}
}

static bool is_any_on_its_way(const struct world *world, const struct actor *but)
{
	bool is_any = false;
	for (size_t i = 0; i < world->count; i++) {
		enum ll_residency state = world->actors[i].rule.state;
		is_any |= &world->actors[i] != but && (state == LL_RESIDENCY_EVICTING ||
						       state == LL_RESIDENCY_STAYING || state == LL_RESIDENCY_RESUMING);
	}
	return is_any;
}

static void begin_chunk(struct world *world, struct actor *actor)
{
	uint64_t chunk = actor->copy_bytes < COPY_BYTES ? actor->copy_bytes : COPY_BYTES;
	if (actor->rule.state == LL_RESIDENCY_RESUMING) {
		actor->rule.lacks_room = chunk > world->free_bytes;
		if (actor->rule.lacks_room) {
			/* Only a higher class takes what was kept for it. Or the room is not there yet, or one that
			 * gave up leaving takes it back. */
			assert_true(!world->is_one_class || is_any_on_its_way(world, actor) || world->gave_up);
			return;
		}
		world->free_bytes -= chunk;
		actor->rule.left_bytes -= chunk;
		actor->rule.came_bytes += chunk;
	}
	actor->done_ns = world->now_ns + copy_ns(chunk);
	world->bus_ns += copy_ns(chunk);
}

/* What has left returns. */
static void give_up_leaving(struct world *world, struct actor *actor)
{
	world->gave_up = true;
	actor->gives_up--;
	actor->rule.state = LL_RESIDENCY_RESUMING;
	actor->rule.retry_ns = world->now_ns + S;
	actor->rule.left_bytes = actor->copy_bytes = actor->rule.bytes - actor->copy_bytes;
	actor->rule.came_bytes = 0;
	actor->rule.is_torn = true;
	begin_chunk(world, actor);
}

static void end_staying(struct world *world, struct actor *actor)
{
	actor->done_ns = 0;
	world->free_bytes += actor->rule.left_bytes;
	actor->rule.state = actor->rule.is_torn ? LL_RESIDENCY_RESUMING : LL_RESIDENCY_AWAY;
	actor->rule.lacks_room = actor->rule.is_torn;
	actor->rule.left_bytes = actor->copy_bytes = actor->copy_bytes + actor->rule.left_bytes;
}

static void end_chunk(struct world *world, struct actor *actor)
{
	uint64_t chunk = actor->copy_bytes < COPY_BYTES ? actor->copy_bytes : COPY_BYTES;
	bool is_leaving = actor->rule.state == LL_RESIDENCY_EVICTING;
	actor->copy_bytes -= chunk;
	world->free_bytes += is_leaving ? chunk : 0;
	actor->rule.left_bytes -= is_leaving ? chunk : 0;
	actor->done_ns = 0;
	if (is_leaving && actor->gives_up && actor->copy_bytes && actor->copy_bytes < actor->rule.bytes / 2) {
		give_up_leaving(world, actor);
		return;
	}
	if (actor->copy_bytes) {
		begin_chunk(world, actor);
		return;
	}
	actor->rule.state = is_leaving ? LL_RESIDENCY_AWAY : LL_RESIDENCY_HERE;
	if (is_leaving)
		return;
	actor->rule.wants = false;
	bool was_torn = actor->rule.is_torn;
	actor->rule.is_torn = false;
	actor->rule.came_bytes = 0;
	if (was_torn) /* it gave up leaving: its turn goes on */
		return;
	actor->rule.here_since_ns = world->now_ns;
	uint64_t waited_ns = world->now_ns - actor->asked_ns;
	actor->longest_wait_ns = waited_ns > actor->longest_wait_ns ? waited_ns : actor->longest_wait_ns;
	actor->asked_ns = 0;
}

static void end_stopping(struct world *world, struct actor *actor)
{
	actor->done_ns = 0;
	if (actor->busy) {
		actor->busy--;
		actor->rule.state = LL_RESIDENCY_HERE;
		actor->rule.retry_ns = world->now_ns + S;
		return;
	}
	actor->rule.state = LL_RESIDENCY_EVICTING;
	actor->rule.left_bytes = actor->copy_bytes = actor->rule.bytes;
	begin_chunk(world, actor);
}

static void turn_to(struct world *world, struct actor *actor, bool works)
{
	actor->works = works;
	actor->rule.idle_since_ns = works ? 0 : world->now_ns;
	actor->change_ns = world->now_ns + (works ? actor->work_ns : actor->pause_ns);
}

/* The header's rules for one who leaves. */
static void check_who_leaves(const struct world *world, const struct actor *program)
{
	bool is_for_somebody = false;
	for (size_t i = 0; i < world->count; i++) {
		const struct ll_residency_program *waiting = &world->actors[i].rule;
		bool waits = (waiting->wants && waiting->state == LL_RESIDENCY_AWAY) || waiting->lacks_room;
		if (!waits || waiting->priority > program->rule.priority)
			continue;
		uint64_t turn_ns = ll_residency_turn_ns(ll_residency_move_ns(program->rule.bytes),
							ll_residency_move_ns(waiting->bytes));
		bool had_turn = world->now_ns >= program->rule.here_since_ns + turn_ns;
		bool is_idle =
		    program->rule.idle_since_ns && world->now_ns >= program->rule.idle_since_ns + LL_RESIDENCY_IDLE_NS;
		is_for_somebody |= had_turn || is_idle || waiting->priority < program->rule.priority;
	}
	assert_true(is_for_somebody);
	assert_true(program->rule.state == LL_RESIDENCY_HERE && world->now_ns >= program->rule.retry_ns);
}

static void do_step(struct world *world, struct ll_residency_decision decision)
{
	struct actor *actor = &world->actors[decision.who];
	if (decision.step == LL_RESIDENCY_EVICT) {
		check_who_leaves(world, actor);
		actor->rule.state = LL_RESIDENCY_STOPPING;
		actor->done_ns = world->now_ns + 1 + draw(20 * (uint32_t)MS);
		return;
	}
	if (decision.step == LL_RESIDENCY_STAY) {
		assert_true(actor->rule.state == LL_RESIDENCY_RESUMING && actor->rule.came_bytes &&
			    actor->rule.lacks_room);
		actor->rule.state = LL_RESIDENCY_STAYING;
		actor->rule.lacks_room = false;
		actor->rule.left_bytes = actor->rule.came_bytes;
		actor->rule.came_bytes = 0;
		actor->done_ns = world->now_ns + MS;
		world->stays++;
		return;
	}
	assert_int_equal(decision.step, LL_RESIDENCY_RESUME);
	assert_true(actor->rule.state == LL_RESIDENCY_AWAY && actor->rule.wants);
	actor->rule.state = LL_RESIDENCY_RESUMING;
	actor->rule.left_bytes = actor->copy_bytes = actor->rule.bytes;
	actor->rule.came_bytes = 0;
	actor->rule.is_torn = false;
	world->moves++;
	begin_chunk(world, actor);
}

static void list_rules(const struct world *world, struct ll_residency_program rules[MOST])
{
	for (size_t i = 0; i < world->count; i++)
		rules[i] = world->actors[i].rule;
}

/* Returns when the next decision is due. */
static uint64_t decide_all(struct world *world)
{
	for (unsigned steps = 0;; steps++) {
		struct ll_residency_program rules[MOST];
		list_rules(world, rules);
		struct ll_residency_decision decision =
		    ll_residency_decide(rules, world->count, &world->free_bytes, world->now_ns);
		if (decision.step == LL_RESIDENCY_WAIT)
			return decision.again_ns;
		do_step(world, decision);
		assert_true(steps < 2 * MOST);
	}
}

static void go_to(struct world *world, uint64_t next_ns)
{
	for (size_t i = 0; i < world->count; i++) {
		struct actor *actor = &world->actors[i];
		actor->here_ns += actor->rule.state == LL_RESIDENCY_HERE ? next_ns - world->now_ns : 0;
	}
	world->now_ns = next_ns;
	for (size_t i = 0; i < world->count; i++) {
		struct actor *actor = &world->actors[i];
		if (actor->done_ns && actor->done_ns <= next_ns) {
			if (actor->rule.state == LL_RESIDENCY_STOPPING)
				end_stopping(world, actor);
			else if (actor->rule.state == LL_RESIDENCY_STAYING)
				end_staying(world, actor);
			else
				end_chunk(world, actor);
		}
		if (actor->change_ns <= next_ns)
			turn_to(world, actor, !actor->works);
	}
	for (size_t i = 0; i < world->count; i++) {
		struct ll_residency_program rules[MOST];
		list_rules(world, rules);
		if (rules[i].lacks_room && ll_residency_may_go_on(rules, world->count, i, world->free_bytes))
			begin_chunk(world, &world->actors[i]);
	}
}

static void run_world(struct world *world, uint64_t end_ns)
{
	while (world->now_ns < end_ns) {
		note_wants(world);
		uint64_t next_ns = decide_all(world);
		next_ns = next_ns < end_ns ? next_ns : end_ns;
		assert_true(next_ns > world->now_ns);
		for (size_t i = 0; i < world->count; i++) {
			const struct actor *actor = &world->actors[i];
			if (actor->done_ns && actor->done_ns < next_ns)
				next_ns = actor->done_ns;
			next_ns = actor->change_ns < next_ns ? actor->change_ns : next_ns;
		}
		go_to(world, next_ns);
	}
}

/* All programs' moves, one after the other, each with the longest turn; and the refusals, and moves that are given up.
 */
static uint64_t longest_round_ns(const struct world *world)
{
	uint64_t move_ns = ll_residency_move_ns(world->card_bytes), turn_ns = ll_residency_turn_ns(move_ns, move_ns);
	return (world->count + 1) * (turn_ns + 10 * copy_ns(world->card_bytes) + 12 * S);
}

/* In a world of one class each program has its turn. */
static void check_nobody_starves(const struct world *world)
{
	for (size_t i = 0; i < world->count; i++) {
		const struct actor *actor = &world->actors[i];
		uint64_t waited_ns = actor->asked_ns ? world->now_ns - actor->asked_ns : 0;
		if (waited_ns > longest_round_ns(world) || actor->longest_wait_ns > longest_round_ns(world))
			fail_msg("program %zu of %zu waits %.1f s, a round takes %.1f s", i, world->count,
				 (double)(waited_ns > actor->longest_wait_ns ? waited_ns : actor->longest_wait_ns) /
				     (double)S,
				 (double)longest_round_ns(world) / (double)S);
	}
}

TEST(test_random_scenes_keep_the_rules_and_nobody_starves)
{
	unsigned moves = 0, stays = 0;
	for (unsigned scene = 0; scene < 3000; scene++) {
		struct world world;
		seed = scene;
		make_world(&world, false);
		run_world(&world, 200 * S);
		if (world.is_one_class)
			check_nobody_starves(&world);
		moves += world.moves;
		stays += world.stays;
	}
	print_message("%u moves, %u stayed away\n", moves, stays);
	assert_true(moves > 10000 && stays > 10);
}

/*
 * A program that works leaves after a turn of ten times its way out and the other's way in. It has one way in for each
 * way out. So its moves take a fifth of its turns at most, if it is large and the other is small. If two exchange, both
 * ways in and both ways out are paid by two turns: a tenth.
 */
TEST(test_working_programs_spend_under_a_tenth_of_their_time_on_moves)
{
	unsigned moves = 0;
	for (unsigned scene = 0; scene < 1000; scene++) {
		struct world world;
		seed = scene;
		make_world(&world, true);
		uint64_t here_ns = 0, first_ns = 0;
		run_world(&world, 600 * S);
		check_nobody_starves(&world);
		for (size_t i = 0; i < world.count; i++) {
			here_ns += world.actors[i].here_ns;
			first_ns += 2 * copy_ns(world.actors[i].rule.bytes);
		}
		moves += world.moves;
		assert_true(world.bus_ns <= here_ns / 5 + first_ns);
		if (world.count == 2)
			assert_true(world.bus_ns <= here_ns / 10 + first_ns);
	}
	print_message("%u moves\n", moves);
	assert_true(moves > 5000);
}
