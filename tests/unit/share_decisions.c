/* The log of a card's decisions: it is bounded, and what it says replays in the pure code. Records come from a card of
 * this program, and from a file that `loadline status --decisions --json` printed on the simulated driver: two `pace
 * sync --kernel-us 20`, and after the verdict a `pace flood` of weight 2. If the rule changes on purpose, record it
 * anew. */
#include "share_decisions.h"

/* ---- a file ---- */

TEST(what_status_printed_replays)
{
	json_t *lines[LINES_MOST] = {NULL};
	size_t count = read_lines(LL_DECISIONS_FILE, lines);
	assert_int_equal(replay_lines(lines, count), count - 1);
	free_lines(lines, count);
}

/* Each of the inputs counts: with a wrong one the replay ends at that record or at a later one. */
TEST(wrong_inputs_do_not_replay)
{
	static const struct {
		const char *key;
		json_int_t value;
	} wrong[] = {{"completed", 1}, {"weight_permille", 2500}, {"processes", 3}, {"id", 77}};
	json_t *lines[LINES_MOST] = {NULL};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		size_t count = read_lines(LL_DECISIONS_FILE, lines), verdict = find_verdict(lines, count);
		set_input(lines[verdict], 0, wrong[i].key, json_integer(wrong[i].value));
		assert_int_equal(replay_lines(lines, count), verdict - 1);
		free_lines(lines, count);
	}
	size_t count = read_lines(LL_DECISIONS_FILE, lines), verdict = find_verdict(lines, count);
	json_object_set_new(lines[verdict], "at_ns",
			    json_integer((json_int_t)number(lines[verdict], "at_ns") - 400000000));
	assert_int_equal(replay_lines(lines, count), verdict - 1);
	free_lines(lines, count);
}

/* Without a record that moved the rule on, what follows does not replay. */
TEST(a_missing_record_is_seen)
{
	json_t *lines[LINES_MOST], *left[LINES_MOST] = {NULL};
	size_t count = read_lines(LL_DECISIONS_FILE, lines), verdict = find_verdict(lines, count);
	memcpy(left, lines, count * sizeof *left);
	memmove(&left[verdict - 1], &left[verdict], (count - verdict) * sizeof *left);
	assert_true(replay_lines(left, count - 1) < count - 2);
	free_lines(lines, count);
}

/* ---- the ring of a card ---- */

/* All post and get on: by visits five times as fast as by slices. */
static void play(struct world *world, uint64_t ns)
{
	for (uint64_t until_ns = world->now_ns + ns; world->now_ns < until_ns; world->now_ns += 10 * MS) {
		bool is_new;
		for (size_t i = 0; i < world->count; i++) {
			struct player *player = &world->players[i];
			player->said.at_ns = world->now_ns;
			player->said.completed_launches += world->card.regime.gives_visits ? 50 : 10;
			ll_share_post(&player->claim, &player->said, world->now_ns);
		}
		ll_share_choose(&world->card, world->now_ns, &is_new);
	}
}

TEST_WITH(setup, teardown, records_say_who_and_what_was_measured)
{
	struct world *world = *state;
	add_player(world);
	add_player(world);
	play(world, 3 * S);
	assert_true(world->card.regime.gives_visits);
	const struct ll_decision *record = ll_decisions_from(&world->decisions, 0), *verdict = NULL;
	for (; record; record = ll_decisions_from(&world->decisions, record->number + 1))
		verdict = record->moves & LL_REGIME_MOVE_VERDICT ? record : verdict;
	if (!verdict) {
		fail_msg("there is no verdict");
		return;
	}
	assert_int_equal(verdict->why, LL_REGIME_PAYS);
	assert_int_equal(verdict->count, 2);
	const struct ll_decision_job *job = ll_decisions_job(&world->decisions, verdict, 1);
	assert_string_equal(job->tenant, "tenant2");
	assert_int_equal(job->job.id, 102);
	assert_float_equal(job->rates.slices, 1000, 50);
	assert_float_equal(job->rates.visits, 5000, 250);
	assert_int_equal(replay_ring(&world->decisions), world->decisions.last_number);
}

TEST_WITH(setup, teardown, a_full_ring_forgets_the_oldest_and_replays_the_rest)
{
	struct world *world = *state;
	while (world->count < 6)
		add_player(world);
	for (int i = 0; i < 120; i++) {
		struct player *player = &world->players[(i * 5) % 6];
		player->said.launch_mode =
		    player->said.launch_mode == LL_LAUNCH_MODE_SYNC ? LL_LAUNCH_MODE_ASYNC : LL_LAUNCH_MODE_SYNC;
		player->job.weight_permille = i % 3 ? 1000 : 2000;
		play(world, (uint64_t)(3 + i % 11) * S);
		const struct ll_decisions *decisions = &world->decisions;
		assert_true(decisions->count <= LL_DECISIONS_MOST);
		assert_true(decisions->job_count <= LL_DECISIONS_JOBS_MOST);
		assert_false(decisions->base.is_trying);
		assert_int_equal(replay_ring(decisions), decisions->count);
	}
	assert_true(world->decisions.last_number > 2 * LL_DECISIONS_MOST);
	assert_int_equal(ll_decisions_from(&world->decisions, 0)->number,
			 world->decisions.last_number + 1 - world->decisions.count);
	assert_null(ll_decisions_from(&world->decisions, world->decisions.last_number + 1));
}
