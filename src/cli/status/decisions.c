#include "cli/status/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"

enum { TRIES = 5 };

/* ---- asking ---- */

static int read_once(struct ll_decision_list *list, struct ll_client *client, const char *uuid, struct ll_err *err)
{
	struct ll_message_decisions_state *states = NULL;
	size_t count = 0;
	const struct ll_reply_rows rows[] = {{LL_MESSAGE_DECISIONS_END, NULL, NULL},
					     {LL_MESSAGE_DECISIONS_STATE, &states, &count},
					     {LL_MESSAGE_DECISION, &list->decisions, &list->decision_count},
					     {LL_MESSAGE_DECISION_JOB, &list->jobs, &list->job_count}};
	union ll_message message;
	*list = (struct ll_decision_list){.has_state = false};
	ll_message_init(&message, LL_MESSAGE_DECISIONS);
	snprintf(message.decisions.uuid, sizeof message.decisions.uuid, "%s", uuid);
	int rc =
	    ll_client_ask(client, &message, rows, sizeof rows / sizeof *rows, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	list->has_state = count;
	if (count)
		list->state = states[0];
	free(states);
	return rc;
}

/* Whether each decision and each of its jobs is there: some may have gone while they were sent. */
static bool is_whole(const struct ll_decision_list *list)
{
	size_t jobs = 0;
	for (size_t i = 0; i < list->decision_count; i++) {
		const struct ll_message_decision *decision = &list->decisions[i];
		if (decision->number != list->state.number + i)
			return false;
		for (uint32_t k = 0; k < decision->jobs; k++, jobs++) {
			if (jobs == list->job_count || list->jobs[jobs].number != decision->number)
				return false;
		}
	}
	return jobs == list->job_count;
}

int ll_decision_list_read(struct ll_decision_list *list, struct ll_client *client, const char *uuid, struct ll_err *err)
{
	*list = (struct ll_decision_list){.has_state = false};
	for (int i = 0; i < TRIES; i++) {
		ll_decision_list_fini(list);
		int rc = read_once(list, client, uuid, err);
		if (rc || is_whole(list))
			return rc;
	}
	return ll_err_set(err, -EAGAIN, "decisions come faster than they can be read");
}

void ll_decision_list_fini(struct ll_decision_list *list)
{
	free(list->decisions);
	free(list->jobs);
	*list = (struct ll_decision_list){.has_state = false};
}

/* ---- all cards ---- */

struct shown {
	const struct ll_card *const *cards;
	size_t count;
	bool is_json;
};

static int show_text(const struct ll_decision_list *list, const struct ll_card *card, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_decision_list_add_text(&text, list, card->label, ll_wall_ns());
	return ll_print_text(&text, err);
}

static int show(const struct shown *shown, struct ll_client *client, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < shown->count; i++) {
		struct ll_decision_list list;
		if (!shown->cards[i]->uuid[0]) /* it does not answer */
			continue;
		rc = ll_decision_list_read(&list, client, shown->cards[i]->uuid, err);
		if (!rc)
			rc = shown->is_json ? ll_decision_list_print_json(&list, shown->cards[i], ll_wall_ns(), err)
					    : show_text(&list, shown->cards[i], err);
		ll_decision_list_fini(&list);
	}
	return rc;
}

static int request_decisions(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	(void)list;
	return client ? show(data, client, err) : 0;
}

int ll_status_decisions(const struct ll_driver *driver, const struct ll_card *const *cards, size_t count, bool is_json,
			struct ll_err *err)
{
	struct shown shown = {.cards = cards, .count = count, .is_json = is_json};
	return ll_daemon_look(ll_driver_sim_folder(driver), false, request_decisions, &shown, err);
}

static json_t *time_of(uint64_t wall_ns)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_wall_time_add(&text, wall_ns);
	return json_string(text.buf);
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
	json_t *label = json_pack("{s:i, s:s}", "card", (int)card->index, "uuid", card->uuid);
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

/* A measurement has four blocks, or eight if these leave a doubt. */
enum { BLOCKS = 4 };

/* The time of this machine: "2026-01-31 12:00:00.250". */
static void add_time(struct ll_strbuf *text, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[32];
	localtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S", &tm);
	ll_strbuf_addf(text, "%s.%03u", words, (unsigned)(wall_ns % LL_NS_PER_S / LL_NS_PER_MS));
}

static const char *state_words(const struct ll_message_decision *decision)
{
	if (decision->flags & LL_DECISION_IS_RULED)
		return _("a rule serves these programs (classes, MPS, several cards): nothing is measured");
	switch ((enum ll_regime_why)decision->why) {
	case LL_REGIME_NO_REASON:
		return _("no reason for visits");
	case LL_REGIME_NOT_MEASURED:
		return _("not measured yet");
	case LL_REGIME_MEASURES:
		return _("measures");
	case LL_REGIME_PAYS:
		return _("as measured before: visits pay");
	case LL_REGIME_PAYS_NOT:
		return _("as measured before: visits do not pay");
	case LL_REGIME_TOO_DEEP:
		return _("too much is queued to measure visits");
	case LL_REGIME_TOO_MANY:
		return _("too many tenants to measure");
	}
	return _("a reason that this version does not know");
}

static void add_part(struct ll_strbuf *text, size_t begin, const char *words)
{
	ll_strbuf_addf(text, "%s%s", text->length > begin ? ", " : "", words);
}

static void add_moves(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	size_t begin = text->length;
	uint32_t moves = decision->moves;
	if (moves & LL_REGIME_MOVE_GIVES_UP)
		add_part(text, begin, _("the measurement is given up"));
	if (moves & LL_REGIME_MOVE_MIX)
		add_part(text, begin, _("another mix of programs"));
	if (moves & LL_REGIME_MOVE_BEGINS)
		add_part(text, begin, _("a measurement begins"));
	if (moves & LL_REGIME_MOVE_DRAINED)
		add_part(text, begin, _("what was queued is done"));
	if (moves & LL_REGIME_MOVE_MEASURES)
		ll_strbuf_addf(text, _("%sblock %u of %d is measured"), text->length > begin ? ", " : "",
			       decision->block + 1, decision->block < BLOCKS ? BLOCKS : 2 * BLOCKS);
	if (moves & LL_REGIME_MOVE_VERDICT)
		add_part(text, begin,
			 decision->why == LL_REGIME_PAYS ? _("verdict: visits pay") : _("verdict: visits do not pay"));
	else if (moves & LL_REGIME_MOVE_BLOCK)
		ll_strbuf_addf(text, _("%sblock %u is over"), text->length > begin ? ", " : "", decision->block);
	if (!(moves & (LL_REGIME_MOVE_BEGINS | LL_REGIME_MOVE_VERDICT)) && decision->why != LL_REGIME_MEASURES)
		add_part(text, begin, state_words(decision));
	if (moves & LL_REGIME_MOVE_VERDICT)
		ll_strbuf_addf(text, _(", %.2f times the progress by slices"), exp(decision->gain));
}

static void add_rate(struct ll_strbuf *text, double rate, double alone, const char *way)
{
	ll_strbuf_addf(text, _("%.1f launches/s %s"), rate, way);
	if (alone > 0)
		ll_strbuf_addf(text, _(" (%.2f of its speed)"), rate / alone);
}

static void add_job(struct ll_strbuf *text, const struct ll_message_decision_job *job)
{
	ll_strbuf_addf(text, "    %s: ", job->tenant[0] ? job->tenant : _("a tenant"));
	add_rate(text, job->slices, job->alone, _("by slices"));
	ll_strbuf_adds(text, ", ");
	add_rate(text, job->visits, job->alone, _("by visits"));
	ll_strbuf_addc(text, '\n');
}

/* ---- a step of the lever ---- */

static void add_why_held(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	switch ((enum ll_lever_move)decision->lever) {
	case LL_LEVER_MOVE_SPARSE:
		ll_strbuf_addf(text, _("it seldom has work (%.0f %% of the time)"), 100 * decision->busy);
		break;
	case LL_LEVER_MOVE_DENSE:
		ll_strbuf_addf(text, _("it has work for %.0f %% of the time, its speeds are not known yet"),
			       100 * decision->busy);
		break;
	case LL_LEVER_MOVE_UNSEEN:
		ll_strbuf_adds(text, _("its speeds are not known yet"));
		break;
	case LL_LEVER_MOVE_FOUND:
		ll_strbuf_adds(text, _("its speeds are known"));
		break;
	case LL_LEVER_MOVE_MENDED:
		ll_strbuf_adds(text, _("a step towards what it needs"));
		break;
	case LL_LEVER_MOVE_STAYS:
		ll_strbuf_adds(text, _("this is what it needs"));
		break;
	default:
		ll_strbuf_adds(text, _("for a reason that this version does not know"));
	}
}

static void add_held(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	if (decision->lever == LL_LEVER_MOVE_SLICES) {
		ll_strbuf_addf(text, _("class %s  lower classes have time slices of %.3g ms"),
			       ll_priority_name((enum ll_priority)decision->rank), decision->slice_us / 1000.0);
		return;
	}
	ll_strbuf_addf(text, _("class %s  lower classes are held for %.0f %% of its time, "),
		       ll_priority_name((enum ll_priority)decision->rank), 100 * decision->part);
	if (fabs(decision->part - decision->from_part) > 0)
		ll_strbuf_addf(text, _("before %.0f %%: "), 100 * decision->from_part);
	else
		ll_strbuf_adds(text, _("as before: "));
	add_why_held(text, decision);
}

static void add_lever_job(struct ll_strbuf *text, const struct ll_message_decision *decision,
			  const struct ll_message_decision_job *job)
{
	const struct ll_lever lever = {.part = decision->from_part};
	const struct ll_lever_gauge gauge = {.launches = {job->open_launches, job->held_launches},
					     .seconds = {job->open_s, job->held_s}};
	double slowdown = ll_lever_slowdown(&lever, &gauge);
	if (slowdown <= 0) /* not enough was seen of it */
		return;
	ll_strbuf_addf(text, _("    %s: %.2f times as slow as alone, %.2f is accepted: "),
		       job->tenant[0] ? job->tenant : _("a tenant"), slowdown, job->slowdown_permille / 1000.0);
	ll_strbuf_addf(text, _("%.1f launches/s while they are held, %.1f while not\n"),
		       job->held_launches / job->held_s, job->open_launches / job->open_s);
}

/* ---- lines ---- */

static void add_decision(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	if (decision->lever) {
		add_held(text, decision);
		return;
	}
	ll_strbuf_addf(text, "%s  ", decision->flags & LL_DECISION_GIVES_VISITS ? _("visits") : _("slices"));
	add_moves(text, decision);
}

void ll_decision_list_add_text(struct ll_strbuf *text, const struct ll_decision_list *list, const char *card,
			       uint64_t wall_ns)
{
	const struct ll_message_decision_job *job = list->jobs;
	for (size_t i = 0; i < list->decision_count; i++) {
		const struct ll_message_decision *decision = &list->decisions[i];
		add_time(text, wall_ns - decision->age_ns);
		ll_strbuf_addf(text, _("  card %s  "), card);
		add_decision(text, decision);
		ll_strbuf_addc(text, '\n');
		for (uint32_t k = 0; k < decision->jobs; k++, job++) {
			if (decision->lever >= LL_LEVER_MOVE_FOUND)
				add_lever_job(text, decision, job);
			else if (decision->moves & LL_REGIME_MOVE_VERDICT)
				add_job(text, job);
		}
	}
}
