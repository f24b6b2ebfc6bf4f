/* The rows of the data. The page shows each key of a row as a column, so a key that is added here needs no change
 * there. The end of a key is its unit: _bytes, _percent, _seconds; moments are seconds since 1970. */
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exporter/web.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"

enum { QUEUE_MOST = 512, DECISIONS_MOST = 20, MASK_CARDS = 64 };

/* ---- values ---- */

static json_t *real(double value, double digits)
{
	return isnan(value) ? json_null() : json_real(round(value * digits) / digits);
}

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known && number != UINT64_MAX ? json_integer((json_int_t)number) : json_null();
}

static json_t *percent_or_null(bool is_known, uint64_t permille)
{
	return is_known && permille != UINT64_MAX ? real((double)permille / 10, 10) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *user_name(uint32_t uid)
{
	const struct passwd *entry = getpwuid(uid);
	return entry ? json_string(entry->pw_name) : json_sprintf("%u", uid);
}

static json_t *cards_of(uint64_t mask)
{
	json_t *cards = json_array();
	for (unsigned index = 0; index < MASK_CARDS; index++) {
		if (mask >> index & 1)
			json_array_append_new(cards, json_integer(index));
	}
	return cards;
}

/* Such as 3, or "3:0" for a slice. */
static json_t *card_label(unsigned index, int slice)
{
	return slice < 0 ? json_integer(index) : json_sprintf("%u:%d", index, slice);
}

/* ---- cards ---- */

static double percent_of_jobs(const struct ll_list *list, const char *uuid)
{
	double permille = 0;
	for (size_t i = 0; i < list->card_count; i++)
		permille += strcmp(list->cards[i].uuid, uuid) == 0 ? list->cards[i].recent_permille : 0;
	return permille / 10;
}

/* Of a card with a synthetic load, what jobs do not use of the work on it is the load's. */
static json_t *card_row(const struct ll_figures *figures, size_t i, const struct ll_exporter_history *readings,
			struct ll_web_history *history, int64_t now_s)
{
	const struct ll_message_sense_card *card = &figures->sensed.cards[i];
	bool is_fresh = figures->sensed.end.silent_ns < LL_SENSED_FRESH_NS && !(card->flags & LL_SENSE_IS_LOST);
	bool is_synthetic = card->flags & LL_SENSE_HAS_SYNTHETIC;
	bool knows_jobs = !figures->sums.end.hides_others;
	double percent[LL_WEB_SERIES] = {NAN, NAN, NAN};
	const char *drained = NULL;
	if (is_fresh)
		percent[LL_WEB_UTIL] = 100 * ll_exporter_util(readings, card);
	if (is_fresh && card->memory_bytes)
		percent[LL_WEB_MEMORY] = 100 * (double)card->used_bytes / (double)card->memory_bytes;
	if (!is_synthetic)
		percent[LL_WEB_SYNTHETIC] = 0;
	else if (knows_jobs && !isnan(percent[LL_WEB_UTIL]))
		percent[LL_WEB_SYNTHETIC] = fmax(percent[LL_WEB_UTIL] - percent_of_jobs(&figures->list, card->uuid), 0);
	if (card->slice < 0)
		ll_web_history_add(history, now_s, card->uuid, percent);
	for (size_t k = 0; k < figures->sensed.drained_count; k++) {
		if (figures->sensed.drained[k].index == card->index)
			drained = *figures->sensed.drained[k].reason ? figures->sensed.drained[k].reason : "operator";
	}
	return json_pack("{s:o, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:s?, s:b, s:o}", "card",
			 card_label(card->index, card->slice), "name", card->name, "uuid", card->uuid, "util_percent",
			 real(percent[LL_WEB_UTIL], 10), "synthetic", is_synthetic, "synthetic_percent",
			 real(percent[LL_WEB_SYNTHETIC], 10), "memory_bytes",
			 number_or_null(is_fresh && card->memory_bytes, card->used_bytes), "memory_total_bytes",
			 number_or_null(card->memory_bytes, card->memory_bytes), "idle_seconds",
			 number_or_null(is_fresh && card->watched_ns, card->idle_ns / LL_NS_PER_S), "drained", drained,
			 "lost", (card->flags & LL_SENSE_IS_LOST) != 0, "xid", number_or_null(card->xid, card->xid));
}

/* ---- tenants ---- */

static const struct ll_message_policy_tenant *policy_of(const struct ll_metrics_sums *sums, const char *tenant)
{
	for (size_t i = 0; i < sums->policy_count; i++) {
		if (strcmp(sums->policies[i].name, tenant) == 0)
			return &sums->policies[i];
	}
	return NULL;
}

/* part: NULL for a tenant without a guarantee and a limit. */
static json_t *tenant_row(const struct ll_metrics_sums *sums, const struct ll_message_metrics_tenant *tenant,
			  const struct ll_message_policy_part *part)
{
	static const struct ll_message_policy_part none = {.guaranteed_cards = UINT64_MAX,
							   .guaranteed_memory_bytes = UINT64_MAX,
							   .guaranteed_compute_permille = UINT64_MAX,
							   .limit_cards = UINT64_MAX,
							   .limit_memory_bytes = UINT64_MAX,
							   .limit_compute_permille = UINT64_MAX};
	const struct ll_message_policy_tenant *policy = policy_of(sums, tenant->name);
	const struct ll_message_policy_part *row = part ? part : &none;
	bool has_cards = row->is_known && row->gives_cards, has_parts = row->is_known && !row->gives_cards;
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o}", "tenant",
			 text_or_null(tenant->name), "group", text_or_null(row->group), "weight",
			 number_or_null(policy, policy ? policy->weight : 0), "guaranteed_cards",
			 number_or_null(true, row->guaranteed_cards), "used_cards",
			 number_or_null(has_cards, row->used_cards), "limit_cards",
			 number_or_null(true, row->limit_cards), "guaranteed_memory_bytes",
			 number_or_null(true, row->guaranteed_memory_bytes), "used_memory_bytes",
			 number_or_null(has_parts, row->used_memory_bytes), "limit_memory_bytes",
			 number_or_null(true, row->limit_memory_bytes), "guaranteed_compute_percent",
			 percent_or_null(true, row->guaranteed_compute_permille), "used_compute_percent",
			 percent_or_null(has_parts, row->used_compute_permille), "limit_compute_percent",
			 percent_or_null(true, row->limit_compute_permille), "running", (int)tenant->running, "waiting",
			 (int)tenant->waiting, "gpu_seconds",
			 real(sums->end.accounts == LL_METRICS_ACCOUNTS_GOOD ? tenant->used_s : (double)NAN, 10));
}

static json_t *tenant_rows(const struct ll_metrics_sums *sums)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < sums->tenant_count; i++) {
		const struct ll_message_metrics_tenant *tenant = &sums->tenants[i];
		size_t before = json_array_size(rows);
		for (size_t k = 0; k < sums->part_count; k++) {
			if (strcmp(sums->parts[k].tenant, tenant->name) == 0)
				json_array_append_new(rows, tenant_row(sums, tenant, &sums->parts[k]));
		}
		if (json_array_size(rows) == before)
			json_array_append_new(rows, tenant_row(sums, tenant, NULL));
	}
	return rows;
}

/* ---- jobs ---- */

static json_t *job_row(const struct ll_figures *figures, const struct ll_message_card_row *row)
{
	static const char *const shared[] = {"", "alone", "slices", "visits", "space", "windows"};
	static const char *const classes[] = {"normal", "high", "low"};
	const struct ll_message_job_row *job = ll_list_job(&figures->list, row->job_number);
	json_t *card = NULL;
	uint64_t away_bytes = 0;
	if (!job)
		return NULL;
	for (size_t i = 0; i < figures->sensed.card_count && !card; i++) {
		if (strcmp(figures->sensed.cards[i].uuid, row->uuid) == 0)
			card = card_label(figures->sensed.cards[i].index, figures->sensed.cards[i].slice);
	}
	for (size_t i = 0; i < figures->list.claim_count; i++) {
		const struct ll_message_claim_row *claim = &figures->list.claims[i];
		if (claim->job_number == row->job_number && strcmp(claim->uuid, row->uuid) == 0)
			away_bytes += claim->away_bytes;
	}
	const struct ll_limits *limits = &job->job.limits;
	return json_pack(
	    "{s:I, s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o}", "job", (json_int_t)job->number,
	    "user", user_name(job->job.uid), "tenant", text_or_null(job->tenant), "name", job->job.tenant, "card",
	    card ? card : json_null(), "memory_bytes", (json_int_t)row->used_bytes, "memory_limit_bytes",
	    number_or_null(limits->memory_bytes, limits->memory_bytes), "away_bytes",
	    number_or_null(away_bytes, away_bytes), "share_percent",
	    percent_or_null(row->recent_ns, row->recent_permille), "compute_limit_percent",
	    percent_or_null(limits->compute_permille, limits->compute_permille), "class",
	    limits->priority < sizeof classes / sizeof *classes ? classes[limits->priority] : NULL, "by",
	    text_or_null(shared[row->shared]), "gpu_seconds", real((double)row->gpu_time_ns / (double)LL_NS_PER_S, 10),
	    "command", text_or_null(job->job.command));
}

/* ---- the queue ---- */

/* As `queue list --json` has it. */
static json_t *why_of(const struct ll_queue_why_told *why)
{
	static const char *const rules[] = {NULL,       "user-limit", "tenant-limit", "guarantee", "room",
					    "reserved", "out-of-use", "order",        "high"};
	const char *rule = why->rule < sizeof rules / sizeof *rules ? rules[why->rule] : NULL;
	if (!rule)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o}", "rule", rule, "of", text_or_null(why->of), "cards",
			 text_or_null(why->cards), "job", number_or_null(why->number, why->number));
}

static json_t *queue_row(const struct ll_message_queue_row *row)
{
	bool has_place = row->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED);
	const char *state = row->flags & LL_QUEUE_IS_RUNNING    ? "running"
			    : row->flags & LL_QUEUE_IS_ADMITTED ? "starting"
			    : row->flags & LL_QUEUE_IS_PAUSED   ? "paused"
			    : row->flags & LL_QUEUE_IS_AFTER    ? "after"
								: "waiting";
	json_t *cards = json_array();
	for (uint32_t i = 0; has_place && i < row->place_count; i++)
		json_array_append_new(cards, card_label(row->places[i].index, row->places[i].slice));
	return json_pack("{s:I, s:o, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "number",
			 (json_int_t)row->number, "position", number_or_null(row->position, row->position), "state",
			 state, "user", user_name(row->uid), "tenant", text_or_null(row->tenant), "name",
			 text_or_null(row->name), "card_count", (int)row->card_count, "cards", cards, "memory_bytes",
			 number_or_null(row->memory_bytes, row->memory_bytes), "compute_percent",
			 percent_or_null(row->compute_permille, row->compute_permille), "since",
			 (json_int_t)row->since_s, "start", number_or_null(!has_place && row->start_s, row->start_s),
			 "end", number_or_null(has_place && row->end_s, row->end_s), "why",
			 has_place ? json_null() : why_of(&row->why), "command", text_or_null(row->command));
}

static json_t *window_row(const struct ll_message_queue_window *window)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "cards", cards_of(window->card_mask), "tenant",
			 text_or_null(window->tenant), "reason", text_or_null(window->name), "from",
			 number_or_null(window->begin_s, window->begin_s), "to",
			 number_or_null(window->end_s, window->end_s));
}

/* ---- decisions ---- */

/* Steps that change how a card is shared: a measurement's result, and what a class's lever holds back. */
static json_t *decision_row(const struct ll_message_sense_card *card, const struct ll_message_decision *row,
			    int64_t now_s)
{
	static const char *const reasons[] = {
	    [LL_REGIME_NO_REASON] = "no_reason", [LL_REGIME_NOT_MEASURED] = "not_measured",
	    [LL_REGIME_MEASURES] = "measures",   [LL_REGIME_PAYS] = "pays",
	    [LL_REGIME_PAYS_NOT] = "pays_not",   [LL_REGIME_TOO_DEEP] = "too_deep",
	    [LL_REGIME_TOO_MANY] = "too_many",
	};
	bool is_result = row->moves & (LL_REGIME_MOVE_VERDICT | LL_REGIME_MOVE_GIVES_UP) ||
			 (row->moves & LL_REGIME_MOVE_OUTPUT && row->why != LL_REGIME_MEASURES);
	if (!row->lever && !is_result)
		return NULL;
	bool is_slices = row->lever == LL_LEVER_MOVE_SLICES;
	return json_pack(
	    "{s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:i}", "at",
	    (json_int_t)(now_s - (int64_t)(row->age_ns / LL_NS_PER_S)), "card", card_label(card->index, card->slice),
	    "by",
	    row->lever                              ? "classes"
	    : row->flags & LL_DECISION_GIVES_VISITS ? "visits"
						    : "slices",
	    "reason",
	    row->lever || row->why >= sizeof reasons / sizeof *reasons ? json_null() : json_string(reasons[row->why]),
	    "gain_percent",
	    real(!row->lever && row->moves & LL_REGIME_MOVE_VERDICT ? 100 * expm1(row->gain) : (double)NAN, 10),
	    "class", text_or_null(row->lever ? ll_priority_name((enum ll_priority)row->rank) : ""), "held_percent",
	    real(row->lever && !is_slices ? 100 * row->part : (double)NAN, 1), "slice_ms",
	    real(is_slices ? row->slice_us / 1000.0 : (double)NAN, 100), "jobs", (int)row->jobs);
}

/* The last ones of each card. */
static json_t *decision_rows(const struct ll_figures *figures, int64_t now_s)
{
	json_t *rows = json_array();
	for (size_t i = 0; figures->decisions && i < figures->sensed.card_count; i++) {
		const struct ll_figures_decisions *of_card = &figures->decisions[i];
		int shown = 0;
		for (size_t k = of_card->count; k-- > 0 && shown < DECISIONS_MOST;) {
			json_t *row = decision_row(&figures->sensed.cards[i], &of_card->rows[k], now_s);
			shown += row != NULL;
			if (row)
				json_array_append_new(rows, row);
		}
	}
	return rows;
}

/* ---- all ---- */

json_t *ll_web_data(const struct ll_figures *figures, const struct ll_exporter_history *readings,
		    struct ll_web_history *history, const char *why, int64_t now_s)
{
	char host[64] = "";
	json_t *cards = json_array(), *jobs = json_array(), *queue = json_array(), *windows = json_array();
	uint64_t silent_ns = figures->sensed.end.silent_ns;
	gethostname(host, sizeof host - 1);
	for (size_t i = 0; i < figures->sensed.card_count; i++)
		json_array_append_new(cards, card_row(figures, i, readings, history, now_s));
	for (size_t i = 0; i < figures->list.card_count && json_array_size(jobs) < LL_EXPORTER_JOBS; i++) {
		json_t *row = job_row(figures, &figures->list.cards[i]);
		if (row)
			json_array_append_new(jobs, row);
	}
	for (size_t i = 0; i < figures->queued_count && i < QUEUE_MOST; i++)
		json_array_append_new(queue, queue_row(&figures->queued[i]));
	for (size_t i = 0; i < figures->window_count && i < QUEUE_MOST; i++)
		json_array_append_new(windows, window_row(&figures->windows[i]));
	return json_pack("{s:i, s:I, s:i, s:s, s:s, s:b, s:s?, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
			 1, "at", (json_int_t)now_s, "every_seconds", (int)(LL_WEB_EVERY_NS / LL_NS_PER_S), "host",
			 host, "version", LOADLINE_VERSION, "up", (int)figures->is_up, "error", why, "hides_others",
			 (int)figures->sums.end.hides_others, "sensor_silent_seconds",
			 number_or_null(silent_ns != UINT64_MAX, silent_ns / LL_NS_PER_S), "cards", cards, "tenants",
			 tenant_rows(&figures->sums), "jobs", jobs, "queue", queue, "windows", windows, "decisions",
			 decision_rows(figures, now_s), "history", ll_web_history_json(history));
}
