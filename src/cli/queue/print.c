/* The rows of the queue as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/queue/queue.h"
#include "cli/run/run.h"

enum { USER_SIZE = 64, PLACES_SIZE = 160, MASK_CARDS = 64 };

/* A row as people and scripts read it. */
struct line {
	struct ll_message_queue_row row;
	uint64_t next_start_s;
	bool has_time, is_lent;
	const char *state, *shown_name, *why;
	json_t *places, *waits, *rule;
	char user[USER_SIZE], cards[PLACES_SIZE];
	struct ll_strbuf why_text;
};

/* The order of the keys is that of earlier versions. */
static const struct ll_row_column columns[] = {
    {.heading = N_("job"), .key = "number", LL_ROW_NUMBER(struct line, row.number)},
    {.key = "job_number", LL_ROW_NUMBER(struct line, row.job_number), .may_lack = true},
    {.key = "state", LL_ROW_TEXT(struct line, state)},
    {.key = "uid", LL_ROW_NUMBER(struct line, row.uid)},
    {.heading = N_("user"), .key = "user", LL_ROW_CHARS(struct line, user), .least = 6},
    {.heading = N_("tenant"), .key = "tenant", LL_ROW_CHARS(struct line, row.tenant), .least = 6},
    {.key = "command", LL_ROW_CHARS(struct line, row.command), .may_lack = true},
    {.heading = N_("name"), LL_ROW_TEXT(struct line, shown_name), .may_lack = true, .least = 6, .may_go = true},
    {.key = "position", LL_ROW_NUMBER(struct line, row.position), .may_lack = true},
    {.key = "card_count", LL_ROW_NUMBER(struct line, row.card_count)},
    {.heading = N_("cards"), LL_ROW_CHARS(struct line, cards), .least = 8},
    {.heading = N_("memory"), .key = "memory_bytes", LL_ROW_BYTES(struct line, row.memory_bytes), .may_lack = true},
    {.key = "compute_percent", LL_ROW_PERCENT(struct line, row.compute_permille), .decimals = 1, .may_lack = true},
    {.key = "time_seconds", LL_ROW_SECONDS(struct line, row.time_ns), .may_lack = true},
    {.key = "has_time", LL_ROW_FLAG(struct line, has_time)},
    {.key = "untimed_ahead", LL_ROW_NUMBER(struct line, row.untimed)},
    {.heading = N_("state"), LL_ROW_TEXT(struct line, state)},
    {.heading = N_("since"), .key = "since", LL_ROW_MOMENT(struct line, row.since_s), .may_lack = true},
    {.key = "start", LL_ROW_MOMENT(struct line, row.start_s), .may_lack = true},
    {.heading = N_("start"), LL_ROW_MOMENT(struct line, next_start_s), .may_lack = true},
    {.heading = N_("end"), .key = "end", LL_ROW_MOMENT(struct line, row.end_s), .may_lack = true, .may_go = true},
    {.key = "cards", LL_ROW_JSON(struct line, places)},
    {.key = "waits_for", LL_ROW_JSON(struct line, waits)},
    {.heading = N_("why it waits"), LL_ROW_TEXT(struct line, why), .may_lack = true, .least = 40, .is_second = true},
    {.key = "why", LL_ROW_JSON(struct line, rule)},
    {.key = "name", LL_ROW_CHARS(struct line, row.name), .may_lack = true},
    {.key = "lent", LL_ROW_FLAG(struct line, is_lent)},
    {.key = "recalled_for", LL_ROW_NUMBER(struct line, row.recalled_for), .may_lack = true},
    LL_ROW_END,
};

static bool has_place(const struct ll_message_queue_row *row)
{
	return row->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED);
}

static const char *state_of(const struct ll_message_queue_row *row)
{
	return row->flags & LL_QUEUE_IS_RECALLED   ? "recalled"
	       : row->flags & LL_QUEUE_IS_RESERVED ? "reserved"
	       : row->flags & LL_QUEUE_IS_LENT     ? "borrowed"
	       : row->flags & LL_QUEUE_IS_RUNNING  ? "running"
	       : row->flags & LL_QUEUE_IS_ADMITTED ? "starting"
	       : row->flags & LL_QUEUE_IS_PAUSED   ? "paused"
	       : row->flags & LL_QUEUE_IS_AFTER    ? "after"
						   : "waiting";
}

/* ---- text ---- */

/* A slice is written as in the configuration: "7:0". */
static void write_places(const struct ll_message_queue_row *row, char *ret_text, size_t size)
{
	size_t used = 0;
	ret_text[0] = '\0';
	if (!has_place(row)) {
		snprintf(ret_text, size, _("%u wanted"), row->card_count);
		return;
	}
	for (uint32_t i = 0; i < row->place_count && used < size; i++) {
		used += (size_t)snprintf(ret_text + used, size - used, "%s%u", i ? "," : "", row->places[i].index);
		if (row->places[i].slice >= 0 && used < size)
			used += (size_t)snprintf(ret_text + used, size - used, ":%d", row->places[i].slice);
	}
}

static void add_cards(struct ll_strbuf *text, uint64_t mask)
{
	const char *between = "";
	for (unsigned index = 0; index < MASK_CARDS; index++) {
		if (!(mask >> index & 1))
			continue;
		ll_strbuf_addf(text, "%s%u", between, index);
		between = ",";
	}
}

static void add_window(struct ll_strbuf *text, const struct ll_message_queue_window *window)
{
	ll_strbuf_adds(text, _("card "));
	add_cards(text, window->card_mask);
	if (window->tenant[0])
		ll_strbuf_addf(text, _(": reserved for tenant %s"), window->tenant);
	else
		ll_strbuf_adds(text, _(": gets no jobs"));
	if (window->name[0])
		ll_strbuf_addf(text, " (%s)", window->name);
	if (window->begin_s) {
		ll_strbuf_adds(text, _(" from "));
		ll_moment_add(text, window->begin_s);
	}
	if (window->end_s) {
		ll_strbuf_adds(text, _(" to "));
		ll_moment_add(text, window->end_s);
	}
	ll_strbuf_addc(text, '\n');
}

/* ---- JSON ---- */

static json_t *cards_of(uint64_t mask)
{
	json_t *cards = json_array();
	for (unsigned index = 0; index < MASK_CARDS; index++) {
		if (mask >> index & 1)
			json_array_append_new(cards, json_integer(index));
	}
	return cards;
}

/* A card is a number, a slice the text "7:0". */
static json_t *places_of(const struct ll_message_queue_row *row)
{
	json_t *places = json_array();
	for (uint32_t i = 0; i < row->place_count; i++) {
		const struct ll_queue_place *place = &row->places[i];
		json_array_append_new(places, place->slice < 0 ? json_integer(place->index)
							       : json_sprintf("%u:%d", place->index, place->slice));
	}
	return places;
}

static json_t *waits_of(const struct ll_message_queue_row *row)
{
	static const char *const kinds[] = {NULL, "room", "job", "after", "operator", "owner", "unused"};
	uint32_t kind = row->waits.kind < sizeof kinds / sizeof *kinds ? row->waits.kind : 0;
	if (!kind)
		return json_null();
	return json_pack(
	    "{s:s, s:o, s:o, s:o}", "kind", kinds[kind], "job", ll_json_number(row->waits.number, row->waits.number),
	    "uid", row->waits.uid == UINT32_MAX || !row->waits.number ? json_null() : json_integer(row->waits.uid),
	    "until", ll_json_number(row->waits.until_s, row->waits.until_s));
}

static json_t *amount_or_null(bool has_amount, uint64_t amount)
{
	return has_amount && amount != LL_QUEUE_NOT_TOLD ? json_integer((json_int_t)amount) : json_null();
}

static json_t *rule_of(const struct ll_queue_why_told *why)
{
	static const char *const rules[] = {NULL,       "user-limit", "tenant-limit", "guarantee", "room",
					    "reserved", "out-of-use", "order",        "high"};
	static const char *const units[] = {"cards", "memory_bytes", "compute_permille", "jobs"};
	uint32_t rule = why->rule < sizeof rules / sizeof *rules ? why->rule : 0;
	uint32_t what = why->what < sizeof units / sizeof *units ? why->what : 0;
	bool is_limit = rule == LL_QUEUE_WHY_USER_LIMIT || rule == LL_QUEUE_WHY_TENANT_LIMIT;
	bool is_kept = rule == LL_QUEUE_WHY_GUARANTEE, has_left = is_kept || rule == LL_QUEUE_WHY_ROOM;
	if (!rule)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rule", rules[rule], "of",
			 ll_json_known(*why->of, why->of), "cards", ll_json_known(*why->cards, why->cards), "unit",
			 units[what], "wanted", amount_or_null(is_limit || has_left, why->wanted), "limit",
			 amount_or_null(is_limit, why->most), "in_use", amount_or_null(is_limit, why->used), "kept",
			 amount_or_null(is_kept, why->used), "free", amount_or_null(has_left, why->left), "job",
			 ll_json_number(why->number, why->number), "from", ll_json_number(why->begin_s, why->begin_s),
			 "to", ll_json_number(why->end_s, why->end_s));
}

/* ---- lines ---- */

/* `row` outlives the line. */
static void make_line(const struct ll_message_queue_row *row, struct line *line)
{
	*line = (struct line){
	    .row = *row,
	    .next_start_s = has_place(row) ? 0 : row->start_s,
	    .has_time = row->flags & LL_QUEUE_HAS_TIME,
	    .is_lent = row->flags & LL_QUEUE_IS_LENT,
	    .state = state_of(row),
	    .shown_name = row->name[0] ? row->name : row->command,
	    .why_text = LL_STRBUF_INIT,
	};
	ll_user_name(row->uid, line->user, sizeof line->user);
	write_places(row, line->cards, sizeof line->cards);
	if (!has_place(row))
		ll_run_waiting_add_why(&line->why_text, &row->waits, &row->why);
	line->why = line->why_text.buf;
}

static bool is_user(const struct ll_message_queue_row *row, const char *user)
{
	char name[USER_SIZE], number[USER_SIZE];
	ll_user_name(row->uid, name, sizeof name);
	snprintf(number, sizeof number, "%" PRIu32, row->uid);
	return strcmp(name, user) == 0 || strcmp(number, user) == 0;
}

static bool is_wanted(const struct ll_message_queue_row *row, const struct ll_queue_filter *filter)
{
	return (!filter->user || is_user(row, filter->user)) &&
	       (!filter->tenant || strcmp(row->tenant, filter->tenant) == 0) &&
	       (!filter->state || strcmp(state_of(row), filter->state) == 0);
}

static bool has_filter(const struct ll_queue_filter *filter)
{
	return filter->user || filter->tenant || filter->state;
}

/* Those that have cards, then those that wait, in the order of the queue. */
static int by_order(const void *a, const void *b)
{
	const struct ll_message_queue_row *one = a, *other = b;
	if (one->position != other->position)
		return one->position < other->position ? -1 : 1;
	return (one->number > other->number) - (one->number < other->number);
}

int ll_queue_print_text(const struct ll_queue_rows *rows, const struct ll_queue_filter *filter, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_FREE struct line *lines = calloc(rows->job_count + 1, sizeof *lines);
	size_t count = 0;
	if (!lines)
		return ll_err_set(err, -ENOMEM, "queue: %s", strerror(ENOMEM));
	if (rows->job_count)
		qsort(rows->jobs, rows->job_count, sizeof *rows->jobs, by_order);
	for (size_t i = 0; i < rows->job_count; i++) {
		if (is_wanted(&rows->jobs[i], filter))
			make_line(&rows->jobs[i], &lines[count++]);
	}
	if (count)
		ll_rows_add_table(columns, lines, sizeof *lines, count, ll_table_terminal_width(), &text);
	for (size_t i = 0; i < rows->window_count && !has_filter(filter); i++)
		add_window(&text, &rows->windows[i]);
	if (!count)
		ll_strbuf_addf(&text, "%s\n", _("no job runs or waits"));
	while (count)
		ll_strbuf_fini(&lines[--count].why_text);
	return ll_print_text(&text, err);
}

static int print_job_json(const struct ll_message_queue_row *row, struct ll_err *err)
{
	struct line line;
	make_line(row, &line);
	line.places = places_of(row);
	line.waits = waits_of(row);
	line.rule = rule_of(&row->why);
	json_t *job = ll_row_json(columns, &line);
	ll_strbuf_fini(&line.why_text);
	return ll_json_line(job ? json_pack("{s:o}", "queued", job) : NULL, err);
}

static int print_window_json(const struct ll_message_queue_window *window, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:{s:o, s:o, s:o, s:o, s:o}}", "window", "cards", cards_of(window->card_mask),
				      "reason", ll_json_known(*window->name, window->name), "tenant",
				      ll_json_known(*window->tenant, window->tenant), "from",
				      ll_json_number(window->begin_s, window->begin_s), "to",
				      ll_json_number(window->end_s, window->end_s)),
			    err);
}

int ll_queue_print_json(const struct ll_queue_rows *rows, const struct ll_queue_filter *filter, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < rows->job_count && !rc; i++) {
		if (is_wanted(&rows->jobs[i], filter))
			rc = print_job_json(&rows->jobs[i], err);
	}
	for (size_t i = 0; i < rows->window_count && !rc && !has_filter(filter); i++)
		rc = print_window_json(&rows->windows[i], err);
	return rc;
}
