/*
 * share_decisions.h - the log of a card's decisions replays in the pure code: records of a file that `loadline status
 * --decisions --json` printed, and those of a card of this program.
 */
#ifndef LOADLINE_TESTS_UNIT_SHARE_DECISIONS_H
#define LOADLINE_TESTS_UNIT_SHARE_DECISIONS_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/arbiter/card.h"
#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/decisions.h"
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

static const char *const lever_names[] = {
    [LL_LEVER_MOVE_NONE] = "none",     [LL_LEVER_MOVE_SPARSE] = "sparse", [LL_LEVER_MOVE_DENSE] = "dense",
    [LL_LEVER_MOVE_UNSEEN] = "unseen", [LL_LEVER_MOVE_FOUND] = "found",   [LL_LEVER_MOVE_MENDED] = "mended",
    [LL_LEVER_MOVE_STAYS] = "stays",
};

static inline json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	if (!value)
		fail_msg("no member '%s'", key);
	return value;
}

static inline uint64_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(member(object, key)));
	return (uint64_t)json_integer_value(member(object, key));
}

static inline double real(const json_t *object, const char *key)
{
	return json_number_value(member(object, key));
}

static inline bool is_true(const json_t *object, const char *key)
{
	assert_true(json_is_boolean(member(object, key)));
	return json_is_true(member(object, key));
}

static inline uint64_t mix_number(const json_t *object, const char *key)
{
	return strtoull(json_string_value(member(object, key)), NULL, 16);
}

static inline enum ll_regime_why why(const json_t *object)
{
	const char *name = json_string_value(member(object, "why"));
	for (unsigned i = 0; i < sizeof why_names / sizeof *why_names; i++) {
		if (strcmp(name, why_names[i]) == 0)
			return (enum ll_regime_why)i;
	}
	fail_msg("why is '%s'", name);
	return LL_REGIME_NO_REASON;
}

static inline unsigned moves(const json_t *object)
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
static inline void read_state(const json_t *line, struct ll_regime *regime)
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

static inline struct ll_regime_job read_job(const json_t *job)
{
	return (struct ll_regime_job){.id = number(job, "id"),
				      .completed = number(job, "completed"),
				      .queued_launches = number(job, "queued_launches"),
				      .visited_ns = number(job, "visited_ns"),
				      .weight_permille = (unsigned)number(job, "weight_permille"),
				      .processes = (unsigned)number(job, "processes"),
				      .waits = is_true(job, "waits"),
				      .has_slices = json_is_true(json_object_get(job, "has_slices"))};
}

/* Whether the step with these inputs has that outcome. */
static inline bool replays(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count,
			   const struct ll_decision *is)
{
	ll_regime_step(regime, jobs, count, is->at_ns);
	return regime->gives_visits == is->gives_visits && regime->why == is->why &&
	       fabs(regime->gain - is->gain) < 1e-12 && regime->moves == is->moves;
}

static inline bool line_replays(struct ll_regime *regime, const json_t *line)
{
	struct ll_regime_job jobs[LL_REGIME_JOBS + 1];
	const json_t *array = member(line, "jobs");
	const struct ll_decision outcome = {.at_ns = number(line, "at_ns"),
					    .gives_visits = is_true(line, "gives_visits"),
					    .why = why(line),
					    .gain = real(line, "gain"),
					    .moves = moves(line)};
	for (size_t k = 0; k < json_array_size(array); k++)
		jobs[k] = read_job(json_array_get(array, k));
	return replays(regime, jobs, json_array_size(array), &outcome);
}

/* The same of a lever, from the numbers that are kept of it and of its jobs. */
static inline bool lever_replays(struct ll_lever_gauge *gauges, const unsigned *slowdowns, size_t count,
				 const struct ll_lever_choice *is, uint64_t at_ns)
{
	struct ll_lever_job jobs[LL_REGIME_JOBS + 1];
	struct ll_lever lever = {
	    .part = is->from_part, .busy = is->busy, .weighed_s = is->weighed_s, .is_known = is->was_known};
	for (size_t i = 0; i < count; i++)
		jobs[i] = (struct ll_lever_job){.gauge = &gauges[i], .slowdown_permille = slowdowns[i]};
	ll_lever_step(&lever, jobs, count, true, at_ns);
	return lever.choice.move == is->move && fabs(lever.part - is->part) < 1e-12;
}

static inline enum ll_lever_move lever_move(const json_t *line)
{
	const char *name = json_string_value(member(line, "lever"));
	for (unsigned i = 0; i < sizeof lever_names / sizeof *lever_names; i++) {
		if (strcmp(name, lever_names[i]) == 0)
			return (enum ll_lever_move)i;
	}
	fail_msg("lever is '%s'", name);
	return LL_LEVER_MOVE_NONE;
}

static inline bool lever_line_replays(const json_t *line)
{
	struct ll_lever_gauge gauges[LL_REGIME_JOBS + 1];
	unsigned slowdowns[LL_REGIME_JOBS + 1];
	const json_t *array = member(line, "jobs");
	const struct ll_lever_choice choice = {.move = lever_move(line),
					       .part = real(line, "lower_held"),
					       .from_part = real(line, "lower_held_before"),
					       .busy = real(line, "busy"),
					       .weighed_s = real(line, "weighed_s"),
					       .was_known = is_true(line, "was_known")};
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *job = json_array_get(array, i);
		gauges[i] =
		    (struct ll_lever_gauge){.launches = {real(job, "open_launches"), real(job, "held_launches")},
					    .seconds = {real(job, "open_s"), real(job, "held_s")}};
		slowdowns[i] = (unsigned)number(job, "slowdown_permille");
	}
	return lever_replays(gauges, slowdowns, json_array_size(array), &choice, number(line, "at_ns"));
}

/* Returns how many of the records replay before the first that does not. */
static inline size_t replay_lines(json_t *const *lines, size_t count)
{
	struct ll_regime regime;
	read_state(lines[0], &regime);
	for (size_t i = 1; i < count; i++) {
		bool is_lever = json_object_get(lines[i], "lever");
		if (!(is_lever ? lever_line_replays(lines[i]) : line_replays(&regime, lines[i])))
			return i - 1;
	}
	return count - 1;
}

static inline size_t read_lines(const char *path, json_t *lines[LINES_MOST])
{
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
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

static inline void free_lines(json_t **lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_decref(lines[i]);
}

static inline size_t find_verdict(json_t *const *lines, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (json_object_get(lines[i], "moves") && moves(lines[i]) & LL_REGIME_MOVE_VERDICT)
			return i;
	}
	fail_msg("no verdict in the file");
	return 0;
}

static inline void set_input(json_t *line, size_t job, const char *key, json_t *value)
{
	json_object_set_new(json_array_get(member(line, "jobs"), job), key, value);
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

static inline struct player *add_player(struct world *world)
{
	struct player *player = &world->players[world->count++];
	snprintf(player->name, sizeof player->name, "tenant%zu", world->count);
	player->job = (struct ll_share_job){.id = 100 + world->count,
					    .tenant = player->name,
					    .word = &player->word,
					    .rank = LL_PRIORITY_NORMAL,
					    .weight_permille = 1000,
					    .slowdown_permille = 1300};
	player->said = (struct ll_share_said){.launch_mode = LL_LAUNCH_MODE_SYNC, .is_wanting = true};
	ll_share_add_job(&world->card, &player->job);
	assert_int_equal(ll_share_add_claim(&player->job, &player->claim), 0);
	return player;
}

static inline int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	if (!world)
		return -1;
	world->now_ns = S;
	world->card.decisions = &world->decisions;
	*state = world;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *world = *state;
	for (size_t i = 0; i < world->count; i++)
		ll_share_remove_claim(&world->players[i].claim, world->now_ns);
	ll_share_card_fini(&world->card);
	free(world);
	return 0;
}

static inline bool record_of_lever_replays(const struct ll_decisions *decisions, const struct ll_decision *record)
{
	struct ll_lever_gauge gauges[LL_REGIME_JOBS + 1];
	unsigned slowdowns[LL_REGIME_JOBS + 1];
	for (unsigned i = 0; i < record->count; i++) {
		const struct ll_decision_job *job = ll_decisions_job(decisions, record, i);
		gauges[i] = job->gauge;
		gauges[i].seen_ns = gauges[i].worked_ns = 0; /* not among what `status` prints */
		slowdowns[i] = job->slowdown_permille;
	}
	return lever_replays(gauges, slowdowns, record->count, &record->lever, record->at_ns);
}

static inline size_t replay_ring(const struct ll_decisions *decisions)
{
	struct ll_regime regime = decisions->base;
	size_t count = 0;
	if (regime.mix)
		regime.mix = &regime.mixes[decisions->base.mix - decisions->base.mixes];
	const struct ll_decision *record = ll_decisions_from(decisions, 0);
	for (; record; record = ll_decisions_from(decisions, record->number + 1), count++) {
		struct ll_regime_job jobs[LL_REGIME_JOBS + 1];
		if (record->lever.move) {
			assert_true(record_of_lever_replays(decisions, record));
			continue;
		}
		for (unsigned i = 0; i < record->count; i++)
			jobs[i] = ll_decisions_job(decisions, record, i)->job;
		assert_true(replays(&regime, jobs, record->count, record));
	}
	return count;
}

#endif
