/* The steps of the class lever in the log of a card's decisions: a card on which nothing changes adds none, and each
 * replays. The file that `loadline status --decisions --json` printed on the simulated driver: two `pace sync
 * --kernel-us 20` for 6 s; 3 s later a `pace flood` of class low, and one of class high for 14 s, which accepts a
 * slowdown of 1.3, and after 8 s of 1.1. If the rule or the lever changes on purpose, record it anew. */
#include "daemon/arbiter/classes.h"
#include "share_decisions.h"

/* ---- a file ---- */

static size_t find_lever(json_t *const *lines, size_t count, enum ll_lever_move move)
{
	for (size_t i = 1; i < count; i++) {
		if (json_object_get(lines[i], "lever") && lever_move(lines[i]) == move)
			return i;
	}
	fail_msg("the lever has not '%s' in the file", lever_names[move]);
	return 0;
}

TEST(what_status_printed_replays)
{
	json_t *lines[LINES_MOST] = {NULL};
	size_t count = read_lines(LL_DECISIONS_FILE, lines);
	assert_int_equal(replay_lines(lines, count), count - 1);
	find_verdict(lines, count);
	for (unsigned move = LL_LEVER_MOVE_SPARSE; move <= LL_LEVER_MOVE_STAYS; move++)
		find_lever(lines, count, (enum ll_lever_move)move);
	free_lines(lines, count);
}

/* Each of the inputs counts: of the line itself, or of its job. */
TEST(wrong_inputs_do_not_replay)
{
	static const struct {
		const char *key;
		double value;
		enum ll_lever_move move;
		bool is_of_job;
	} wrong[] = {
	    {"busy", 0.05, LL_LEVER_MOVE_MENDED, false},       {"busy", 0.125, LL_LEVER_MOVE_SPARSE, false},
	    {"weighed_s", 0.2, LL_LEVER_MOVE_MENDED, false},   {"lower_held_before", 0.5, LL_LEVER_MOVE_MENDED, false},
	    {"lower_held", 0.5, LL_LEVER_MOVE_MENDED, false},  {"slowdown_permille", 1300, LL_LEVER_MOVE_MENDED, true},
	    {"held_launches", 30, LL_LEVER_MOVE_MENDED, true}, {"held_s", 0.03, LL_LEVER_MOVE_FOUND, true},
	    {"open_launches", 30, LL_LEVER_MOVE_STAYS, true},  {"open_s", 0.9, LL_LEVER_MOVE_MENDED, true},
	};
	json_t *lines[LINES_MOST] = {NULL};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		size_t count = read_lines(LL_DECISIONS_FILE, lines);
		size_t at = find_lever(lines, count, wrong[i].move);
		bool is_whole =
		    json_is_integer(json_object_get(json_array_get(member(lines[at], "jobs"), 0), wrong[i].key));
		json_t *value = is_whole ? json_integer((json_int_t)wrong[i].value) : json_real(wrong[i].value);
		if (wrong[i].is_of_job)
			set_input(lines[at], 0, wrong[i].key, value);
		else
			json_object_set_new(lines[at], wrong[i].key, value);
		if (replay_lines(lines, count) != at - 1)
			fail_msg("%s: %zu replay, not %zu", wrong[i].key, replay_lines(lines, count), at - 1);
		free_lines(lines, count);
	}
	size_t count = read_lines(LL_DECISIONS_FILE, lines);
	size_t at = find_lever(lines, count, LL_LEVER_MOVE_MENDED);
	json_object_set_new(lines[at], "was_known", json_false());
	assert_int_equal(replay_lines(lines, count), at - 1);
	free_lines(lines, count);
}

/* ---- the ring of a card ---- */

/* One of class high gets twice as much done while the one of class low is held. */
static void play_classes(struct world *world, uint64_t ns)
{
	for (uint64_t until_ns = world->now_ns + ns; world->now_ns < until_ns; world->now_ns += MS) {
		bool is_new;
		for (size_t i = 0; i < world->count; i++) {
			struct player *player = &world->players[i];
			player->said.at_ns = world->now_ns;
			player->said.completed_launches += ll_share_is_held(&world->players[1].job) ? 10 : 5;
			ll_share_post(&player->claim, &player->said, world->now_ns);
		}
		ll_share_choose(&world->card, world->now_ns, &is_new);
	}
}

static void add_classes(struct world *world)
{
	add_player(world)->job.rank = LL_PRIORITY_HIGH;
	add_player(world)->job.rank = LL_PRIORITY_LOW;
}

static const struct ll_decision *last_record(const struct world *world)
{
	return ll_decisions_from(&world->decisions, world->decisions.last_number);
}

TEST_WITH(setup, teardown, each_percent_of_the_part_is_kept_and_that_it_stays_once)
{
	struct world *world = *state;
	add_classes(world);
	play_classes(world, 5 * S);
	world->players[0].job.slowdown_permille = 1100;
	play_classes(world, 15 * S);
	const struct ll_decision *record = ll_decisions_from(&world->decisions, 0), *last = NULL;
	unsigned mended = 0;
	for (; record; record = ll_decisions_from(&world->decisions, record->number + 1)) {
		if (!record->lever.move)
			continue;
		assert_int_equal(record->rank, LL_PRIORITY_HIGH);
		assert_int_equal(record->count, 1);
		assert_string_equal(ll_decisions_job(&world->decisions, record, 0)->tenant, "tenant1");
		assert_true(!last || last->lever.move != record->lever.move ||
			    fabs(record->lever.part - last->lever.part) >= LL_DECISIONS_GRAIN);
		mended += record->lever.move == LL_LEVER_MOVE_MENDED;
		last = record;
	}
	assert_in_range(mended, 5, 40);
	assert_int_equal(last_record(world)->lever.move, LL_LEVER_MOVE_STAYS);
	assert_float_equal(last_record(world)->lever.part, world->card.levers[LL_PRIORITY_HIGH].part, 0);
	uint64_t number = world->decisions.last_number;
	play_classes(world, 60 * S);
	assert_int_equal(world->decisions.last_number, number);
	assert_int_equal(replay_ring(&world->decisions), number);
}

TEST_WITH(setup, teardown, less_than_a_percent_of_the_part_is_not_kept)
{
	struct world *world = *state;
	const struct ll_lever *lever = &world->card.levers[LL_PRIORITY_HIGH];
	add_classes(world);
	play_classes(world, 10 * S);
	double part = lever->part;
	uint64_t number = world->decisions.last_number;
	world->players[0].job.slowdown_permille = 1235;
	play_classes(world, 10 * S);
	assert_true(lever->part > part && lever->part < part + LL_DECISIONS_GRAIN);
	assert_int_equal(world->decisions.last_number, number);
}

/* A class alone, and one of which nobody is on the card, hold nobody, whatever they do. */
TEST_WITH(setup, teardown, a_class_with_nobody_beneath_adds_nothing)
{
	struct world *world = *state;
	add_classes(world);
	play_classes(world, 5 * S);
	world->players[1].said.is_wanting = false;
	play_classes(world, 3 * S);
	uint64_t number = world->decisions.last_number;
	for (int i = 0; i < 20; i++) {
		world->players[0].said.is_wanting = i % 2;
		play_classes(world, 20 * S);
	}
	const struct ll_decision *record = ll_decisions_from(&world->decisions, number + 1);
	for (; record; record = ll_decisions_from(&world->decisions, record->number + 1))
		assert_int_equal(record->lever.move, LL_LEVER_MOVE_NONE);
}

/* The rule measures while they are of one class. What goes from the ring leaves the rest replayable. */
TEST_WITH(setup, teardown, a_ring_full_of_both_replays)
{
	struct world *world = *state;
	uint64_t dropped_levers = 0;
	add_classes(world);
	add_player(world)->job.rank = LL_PRIORITY_HIGH;
	for (unsigned i = 0; i < 150; i++) {
		struct player *low = &world->players[1];
		ll_share_set_rank(&low->job, i % 3 ? LL_PRIORITY_LOW : LL_PRIORITY_HIGH, world->now_ns);
		world->players[0].job.slowdown_permille = i % 2 ? 1100 : 1600;
		play_classes(world, 4 * S);
		assert_int_equal(replay_ring(&world->decisions), world->decisions.count);
		assert_false(world->decisions.base.is_trying);
		const struct ll_decision *oldest = ll_decisions_from(&world->decisions, 0);
		dropped_levers += oldest->number > 1 && oldest->lever.move;
	}
	assert_true(world->decisions.last_number > 2 * LL_DECISIONS_MOST);
	assert_true(dropped_levers > 0);
}

TEST_WITH(setup, teardown, the_rule_takes_no_step_of_a_lever_that_goes_from_the_ring)
{
	struct world *world = *state;
	const struct ll_decision record = {.lever = {.move = LL_LEVER_MOVE_MENDED}, .count = 2};
	const struct ll_decision_job jobs[2] = {{.job = {.id = 1}}, {.job = {.id = 2}}};
	const struct ll_regime nothing = {0};
	for (unsigned i = 0; i < 2 * LL_DECISIONS_MOST; i++)
		ll_decisions_add(&world->decisions, &record, jobs);
	assert_int_equal(world->decisions.count, LL_DECISIONS_MOST);
	assert_memory_equal(&world->decisions.base, &nothing, sizeof nothing);
}
