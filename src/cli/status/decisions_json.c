#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/common/json_line.h"
#include "cli/status/decisions.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"

static json_t *card_label(const struct ll_card *card)
{
	return json_pack("{s:i, s:s}", "card", (int)card->index, "uuid", card->uuid);
}

/* "2026-01-31T12:00:00.250Z" */
static json_t *time_of(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[32], text[48];
	gmtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof text, "%s.%03uZ", words, (unsigned)(wall_ns % LL_NS_PER_S / LL_NS_PER_MS));
	return json_string(text);
}

/* A number of a mix takes all 64 bits, which JSON's integers do not have. */
static json_t *mix_number(uint64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%016" PRIx64, number);
	return json_string(text);
}

static const char *why_name(uint32_t why)
{
	static const char *const names[] = {
	    [LL_REGIME_NO_REASON] = "no_reason", [LL_REGIME_NOT_MEASURED] = "not_measured",
	    [LL_REGIME_MEASURES] = "measures",   [LL_REGIME_PAYS] = "pays",
	    [LL_REGIME_PAYS_NOT] = "pays_not",   [LL_REGIME_TOO_DEEP] = "too_deep",
	    [LL_REGIME_TOO_MANY] = "too_many",
	};
	return why < sizeof names / sizeof *names ? names[why] : "unknown";
}

static json_t *moves_array(uint32_t moves)
{
	static const char *const names[] = {"mix",   "begins",  "drained",  "measures",
					    "block", "verdict", "gives_up", "output"};
	json_t *array = json_array();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (moves >> i & 1)
			json_array_append_new(array, json_string(names[i]));
	}
	return array;
}

static json_t *mix_object(const struct ll_decision_mix *mix)
{
	return json_pack("{s:o, s:I, s:I, s:i, s:s, s:b, s:f}", "number", mix_number(mix->number), "used_ns",
			 (json_int_t)mix->used_ns, "next_ns", (json_int_t)mix->next_ns, "tries", (int)mix->tries, "why",
			 why_name(mix->why), "gives_visits", (int)mix->gives_visits, "gain", mix->gain);
}

/* All mixes, in their places: an empty place has the number 0. */
static json_t *state_object(const struct ll_message_decisions_state *state)
{
	json_t *mixes = json_array();
	for (size_t i = 0; i < LL_DECISION_MIXES; i++)
		json_array_append_new(mixes, mix_object(&state->mixes[i]));
	return json_pack("{s:{s:I, s:b, s:b, s:s, s:f, s:I, s:I, s:o, s:I, s:i, s:o}}", "decisions", "first",
			 (json_int_t)state->number, "replays", !state->has_half, "gives_visits",
			 (int)state->gives_visits, "why", why_name(state->why), "gain", state->gain, "credit_ns",
			 (json_int_t)state->credit_ns, "credit_at_ns", (json_int_t)state->credit_at_ns, "new_mix",
			 mix_number(state->new_mix), "new_mix_ns", (json_int_t)state->new_mix_ns, "mix",
			 (int)state->mix, "mixes", mixes);
}

static json_t *job_object(const struct ll_message_decision_job *job, bool has_verdict)
{
	json_t *object =
	    json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "id", (json_int_t)job->id, "tenant",
		      ll_json_text(job->tenant), "completed", (json_int_t)job->completed, "queued_launches",
		      (json_int_t)job->queued_launches, "visited_ns", (json_int_t)job->visited_ns, "weight_permille",
		      (json_int_t)job->weight_permille, "processes", (json_int_t)job->processes, "waits",
		      (int)job->waits, "has_slices", (int)job->has_slices);
	if (object && has_verdict) {
		json_object_set_new(object, "slices_per_second", ll_json_real(job->slices, 3));
		json_object_set_new(object, "visits_per_second", ll_json_real(job->visits, 3));
		json_object_set_new(object, "alone_per_second",
				    job->alone > 0 ? ll_json_real(job->alone, 3) : json_null());
	}
	return object;
}

static json_t *jobs_array(const struct ll_message_decision *decision, const struct ll_message_decision_job *jobs)
{
	json_t *array = json_array();
	for (uint32_t i = 0; i < decision->jobs; i++)
		json_array_append_new(array, job_object(&jobs[i], decision->moves & LL_REGIME_MOVE_VERDICT));
	return array;
}

/* ---- a step of the lever ---- */

static const char *lever_name(uint32_t move)
{
	static const char *const names[] = {
	    [LL_LEVER_MOVE_NONE] = "none",     [LL_LEVER_MOVE_SPARSE] = "sparse", [LL_LEVER_MOVE_DENSE] = "dense",
	    [LL_LEVER_MOVE_UNSEEN] = "unseen", [LL_LEVER_MOVE_FOUND] = "found",   [LL_LEVER_MOVE_MENDED] = "mended",
	    [LL_LEVER_MOVE_STAYS] = "stays",   [LL_LEVER_MOVE_SLICES] = "slices",
	};
	return move < sizeof names / sizeof *names ? names[move] : "unknown";
}

static json_t *lever_jobs_array(const struct ll_message_decision *decision, const struct ll_message_decision_job *jobs)
{
	json_t *array = json_array();
	for (uint32_t i = 0; i < decision->jobs; i++) {
		const struct ll_message_decision_job *job = &jobs[i];
		json_array_append_new(array, json_pack("{s:I, s:o, s:I, s:I, s:f, s:f, s:f, s:f}", "id",
						       (json_int_t)job->id, "tenant", ll_json_text(job->tenant),
						       "completed", (json_int_t)job->completed, "slowdown_permille",
						       (json_int_t)job->slowdown_permille, "held_launches",
						       job->held_launches, "held_s", job->held_s, "open_launches",
						       job->open_launches, "open_s", job->open_s));
	}
	return array;
}

static json_t *lever_object(const struct ll_message_decision *decision, const struct ll_message_decision_job *jobs,
			    uint64_t wall_ns)
{
	return json_pack("{s:I, s:o, s:I, s:s, s:s, s:f, s:f, s:o, s:f, s:f, s:b, s:o}", "decision",
			 (json_int_t)decision->number, "time", time_of(wall_ns - decision->age_ns), "at_ns",
			 (json_int_t)decision->at_ns, "lever", lever_name(decision->lever), "class",
			 ll_priority_name((enum ll_priority)decision->rank), "lower_held", decision->part,
			 "lower_held_before", decision->from_part, "slice_ms",
			 decision->slice_us ? ll_json_real(decision->slice_us / 1000.0, 3) : json_null(), "busy",
			 decision->busy, "weighed_s", decision->weighed_s, "was_known",
			 (decision->flags & LL_DECISION_WAS_KNOWN) != 0, "jobs", lever_jobs_array(decision, jobs));
}

/* ---- lines ---- */

static json_t *decision_object(const struct ll_message_decision *decision, const struct ll_message_decision_job *jobs,
			       uint64_t wall_ns)
{
	return json_pack("{s:I, s:o, s:I, s:o, s:b, s:s, s:f, s:b, s:i, s:o}", "decision", (json_int_t)decision->number,
			 "time", time_of(wall_ns - decision->age_ns), "at_ns", (json_int_t)decision->at_ns, "moves",
			 moves_array(decision->moves), "gives_visits",
			 (decision->flags & LL_DECISION_GIVES_VISITS) != 0, "why", why_name(decision->why), "gain",
			 decision->gain, "by_rule", (decision->flags & LL_DECISION_IS_RULED) != 0, "block",
			 (int)decision->block, "jobs", jobs_array(decision, jobs));
}

static int print_of_card(json_t *object, const struct ll_card *card, struct ll_err *err)
{
	json_t *label = card_label(card);
	int failed = json_object_update(object, label);
	json_decref(label);
	if (failed) {
		json_decref(object);
		object = NULL;
	}
	return ll_json_line(object, err);
}

int ll_decision_list_print_json(const struct ll_decision_list *list, const struct ll_card *card, uint64_t wall_ns,
				struct ll_err *err)
{
	const struct ll_message_decision_job *jobs = list->jobs;
	int rc = list->has_state ? print_of_card(state_object(&list->state), card, err) : 0;
	for (size_t i = 0; !rc && i < list->decision_count; i++) {
		const struct ll_message_decision *decision = &list->decisions[i];
		json_t *object =
		    decision->lever ? lever_object(decision, jobs, wall_ns) : decision_object(decision, jobs, wall_ns);
		rc = print_of_card(object, card, err);
		jobs += decision->jobs;
	}
	return rc;
}
