/*
 * Jobs of several processes over several cards, by residency.h and residency_units.h, over minutes: a model of the
 * cards and random jobs that work and pause. The model does what the daemon does: it stops all of a unit before any
 * leaves, and lets them go on when all are back.
 */
#include "test.h"

#include "base/clock.h"
#include "rules/residency/residency_units.h"

#define MS LL_NS_PER_MS
#define S LL_NS_PER_S
#define GIB (UINT64_C(1) << 30)

enum { JOBS = 5, CARDS = 3, MOST = 16 };
enum { COPY_BYTES = 1 << 29, TAKEN_GIB = 13 };

struct part {
	struct ll_residency_member member;
	uint64_t copy_bytes; /* of a move, not yet copied */
	uint64_t done_ns;    /* when it is quiet, or the chunk is copied; 0: nothing is under way */
};

struct work {
	uint64_t work_ns, pause_ns, change_ns; /* it works and pauses in turn; pause 0: it always works */
	uint64_t asked_ns, longest_wait_ns;
	unsigned refuses; /* so many of its stops fail are left */
	bool works;
};

struct world {
	struct part parts[MOST];
	struct work jobs[JOBS + 1]; /* from 1 */
	size_t count;
	unsigned job_count, card_count;
	uint64_t card_bytes, free_bytes[CARDS], taken_bytes[CARDS], now_ns;
	uint64_t outsider_ns; /* when one outside takes memory, or gives it back; UINT64_MAX: there is none */
	bool is_one_class;
	unsigned returns, on_several, stays, deaths;
};

static uint32_t seed;
static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)(seed >> 4) * below) >> 28);
}

static bool is_of(const struct part *part, unsigned job)
{
	return part->member.rule.job == job;
}

/* ---- the world ---- */

static void add_part(struct world *world, unsigned job, unsigned card, uint64_t bytes)
{
	struct part *part = &world->parts[world->count++];
	*part = (struct part){.member = {.rule = {.state = LL_RESIDENCY_AWAY,
						  .priority = world->is_one_class ? 1 : 1 + job % 3,
						  .bytes = bytes,
						  .card = card,
						  .job = job},
					 .process = 1 + draw(3)}};
}

/* In the order of the cards. The parts of a job on a card fit it together. */
static void make_parts(struct world *world)
{
	for (unsigned card = 0; card < world->card_count; card++) {
		for (unsigned job = 1; job <= world->job_count; job++) {
			unsigned parts = job == 1 || draw(2) ? 1 + draw(2) : 0;
			uint64_t left_gib = world->card_bytes / GIB - TAKEN_GIB - 1; /* beside what one outside takes */
			for (unsigned i = 0; i < parts && world->count < MOST && left_gib > 1; i++) {
				uint64_t gib = 1 + draw((uint32_t)left_gib - 1);
				add_part(world, job, card, gib * GIB);
				left_gib -= gib;
			}
		}
	}
}

static void make_world(struct world *world)
{
	*world = (struct world){.card_count = 1 + draw(CARDS),
				.job_count = 2 + draw(JOBS - 1),
				.card_bytes = (20 + draw(120)) * GIB,
				.now_ns = S,
				.is_one_class = draw(2),
				.outsider_ns = draw(3) ? UINT64_MAX : 2 * S};
	for (unsigned card = 0; card < CARDS; card++)
		world->free_bytes[card] = world->card_bytes;
	make_parts(world);
	for (unsigned job = 1; job <= world->job_count; job++) {
		struct work *work = &world->jobs[job];
		*work = (struct work){.work_ns = (1 + draw(10000)) * MS,
				      .pause_ns = draw(2) ? 0 : (1 + draw(20000)) * MS,
				      .refuses = draw(3) ? 0 : draw(4),
				      .works = true};
		work->change_ns = work->pause_ns ? world->now_ns + work->work_ns : UINT64_MAX;
	}
}

static bool are_all(const struct world *world, unsigned unit, enum ll_residency state)
{
	for (size_t i = 0; i < world->count; i++) {
		if (world->parts[i].member.unit == unit && world->parts[i].member.rule.state != state)
			return false;
	}
	return true;
}

static bool is_whole_job(const struct world *world, unsigned job, enum ll_residency state)
{
	for (size_t i = 0; i < world->count; i++) {
		if (is_of(&world->parts[i], job) && world->parts[i].member.rule.state != state)
			return false;
	}
	return true;
}

static void note_wants(struct world *world)
{
	for (unsigned job = 1; job <= world->job_count; job++) {
		struct work *work = &world->jobs[job];
		bool is_here = is_whole_job(world, job, LL_RESIDENCY_HERE), has_any = false;
		for (size_t i = 0; i < world->count; i++) {
			struct ll_residency_program *rule = &world->parts[i].member.rule;
			if (!is_of(&world->parts[i], job))
				continue;
			has_any = true;
			rule->idle_since_ns = work->works ? 0 : rule->idle_since_ns;
			if (rule->state == LL_RESIDENCY_AWAY && work->works && !rule->wants) {
				rule->wants = true;
				rule->want_since_ns = world->now_ns;
			}
		}
		if (has_any && !is_here && work->works && !work->asked_ns)
			work->asked_ns = world->now_ns;
		if (!work->asked_ns || (!is_here && has_any))
			continue;
		uint64_t waited_ns = world->now_ns - work->asked_ns;
		work->longest_wait_ns = waited_ns > work->longest_wait_ns ? waited_ns : work->longest_wait_ns;
		work->asked_ns = 0;
	}
}

/* ---- moves ---- */

static void begin_chunk(struct world *world, struct part *part)
{
	struct ll_residency_program *rule = &part->member.rule;
	uint64_t chunk = part->copy_bytes < COPY_BYTES ? part->copy_bytes : COPY_BYTES;
	if (rule->state == LL_RESIDENCY_RESUMING) {
		rule->lacks_room = chunk > world->free_bytes[rule->card];
		if (rule->lacks_room)
			return;
		world->free_bytes[rule->card] -= chunk;
		rule->left_bytes -= chunk;
		rule->came_bytes += chunk;
	}
	part->done_ns = world->now_ns + chunk / 55;
}

static void come_back(struct world *world, struct part *part)
{
	struct ll_residency_program *rule = &part->member.rule;
	rule->state = LL_RESIDENCY_HERE;
	rule->wants = rule->lacks_room = part->member.is_held = false;
	rule->left_bytes = rule->came_bytes = 0;
	rule->here_since_ns = world->now_ns;
}

static void end_chunk(struct world *world, struct part *part)
{
	struct ll_residency_program *rule = &part->member.rule;
	uint64_t chunk = part->copy_bytes < COPY_BYTES ? part->copy_bytes : COPY_BYTES;
	bool is_leaving = rule->state == LL_RESIDENCY_EVICTING;
	part->copy_bytes -= chunk;
	part->done_ns = 0;
	if (is_leaving) {
		world->free_bytes[rule->card] += chunk;
		rule->left_bytes -= chunk;
	}
	if (part->copy_bytes)
		begin_chunk(world, part);
	else if (is_leaving)
		rule->state = LL_RESIDENCY_AWAY;
	else if (!part->member.is_held)
		come_back(world, part);
}

static void end_staying(struct world *world, struct part *part)
{
	struct ll_residency_program *rule = &part->member.rule;
	part->done_ns = 0;
	world->free_bytes[rule->card] += rule->left_bytes;
	rule->state = LL_RESIDENCY_AWAY;
	rule->left_bytes = 0;
}

/* One of a unit that is being stopped has become quiet, or cannot. */
static void end_stopping(struct world *world, struct part *part)
{
	unsigned job = part->member.rule.job;
	bool fails = world->jobs[job].refuses > 0;
	part->done_ns = 0;
	part->member.rule.state = LL_RESIDENCY_SUSPENDED;
	world->jobs[job].refuses -= fails;
	for (size_t i = 0; i < world->count; i++) {
		const struct ll_residency_program *rule = &world->parts[i].member.rule;
		if (rule->job == job && rule->is_gathering && rule->state != LL_RESIDENCY_SUSPENDED && !fails)
			return;
	}
	for (size_t i = 0; i < world->count; i++) {
		struct ll_residency_program *rule = &world->parts[i].member.rule;
		if (rule->job != job || !rule->is_gathering)
			continue;
		rule->is_gathering = false;
		rule->state = fails ? LL_RESIDENCY_HERE : LL_RESIDENCY_EVICTING;
		rule->retry_ns = fails ? world->now_ns + S : rule->retry_ns;
		world->parts[i].done_ns = 0;
		if (fails)
			continue;
		rule->left_bytes = world->parts[i].copy_bytes = rule->bytes;
		begin_chunk(world, &world->parts[i]);
	}
}

/* ---- steps ---- */

static void stay(struct world *world, struct part *part)
{
	struct ll_residency_program *rule = &part->member.rule;
	assert_true(rule->state == LL_RESIDENCY_RESUMING && !rule->is_torn);
	rule->state = LL_RESIDENCY_STAYING;
	/* A chunk under way has its room already. */
	rule->left_bytes = rule->came_bytes;
	rule->came_bytes = 0;
	rule->lacks_room = part->member.is_held = false;
	part->done_ns = world->now_ns + MS;
}

static void begin_return(struct world *world, struct part *part, bool is_held)
{
	struct ll_residency_program *rule = &part->member.rule;
	assert_int_equal(rule->state, LL_RESIDENCY_AWAY);
	rule->state = LL_RESIDENCY_RESUMING;
	rule->left_bytes = part->copy_bytes = rule->bytes;
	rule->came_bytes = 0;
	part->member.is_held = is_held;
	begin_chunk(world, part);
}

/* All cards have the room, with what leaves them: nothing else may come back by halves. */
static void check_room(const struct world *world, unsigned unit)
{
	for (unsigned card = 0; card < world->card_count; card++) {
		uint64_t has_bytes = world->free_bytes[card], needs_bytes = 0;
		for (size_t i = 0; i < world->count; i++) {
			const struct ll_residency_program *rule = &world->parts[i].member.rule;
			if (rule->card != card)
				continue;
			if (rule->state == LL_RESIDENCY_EVICTING || rule->state == LL_RESIDENCY_STAYING)
				has_bytes += rule->left_bytes;
			needs_bytes += world->parts[i].member.unit == unit ? rule->bytes : 0;
		}
		assert_true(needs_bytes <= has_bytes);
	}
}

static void do_step_of_unit(struct world *world, enum ll_residency_step step, unsigned unit)
{
	size_t members = 0;
	if (step == LL_RESIDENCY_RESUME) {
		assert_true(are_all(world, unit, LL_RESIDENCY_AWAY));
		check_room(world, unit);
	}
	if (step == LL_RESIDENCY_EVICT)
		assert_true(are_all(world, unit, LL_RESIDENCY_HERE));
	for (size_t i = 0; i < world->count; i++)
		members += world->parts[i].member.unit == unit;
	world->returns += step == LL_RESIDENCY_RESUME;
	world->on_several += step == LL_RESIDENCY_RESUME && members > 1;
	world->stays += step == LL_RESIDENCY_STAY;
	for (size_t i = 0; i < world->count; i++) {
		struct part *part = &world->parts[i];
		if (part->member.unit != unit)
			continue;
		if (step == LL_RESIDENCY_EVICT) {
			assert_true(world->now_ns >= part->member.rule.retry_ns);
			part->member.rule.state = LL_RESIDENCY_STOPPING;
			part->member.rule.is_gathering = true;
			part->done_ns = world->now_ns + 1 + draw(20 * (uint32_t)MS);
		} else if (step == LL_RESIDENCY_STAY) {
			if (part->member.rule.state == LL_RESIDENCY_RESUMING)
				stay(world, part);
		} else {
			assert_int_equal(step, LL_RESIDENCY_RESUME);
			begin_return(world, part, members > 1);
		}
	}
}

static size_t join(struct world *world, struct ll_residency_member members[MOST],
		   struct ll_residency_program programs[MOST])
{
	for (size_t i = 0; i < world->count; i++)
		members[i] = world->parts[i].member;
	size_t count = ll_residency_units_join(members, world->count, world->free_bytes, true, world->now_ns, programs);
	for (size_t i = 0; i < world->count; i++)
		world->parts[i].member = members[i];
	return count;
}

static bool follow(struct world *world, const struct ll_residency_member members[MOST])
{
	struct ll_residency_decision decision = ll_residency_units_follow(members, world->count);
	struct part *part = &world->parts[decision.who];
	if (decision.step == LL_RESIDENCY_RESUME_FULLY)
		come_back(world, part);
	else if (decision.step == LL_RESIDENCY_RESUME)
		begin_return(world, part, true);
	else if (decision.step == LL_RESIDENCY_STAY)
		stay(world, part);
	return decision.step != LL_RESIDENCY_WAIT;
}

/* Returns when the next decision is due. */
static uint64_t decide_all(struct world *world)
{
	for (unsigned steps = 0;; steps++) {
		struct ll_residency_member members[MOST];
		struct ll_residency_program programs[MOST];
		size_t count = join(world, members, programs);
		assert_true(steps < 6 * MOST);
		if (follow(world, members))
			continue;
		struct ll_residency_decision decision =
		    ll_residency_decide(programs, count, world->free_bytes, world->now_ns);
		if (decision.step == LL_RESIDENCY_WAIT)
			return decision.again_ns;
		do_step_of_unit(world, decision.step, programs[decision.who].unit);
	}
}

/* ---- time ---- */

/* One outside takes up to TAKEN_GIB of what a card has free for a while. */
static void turn_outsider(struct world *world)
{
	unsigned card = draw(world->card_count);
	uint64_t bytes = draw(TAKEN_GIB + 1) * GIB;
	if (world->taken_bytes[card]) {
		world->free_bytes[card] += world->taken_bytes[card];
		world->taken_bytes[card] = 0;
	} else if (bytes <= world->free_bytes[card]) {
		world->free_bytes[card] -= bytes;
		world->taken_bytes[card] = bytes;
	}
	world->outsider_ns = world->now_ns + (1 + draw(500)) * MS;
}

static void turn_job(struct world *world, unsigned job)
{
	struct work *work = &world->jobs[job];
	work->works = !work->works;
	work->change_ns = world->now_ns + (work->works ? work->work_ns : work->pause_ns);
	for (size_t i = 0; i < world->count; i++) {
		if (is_of(&world->parts[i], job))
			world->parts[i].member.rule.idle_since_ns = work->works ? 0 : world->now_ns;
	}
}

static void end_what_is_done(struct world *world, struct part *part)
{
	enum ll_residency state = part->member.rule.state;
	if (!part->done_ns || part->done_ns > world->now_ns)
		return;
	if (state == LL_RESIDENCY_STOPPING)
		end_stopping(world, part);
	else if (state == LL_RESIDENCY_STAYING)
		end_staying(world, part);
	else
		end_chunk(world, part);
}

static void go_on_with_room(struct world *world)
{
	for (size_t i = 0; i < world->count; i++) {
		struct ll_residency_member members[MOST];
		struct ll_residency_program programs[MOST];
		const struct ll_residency_program *rule = &world->parts[i].member.rule;
		if (!rule->lacks_room)
			continue;
		size_t count = join(world, members, programs), at = 0;
		while (programs[at].unit != members[i].unit || programs[at].card != rule->card)
			at++;
		if (ll_residency_may_go_on(programs, count, at, world->free_bytes[rule->card]))
			begin_chunk(world, &world->parts[i]);
	}
}

static void go_to(struct world *world, uint64_t next_ns)
{
	world->now_ns = next_ns;
	for (size_t i = 0; i < world->count; i++)
		end_what_is_done(world, &world->parts[i]);
	for (unsigned job = 1; job <= world->job_count; job++) {
		if (world->jobs[job].change_ns <= next_ns)
			turn_job(world, job);
	}
	if (world->outsider_ns <= next_ns)
		turn_outsider(world);
	go_on_with_room(world);
}

static uint64_t next_event_ns(const struct world *world, uint64_t next_ns)
{
	for (size_t i = 0; i < world->count; i++) {
		if (world->parts[i].done_ns && world->parts[i].done_ns < next_ns)
			next_ns = world->parts[i].done_ns;
	}
	for (unsigned job = 1; job <= world->job_count; job++)
		next_ns = world->jobs[job].change_ns < next_ns ? world->jobs[job].change_ns : next_ns;
	return world->outsider_ns < next_ns ? world->outsider_ns : next_ns;
}

/* The parts of a job that works are all here, or it waits, or they move. They are not left apart. */
static void check_together(const struct world *world)
{
	for (size_t i = 0; i < world->count; i++) {
		const struct ll_residency_member *one = &world->parts[i].member;
		for (size_t k = 0; k < i; k++) {
			const struct ll_residency_member *other = &world->parts[k].member;
			if (one->rule.job != other->rule.job)
				continue;
			bool is_apart =
			    (one->rule.state == LL_RESIDENCY_HERE && other->rule.state == LL_RESIDENCY_AWAY) ||
			    (other->rule.state == LL_RESIDENCY_HERE && one->rule.state == LL_RESIDENCY_AWAY);
			assert_false(is_apart);
		}
	}
}

/* A process is killed: the driver has its memory back at once, here. */
static void kill_part(struct world *world, size_t at)
{
	const struct ll_residency_program *rule = &world->parts[at].member.rule;
	enum ll_residency state = rule->state;
	uint64_t on_card = state == LL_RESIDENCY_AWAY                                        ? 0
			   : state == LL_RESIDENCY_EVICTING || state == LL_RESIDENCY_STAYING ? rule->left_bytes
			   : state == LL_RESIDENCY_RESUMING ? rule->bytes - rule->left_bytes
							    : rule->bytes;
	world->free_bytes[rule->card] += on_card;
	/* The others of a unit that was being stopped do not wait for it. */
	if (rule->is_gathering) {
		struct part *part = &world->parts[at];
		for (size_t i = 0; i < world->count; i++) {
			struct ll_residency_program *mate = &world->parts[i].member.rule;
			if (mate->job != part->member.rule.job || !mate->is_gathering || i == at)
				continue;
			mate->is_gathering = false;
			mate->state = LL_RESIDENCY_HERE;
			world->parts[i].done_ns = 0;
		}
	}
	for (size_t i = at + 1; i < world->count; i++)
		world->parts[i - 1] = world->parts[i];
	world->count--;
	world->deaths++;
}

static void run_world(struct world *world, uint64_t end_ns)
{
	while (world->now_ns < end_ns) {
		note_wants(world);
		uint64_t next_ns = decide_all(world);
		check_together(world);
		if (world->count > 2 && draw(2000) == 0) {
			kill_part(world, draw((uint32_t)world->count));
			continue;
		}
		next_ns = next_event_ns(world, next_ns < end_ns ? next_ns : end_ns);
		assert_true(next_ns > world->now_ns);
		go_to(world, next_ns);
	}
}

/* All jobs' moves, one after the other, each with the longest turn; and refusals, and what one outside takes. */
static uint64_t longest_round_ns(const struct world *world)
{
	uint64_t move_ns = ll_residency_move_ns(world->card_bytes), turn_ns = ll_residency_turn_ns(move_ns, move_ns);
	return (world->job_count + 1) * (turn_ns + 10 * move_ns + 12 * S);
}

static void check_nobody_starves(const struct world *world)
{
	for (unsigned job = 1; job <= world->job_count; job++) {
		const struct work *work = &world->jobs[job];
		uint64_t waited_ns = work->asked_ns ? world->now_ns - work->asked_ns : 0;
		waited_ns = waited_ns > work->longest_wait_ns ? waited_ns : work->longest_wait_ns;
		if (waited_ns > longest_round_ns(world))
			fail_msg("job %u of %u on %u cards waits %.1f s, a round takes %.1f s", job, world->job_count,
				 world->card_count, (double)waited_ns / (double)S,
				 (double)longest_round_ns(world) / (double)S);
	}
}

TEST(random_jobs_over_cards_go_together_or_not_at_all_and_none_waits_for_ever)
{
	unsigned returns = 0, on_several = 0, stays = 0, deaths = 0;
	for (unsigned scene = 0; scene < 3000; scene++) {
		struct world world;
		seed = scene;
		make_world(&world);
		run_world(&world, 200 * S);
		if (world.is_one_class)
			check_nobody_starves(&world);
		returns += world.returns;
		on_several += world.on_several;
		stays += world.stays;
		deaths += world.deaths;
	}
	print_message("%u returns, %u of several; %u stayed away, %u deaths\n", returns, on_several, stays, deaths);
	assert_true(returns > 5000 && on_several > 2000 && stays > 3 && deaths > 100);
}
