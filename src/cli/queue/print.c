/* The rows of the queue as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/json_line.h"
#include "cli/common/user.h"
#include "cli/queue/queue.h"
#include "cli/run/waiting.h"

enum { USER_SIZE = 64, MASK_CARDS = 64 };

#define GIB ((double)(UINT64_C(1) << 30))

/* ---- text ---- */

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

/* A slice is written as in the configuration: "7:0". */
static void add_places(struct ll_strbuf *text, const struct ll_message_queue_row *row)
{
	for (uint32_t i = 0; i < row->place_count; i++) {
		ll_strbuf_addf(text, "%s%u", i ? "," : "", row->places[i].index);
		if (row->places[i].slice >= 0)
			ll_strbuf_addf(text, ":%d", row->places[i].slice);
	}
}

static bool has_place(const struct ll_message_queue_row *row)
{
	return row->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED);
}

static void add_size(struct ll_strbuf *text, const struct ll_message_queue_row *row)
{
	ll_strbuf_addf(text, ll_translate_count("%u card", "%u cards", row->card_count), row->card_count);
	if (row->memory_bytes)
		ll_strbuf_addf(text, ", %.4g GiB", (double)row->memory_bytes / GIB);
	if (row->compute_permille)
		ll_strbuf_addf(text, ", %g %%", row->compute_permille / 10.0);
}

static void add_state(struct ll_strbuf *text, const struct ll_message_queue_row *row)
{
	if (!has_place(row)) {
		ll_run_waiting_add(text, &row->waits);
		ll_strbuf_adds(text, "; ");
		ll_run_waiting_add_start(text, row->start_s, row->untimed);
		return;
	}
	ll_strbuf_adds(text, row->flags & LL_QUEUE_IS_RUNNING ? _("runs on card ") : _("starts on card "));
	add_places(text, row);
	ll_strbuf_adds(text, _(" since "));
	ll_run_waiting_add_moment(text, row->since_s);
	if (!row->end_s)
		return;
	ll_strbuf_adds(text, _(", its time ends "));
	ll_run_waiting_add_moment(text, row->end_s);
}

static void print_job(const struct ll_message_queue_row *row)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	char user[USER_SIZE];
	ll_user_name(row->uid, user, sizeof user);
	if (!has_place(row))
		ll_strbuf_addf(&text, "%3" PRIu32 ". ", row->position);
	else
		ll_strbuf_adds(&text, "     ");
	ll_strbuf_addf(&text, _("job %" PRIu64 " of %s, tenant %s"), row->number, user, row->tenant);
	if (row->command[0])
		ll_strbuf_addf(&text, " (%s)", row->command);
	ll_strbuf_adds(&text, ": ");
	add_size(&text, row);
	ll_strbuf_adds(&text, "; ");
	add_state(&text, row);
	puts(text.failed ? "?" : text.buf);
}

static void print_window(const struct ll_message_queue_window *window)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_adds(&text, _("card "));
	add_cards(&text, window->card_mask);
	if (window->tenant[0])
		ll_strbuf_addf(&text, _(": reserved for tenant %s"), window->tenant);
	else
		ll_strbuf_adds(&text, _(": gets no jobs"));
	if (window->name[0])
		ll_strbuf_addf(&text, " (%s)", window->name);
	if (window->begin_s) {
		ll_strbuf_adds(&text, _(" from "));
		ll_run_waiting_add_moment(&text, window->begin_s);
	}
	if (window->end_s) {
		ll_strbuf_adds(&text, _(" to "));
		ll_run_waiting_add_moment(&text, window->end_s);
	}
	puts(text.failed ? "?" : text.buf);
}

/* Returns the waiting job of that position, for a list in the order of the queue; NULL: there is none. */
static const struct ll_message_queue_row *at_position(const struct ll_queue_rows *rows, uint32_t position)
{
	for (size_t i = 0; i < rows->job_count; i++) {
		if (!has_place(&rows->jobs[i]) && rows->jobs[i].position == position)
			return &rows->jobs[i];
	}
	return NULL;
}

/* Positions of other users' jobs may be hidden. */
static uint32_t last_position(const struct ll_queue_rows *rows)
{
	uint32_t last = 0;
	for (size_t i = 0; i < rows->job_count; i++)
		last = rows->jobs[i].position > last ? rows->jobs[i].position : last;
	return last;
}

void ll_queue_print_text(const struct ll_queue_rows *rows)
{
	uint32_t last = last_position(rows);
	for (size_t i = 0; i < rows->job_count; i++) {
		if (has_place(&rows->jobs[i]))
			print_job(&rows->jobs[i]);
	}
	for (uint32_t position = 1; position <= last; position++) {
		const struct ll_message_queue_row *row = at_position(rows, position);
		if (row)
			print_job(row);
	}
	for (size_t i = 0; i < rows->window_count; i++)
		print_window(&rows->windows[i]);
	if (!rows->job_count)
		puts(_("no job runs or waits"));
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

/* 0 is null. */
static json_t *number_or_null(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

static const char *state_of(const struct ll_message_queue_row *row)
{
	return row->flags & LL_QUEUE_IS_RUNNING    ? "running"
	       : row->flags & LL_QUEUE_IS_ADMITTED ? "starting"
	       : row->flags & LL_QUEUE_IS_PAUSED   ? "paused"
	       : row->flags & LL_QUEUE_IS_AFTER    ? "after"
						   : "waiting";
}

static json_t *waits_of(const struct ll_message_queue_row *row)
{
	static const char *const kinds[] = {NULL, "room", "job", "after", "operator", "owner"};
	uint32_t kind = row->waits.kind < sizeof kinds / sizeof *kinds ? row->waits.kind : 0;
	if (!kind)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o}", "kind", kinds[kind], "job", number_or_null(row->waits.number), "uid",
			 row->waits.uid == UINT32_MAX || !row->waits.number ? json_null()
									    : json_integer(row->waits.uid),
			 "until", number_or_null(row->waits.until_s));
}

static int print_job_json(const struct ll_message_queue_row *row, struct ll_err *err)
{
	char user[USER_SIZE];
	ll_user_name(row->uid, user, sizeof user);
	return ll_json_line(
	    json_pack(
		"{s:{s:I, s:o, s:s, s:i, s:o, s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:o}}",
		"queued", "number", (json_int_t)row->number, "job_number", number_or_null(row->job_number), "state",
		state_of(row), "uid", (int)row->uid, "user", ll_json_text(user), "tenant", row->tenant, "command",
		row->command[0] ? ll_json_text(row->command) : json_null(), "position", number_or_null(row->position),
		"card_count", (int)row->card_count, "memory_bytes", number_or_null(row->memory_bytes),
		"compute_percent", row->compute_permille ? ll_json_real(row->compute_permille / 10.0, 1) : json_null(),
		"time_seconds", row->time_ns ? ll_json_real((double)row->time_ns / 1e9, 0) : json_null(), "has_time",
		(row->flags & LL_QUEUE_HAS_TIME) != 0, "untimed_ahead", (int)row->untimed, "since",
		number_or_null(row->since_s), "start", number_or_null(row->start_s), "end", number_or_null(row->end_s),
		"cards", places_of(row), "waits_for", waits_of(row)),
	    err);
}

static int print_window_json(const struct ll_message_queue_window *window, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:{s:o, s:o, s:o, s:o, s:o}}", "window", "cards", cards_of(window->card_mask),
				      "reason", window->name[0] ? ll_json_text(window->name) : json_null(), "tenant",
				      window->tenant[0] ? ll_json_text(window->tenant) : json_null(), "from",
				      number_or_null(window->begin_s), "to", number_or_null(window->end_s)),
			    err);
}

int ll_queue_print_json(const struct ll_queue_rows *rows, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < rows->job_count && !rc; i++)
		rc = print_job_json(&rows->jobs[i], err);
	for (size_t i = 0; i < rows->window_count && !rc; i++)
		rc = print_window_json(&rows->windows[i], err);
	return rc;
}
