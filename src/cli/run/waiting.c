#include "cli/run/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/rows.h"
#include "cli/common/user.h"

enum { USER_SIZE = 64 };

static void add_job(struct ll_strbuf *text, const struct ll_queue_waits *waits)
{
	if (!waits->number) {
		ll_strbuf_adds(text, _("waits for another user's job"));
		return;
	}
	ll_strbuf_addf(text,
		       waits->kind == LL_QUEUE_WAITS_AFTER ? _("waits for the end of job %" PRIu64)
							   : _("waits for job %" PRIu64),
		       waits->number);
	if (waits->uid != UINT32_MAX) {
		char user[USER_SIZE];
		ll_user_name(waits->uid, user, sizeof user);
		ll_strbuf_addf(text, _(" of %s"), user);
	}
	if (!waits->until_s)
		return;
	ll_strbuf_adds(text, _(" (until "));
	ll_moment_add(text, waits->until_s);
	ll_strbuf_addc(text, ')');
}

/* ---- by which rule ---- */

static void add_amount(struct ll_strbuf *text, const struct ll_queue_why_told *why, uint64_t amount)
{
	unsigned count = amount < UINT32_MAX ? (unsigned)amount : UINT32_MAX;
	switch (why->what) {
	case LL_QUEUE_WHAT_MEMORY:
		ll_bytes_add(text, amount);
		break;
	case LL_QUEUE_WHAT_COMPUTE:
		ll_strbuf_addf(text, "%g %%", (double)amount / 10.0);
		break;
	case LL_QUEUE_WHAT_JOBS:
		ll_strbuf_addf(text, ll_translate_count("%u job", "%u jobs", count), count);
		break;
	default:
		ll_strbuf_addf(text, ll_translate_count("%u card", "%u cards", count), count);
		break;
	}
}

/* Adds an amount in the format, which has one %s. Cards and jobs are named once: *names_unit is then cleared. */
static void add_figure(struct ll_strbuf *text, const struct ll_queue_why_told *why, bool *names_unit,
		       const char *format, uint64_t amount)
{
	LL_SCOPE_STRBUF struct ll_strbuf figure = LL_STRBUF_INIT;
	bool is_count = why->what != LL_QUEUE_WHAT_MEMORY && why->what != LL_QUEUE_WHAT_COMPUTE;
	if (amount == LL_QUEUE_NOT_TOLD)
		return;
	if (is_count && !*names_unit)
		ll_strbuf_addf(&figure, "%" PRIu64, amount);
	else
		add_amount(&figure, why, amount);
	*names_unit = false;
	ll_strbuf_addf(text, format, figure.buf);
}

static void add_times(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	if (why->begin_s) {
		ll_strbuf_adds(text, _(" from "));
		ll_moment_add(text, why->begin_s);
	}
	if (why->end_s) {
		ll_strbuf_adds(text, _(" to "));
		ll_moment_add(text, why->end_s);
	}
}

static void add_limit(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	if (why->rule == LL_QUEUE_WHY_USER_LIMIT)
		ll_strbuf_addf(text, _("limit of each user of %s"), why->of);
	else
		ll_strbuf_addf(text, _("limit of tenant %s on %s"), why->of, why->cards);
	add_figure(text, why, &names_unit, _(": %s"), why->most);
	add_figure(text, why, &names_unit, _(", %s in use"), why->used);
	add_figure(text, why, &names_unit, _(", %s wanted"), why->wanted);
}

static void add_guarantee(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	if (why->of[0])
		ll_strbuf_addf(text, _("guarantee of %s on %s"), why->of, why->cards);
	else
		ll_strbuf_addf(text, _("guarantee of others on %s"), why->cards);
	add_figure(text, why, &names_unit, _(": %s kept"), why->used);
	add_figure(text, why, &names_unit, _(", %s left"), why->left);
	add_figure(text, why, &names_unit, _(", %s wanted"), why->wanted);
}

static void add_room(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	ll_strbuf_addf(text,
		       why->what == LL_QUEUE_WHAT_MEMORY    ? _("no memory on the allowed cards of %s")
		       : why->what == LL_QUEUE_WHAT_COMPUTE ? _("no compute on the allowed cards of %s")
							    : _("too few free cards of %s"),
		       why->cards);
	add_figure(text, why, &names_unit, _(": %s wanted"), why->wanted);
	add_figure(text, why, &names_unit, _(", %s free"), why->left);
}

static void add_order(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	char user[USER_SIZE];
	if (!why->number) {
		ll_strbuf_adds(text, _("fair order: another user's job goes first"));
		return;
	}
	ll_user_name(why->uid, user, sizeof user);
	ll_strbuf_addf(text, _("fair order: job %" PRIu64 " of %s goes first"), why->number, user);
	if (!why->begin_s)
		return;
	ll_strbuf_adds(text, _(", about "));
	ll_moment_add(text, why->begin_s);
}

static void add_why(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	switch (why->rule) {
	case LL_QUEUE_WHY_USER_LIMIT:
	case LL_QUEUE_WHY_TENANT_LIMIT:
		add_limit(text, why);
		break;
	case LL_QUEUE_WHY_GUARANTEE:
		add_guarantee(text, why);
		break;
	case LL_QUEUE_WHY_ROOM:
		add_room(text, why);
		break;
	case LL_QUEUE_WHY_RESERVED:
		ll_strbuf_addf(text, _("cards of %s are reserved for tenant %s"), why->cards, why->of);
		add_times(text, why);
		break;
	case LL_QUEUE_WHY_OUT_OF_USE:
		ll_strbuf_addf(text, _("cards of %s are drained or in maintenance"), why->cards);
		if (why->of[0])
			ll_strbuf_addf(text, " (%s)", why->of);
		add_times(text, why);
		break;
	case LL_QUEUE_WHY_ORDER:
		add_order(text, why);
		break;
	default:
		ll_strbuf_addf(text, _("class high is for the guarantee of %s, which its other jobs have"), why->of);
		break;
	}
}

static bool is_known(const struct ll_queue_why_told *why)
{
	return why->rule && why->rule <= LL_QUEUE_WHY_HIGH;
}

static void add_waits(struct ll_strbuf *text, const struct ll_queue_waits *waits)
{
	switch (waits->kind) {
	case LL_QUEUE_WAITS_FOR_JOB:
	case LL_QUEUE_WAITS_AFTER:
		add_job(text, waits);
		break;
	case LL_QUEUE_WAITS_FOR_OPERATOR:
		ll_strbuf_adds(text, _("paused by an operator"));
		break;
	case LL_QUEUE_WAITS_FOR_OWNER:
		ll_strbuf_adds(text, _("paused by its user"));
		break;
	case LL_QUEUE_WAITS_FOR_UNUSED:
		ll_strbuf_adds(text, _("waits, because a place of this user was not used"));
		break;
	default:
		ll_strbuf_adds(text, _("waits for cards that are drained, reserved or guaranteed to others"));
		break;
	}
}

void ll_run_waiting_add_why(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			    const struct ll_queue_why_told *why)
{
	if (is_known(why))
		add_why(text, why);
	else
		add_waits(text, waits);
}

void ll_run_waiting_add(struct ll_strbuf *text, const struct ll_queue_waits *waits, const struct ll_queue_why_told *why)
{
	if (is_known(why) && waits->kind == LL_QUEUE_WAITS_FOR_JOB) {
		add_job(text, waits);
		ll_strbuf_adds(text, ": ");
	}
	ll_run_waiting_add_why(text, waits, why);
}

void ll_run_waiting_add_start(struct ll_strbuf *text, uint64_t start_s, uint32_t untimed)
{
	if (!start_s) {
		ll_strbuf_adds(text, _("start unknown"));
	} else {
		ll_strbuf_adds(text, _("starts about "));
		ll_moment_add(text, start_s);
	}
	if (untimed)
		ll_strbuf_addf(
		    text,
		    ll_translate_count(" (%u job ahead has no --time)", " (%u jobs ahead have no --time)", untimed),
		    untimed);
}

static void print_line(struct ll_run_waiting *waiting, const char *line)
{
	bool is_terminal = isatty(STDERR_FILENO);
	fprintf(stderr, is_terminal ? "\r\033[Kloadline: %s" : "loadline: %s\n", line);
	fflush(stderr);
	waiting->is_unended = is_terminal;
	waiting->is_shown = true;
}

static bool says_new(const struct ll_run_waiting *waiting, const struct ll_message_queued *queued)
{
	const struct ll_message_queued *last = &waiting->last;
	return last->position != queued->position || last->waits.number != queued->waits.number ||
	       last->waits.kind != queued->waits.kind || last->why.rule != queued->why.rule ||
	       last->start_s / 60 != queued->start_s / 60;
}

void ll_run_waiting_show(struct ll_run_waiting *waiting, const struct ll_message_queued *queued)
{
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	ll_still_end(&waiting->still);
	if (waiting->is_shown && !says_new(waiting, queued) && !isatty(STDERR_FILENO))
		return;
	ll_strbuf_addf(&line, _("job %" PRIu64 " is number %" PRIu32 " in the queue; "), queued->number,
		       queued->position);
	ll_run_waiting_add(&line, &queued->waits, &queued->why);
	ll_strbuf_adds(&line, "; ");
	ll_run_waiting_add_start(&line, queued->start_s, queued->untimed);
	if (!line.failed)
		print_line(waiting, line.buf);
	waiting->last = *queued;
}

void ll_run_waiting_clear(struct ll_run_waiting *waiting)
{
	if (waiting->is_unended)
		fputs("\r\033[K", stderr);
	waiting->is_unended = false;
}

void ll_run_waiting_end(struct ll_run_waiting *waiting, const struct ll_message_admitted *admitted)
{
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	bool has_waited = waiting->is_shown;
	ll_run_waiting_clear(waiting);
	if (!has_waited)
		return;
	ll_strbuf_addf(&line, _("job %" PRIu64 " starts"), admitted->number);
	if (admitted->end_s) {
		ll_strbuf_adds(&line, _("; its time ends "));
		ll_moment_add(&line, admitted->end_s);
	}
	if (!line.failed)
		fprintf(stderr, "loadline: %s\n", line.buf);
}
