#include "cli/run/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/user.h"

enum { MOMENT_SIZE = 32, USER_SIZE = 64 };

void ll_run_waiting_add_moment(struct ll_strbuf *text, uint64_t seconds)
{
	char moment[MOMENT_SIZE] = "";
	time_t at = (time_t)seconds, now = time(NULL);
	struct tm then, today;
	if (!localtime_r(&at, &then) || !localtime_r(&now, &today))
		return;
	bool is_today = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
	strftime(moment, sizeof moment, is_today ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
	ll_strbuf_adds(text, moment);
}

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
	ll_run_waiting_add_moment(text, waits->until_s);
	ll_strbuf_addc(text, ')');
}

void ll_run_waiting_add(struct ll_strbuf *text, const struct ll_queue_waits *waits)
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
	default:
		ll_strbuf_adds(text, _("waits for cards that are drained, reserved or guaranteed to others"));
		break;
	}
}

void ll_run_waiting_add_start(struct ll_strbuf *text, uint64_t start_s, uint32_t untimed)
{
	if (!start_s) {
		ll_strbuf_adds(text, _("start unknown"));
	} else {
		ll_strbuf_adds(text, _("starts about "));
		ll_run_waiting_add_moment(text, start_s);
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
	       last->waits.kind != queued->waits.kind || last->start_s / 60 != queued->start_s / 60;
}

void ll_run_waiting_show(struct ll_run_waiting *waiting, const struct ll_message_queued *queued)
{
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	ll_still_end(&waiting->still);
	if (waiting->is_shown && !says_new(waiting, queued) && !isatty(STDERR_FILENO))
		return;
	ll_strbuf_addf(&line, _("job %" PRIu64 " is number %" PRIu32 " in the queue; "), queued->number,
		       queued->position);
	ll_run_waiting_add(&line, &queued->waits);
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
		ll_run_waiting_add_moment(&line, admitted->end_s);
	}
	if (!line.failed)
		fprintf(stderr, "loadline: %s\n", line.buf);
}
