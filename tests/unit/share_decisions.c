/* The log of a card's decisions: it is bounded, and what it says replays in the pure code. Records come from a card of
 * this program, and from a file that `loadline status --decisions --json` printed on the simulated driver: two `pace
 * sync --kernel-us 20`, and after the verdict a `pace flood` of weight 2. If the rule changes on purpose, record it
 * anew. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/share/card.h"
#include "daemon/share/choose.h"
#include "daemon/share/decisions.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

enum { JOBS_MOST = 12, LINES_MOST = 400 };

/* ---- replay ---- */

static const char *const why_names[] = {
    [LL_REGIME_NO_REASON] = "no_reason", [LL_REGIME_NOT_MEASURED] = "not_measured", [LL_REGIME_MEASURES] = "measures",
    [LL_REGIME_PAYS] = "pays",           [LL_REGIME_PAYS_NOT] = "pays_not",         [LL_REGIME_TOO_DEEP] = "too_deep",
    [LL_REGIME_TOO_MANY] = "too_many",
};

static const char *const move_names[] = {"mix",   "begins",  "drained",  "measures",
					 "block", "verdict", "gives_up", "output"};

static json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	if (!value)
		fail_msg("no member '%s'", key);
	return value;
}

static uint64_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(member(object, key)));
	return (uint64_t)json_integer_value(member(object, key));
}

static double real(const json_t *object, const char *key)
{
	return json_number_value(member(object, key));
}

static bool is_true(const json_t *object, const char *key)
{
	assert_true(json_is_boolean(member(object, key)));
	return json_is_true(member(object, key));
}

static uint64_t mix_number(const json_t *object, const char *key)
{
	return strtoull(json_string_value(member(object, key)), NULL, 16);
}

static enum ll_regime_why why(const json_t *object)
{
	const char *name = json_string_value(member(object, "why"));
	for (unsigned i = 0; i < sizeof why_names / sizeof *why_names; i++) {
		if (strcmp(name, why_names[i]) == 0)
			return (enum ll_regime_why)i;
	}
	fail_msg("why is '%s'", name);
	return LL_REGIME_NO_REASON;
}

static unsigned moves(const json_t *object)
{
	unsigned found = 0;
	size_t index;
	json_t *name;
	json_array_foreach(member(object, "moves"), index, name)
	{
		for (unsigned i = 0; i < sizeof move_names / sizeof *move_names; i++)
			found |= strcmp(json_string_value(name), move_names[i]) == 0 ? 1U << i : 0;
	}
	return found;
}

/* The first line: the rule before the first record. */
static void read_state(const json_t *line, struct ll_regime *regime)
{
	const json_t *state = member(line, "decisions");
	assert_true(is_true(state, "replays"));
	*regime = (struct ll_regime){.gives_visits = is_true(state, "gives_visits"),
				     .why = why(state),
				     .gain = real(state, "gain"),
				     .credit_ns = (int64_t)number(state, "credit_ns"),
				     .credit_at_ns = number(state, "credit_at_ns"),
				     .new_mix = mix_number(state, "new_mix"),
				     .new_mix_ns = number(state, "new_mix_ns")};
	assert_int_equal(json_array_size(member(state, "mixes")), LL_REGIME_MIXES);
	for (unsigned i = 0; i < LL_REGIME_MIXES; i++) {
		const json_t *mix = json_array_get(member(state, "mixes"), i);
		regime->mixes[i] = (struct ll_regime_mix){.number = mix_number(mix, "number"),
							  .used_ns = number(mix, "used_ns"),
							  .next_ns = number(mix, "next_ns"),
							  .tries = (unsigned)number(mix, "tries"),
							  .gives_visits = is_true(mix, "gives_visits"),
							  .why = why(mix),
							  .gain = real(mix, "gain")};
	}
	uint64_t present = number(state, "mix");
	regime->mix = present ? &regime->mixes[present - 1] : NULL;
}

static struct ll_regime_job read_job(const json_t *job)
{
	return (struct ll_regime_job){.id = number(job, "id"),
				      .completed = number(job, "completed"),
				      .queued_launches = number(job, "queued_launches"),
				      .visited_ns = number(job, "visited_ns"),
				      .weight_permille = (unsigned)number(job, "weight_permille"),
				      .processes = (unsigned)number(job, "processes"),
				      .waits = is_true(job, "waits")};
}

/* Whether the step with these inputs has that outcome. */
static bool replays(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count,
		    const struct ll_decision *is)
{
	ll_regime_step(regime, jobs, count, is->at_ns);
	return regime->gives_visits == is->gives_visits && regime->why == is->why &&
	       fabs(regime->gain - is->gain) < 1e-12 && regime->moves == is->moves;
}

/* Returns how many of the records replay before the first that does not. */
static size_t replay_lines(json_t *const *lines, size_t count)
{
	struct ll_regime regime;
	read_state(lines[0], &regime);
	for (size_t i = 1; i < count; i++) {
		struct ll_regime_job jobs[LL_REGIME_JOBS + 1];
		const json_t *array = member(lines[i], "jobs");
		const struct ll_decision outcome = {.at_ns = number(lines[i], "at_ns"),
						    .gives_visits = is_true(lines[i], "gives_visits"),
						    .why = why(lines[i]),
						    .gain = real(lines[i], "gain"),
						    .moves = moves(lines[i])};
		for (size_t k = 0; k < json_array_size(array); k++)
			jobs[k] = read_job(json_array_get(array, k));
		if (!replays(&regime, jobs, json_array_size(array), &outcome))
			return i - 1;
	}
	return count - 1;
}

static size_t read_lines(json_t *lines[LINES_MOST])
{
	static char text[1 << 16];
	FILE *file = fopen(LL_DECISIONS_FILE, "r");
	size_t count = 0;
	assert_non_null(file);
	while (fgets(text, sizeof text, file)) {
		assert_true(count < LINES_MOST);
		lines[count] = json_loads(text, 0, NULL);
		assert_non_null(lines[count++]);
	}
	fclose(file);
	assert_true(count > 1);
	return count;
}

static void free_lines(json_t **lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_decref(lines[i]);
}

static size_t find_verdict(json_t *const *lines, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (moves(lines[i]) & LL_REGIME_MOVE_VERDICT)
			return i;
	}
	fail_msg("no verdict in the file");
	return 0;
}

static void what_status_printed_replays(void **state)
{
	json_t *lines[LINES_MOST];
	size_t count = read_lines(lines);
	(void)state;
	assert_int_equal(replay_lines(lines, count), count - 1);
	free_lines(lines, count);
}

static void set_input(json_t *line, size_t job, const char *key, json_t *value)
{
	json_object_set_new(json_array_get(member(line, "jobs"), job), key, value);
}

/* Each of the inputs counts: with a wrong one the replay ends at that record or at a later one. */
static void wrong_inputs_do_not_replay(void **state)
{
	static const struct {
		const char *key;
		json_int_t value;
	} wrong[] = {{"completed", 1}, {"weight_permille", 2500}, {"processes", 3}, {"id", 77}};
	json_t *lines[LINES_MOST];
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		size_t count = read_lines(lines), verdict = find_verdict(lines, count);
		set_input(lines[verdict], 0, wrong[i].key, json_integer(wrong[i].value));
		assert_int_equal(replay_lines(lines, count), verdict - 1);
		free_lines(lines, count);
	}
	size_t count = read_lines(lines), verdict = find_verdict(lines, count);
	json_object_set_new(lines[verdict], "at_ns",
			    json_integer((json_int_t)number(lines[verdict], "at_ns") - 400000000));
	assert_int_equal(replay_lines(lines, count), verdict - 1);
	free_lines(lines, count);
}

/* Without a record that moved the rule on, what follows does not replay. */
static void a_missing_record_is_seen(void **state)
{
	json_t *lines[LINES_MOST], *left[LINES_MOST] = {NULL};
	size_t count = read_lines(lines), verdict = find_verdict(lines, count);
	(void)state;
	memcpy(left, lines, count * sizeof *left);
	memmove(&left[verdict - 1], &left[verdict], (count - verdict) * sizeof *left);
	assert_true(replay_lines(left, count - 1) < count - 2);
	free_lines(lines, count);
}

/* ---- the ring of a card ---- */

struct player {
	struct ll_share_job job;
	struct ll_share_claim claim;
	struct ll_share_said said;
	_Atomic uint32_t word;
	char name[16];
};

struct world {
	struct ll_share_card card;
	struct ll_decisions decisions;
	struct player players[JOBS_MOST];
	size_t count;
	uint64_t now_ns;
};

static void add_player(struct world *world)
{
	struct player *player = &world->players[world->count++];
	snprintf(player->name, sizeof player->name, "tenant%zu", world->count);
	player->job = (struct ll_share_job){.id = 100 + world->count,
					    .tenant = player->name,
					    .word = &player->word,
					    .rank = LL_PRIORITY_NORMAL,
					    .weight_permille = 1000};
	player->said = (struct ll_share_said){.pace = LL_PACE_WAITS, .is_wanting = true};
	ll_share_add_job(&world->card, &player->job);
	assert_int_equal(ll_share_add_claim(&player->job, &player->claim), 0);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	if (!world)
		return -1;
	world->now_ns = S;
	world->card.decisions = &world->decisions;
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	for (size_t i = 0; i < world->count; i++)
		ll_share_remove_claim(&world->players[i].claim, world->now_ns);
	ll_share_card_fini(&world->card);
	free(world);
	return 0;
}

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

static size_t replay_ring(const struct ll_decisions *decisions)
{
	struct ll_regime regime = decisions->base;
	size_t count = 0;
	if (regime.mix)
		regime.mix = &regime.mixes[decisions->base.mix - decisions->base.mixes];
	const struct ll_decision *record = ll_decisions_from(decisions, 0);
	for (; record; record = ll_decisions_from(decisions, record->number + 1), count++) {
		struct ll_regime_job jobs[LL_REGIME_JOBS + 1];
		for (unsigned i = 0; i < record->count; i++)
			jobs[i] = ll_decisions_job(decisions, record, i)->job;
		assert_true(replays(&regime, jobs, record->count, record));
	}
	return count;
}

static void records_say_who_and_what_was_measured(void **state)
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

static void a_full_ring_forgets_the_oldest_and_replays_the_rest(void **state)
{
	struct world *world = *state;
	while (world->count < 6)
		add_player(world);
	for (int i = 0; i < 120; i++) {
		struct player *player = &world->players[(i * 5) % 6];
		player->said.pace = player->said.pace == LL_PACE_WAITS ? LL_PACE_AHEAD : LL_PACE_WAITS;
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

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_status_printed_replays),
	    cmocka_unit_test(wrong_inputs_do_not_replay),
	    cmocka_unit_test(a_missing_record_is_seen),
	    WORLD_TEST(records_say_who_and_what_was_measured),
	    WORLD_TEST(a_full_ring_forgets_the_oldest_and_replays_the_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
