#include "mps/exchange.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "mps/answers.h"
#include "mps/child.h"
#include "mps/environment.h"
#include "mps/place.h"

enum { COMMAND_SIZE = 256, QUOTE = 160 };

#define BUSY_PAUSE_NS (20 * LL_NS_PER_MS)

static void trim_blank_lines(struct ll_strbuf *text)
{
	while (text->length && strchr(" \t\r\n", text->buf[text->length - 1]))
		text->buf[--text->length] = '\0';
}

/* Returns the first line of an answer: errors quote one line. */
static int first_line(const char *text)
{
	int length = (int)strcspn(text, "\r\n");
	return length < QUOTE ? length : QUOTE;
}

static int judge_answer(const struct ll_mps_place *place, const char *command, const struct ll_strbuf *answer,
			int status, struct ll_err *err)
{
	int verb = (int)strcspn(command, " ");
	switch (ll_mps_answer_kind(answer->buf)) {
	case LL_MPS_ANSWER_NO_DAEMON:
		return ll_err_set(err, -ECONNREFUSED, "no MPS daemon at %s", place->pipe);
	case LL_MPS_ANSWER_UNKNOWN:
		return ll_err_set(err, -EOPNOTSUPP, "MPS: this daemon does not know '%.*s'", verb, command);
	case LL_MPS_ANSWER_BUSY:
		return ll_err_set(err, -EAGAIN, "MPS: %.*s: the daemon at %s listens to another caller", verb, command,
				  place->pipe);
	case LL_MPS_ANSWER_DENIED:
		return ll_err_set(err, -EPERM, "MPS: %.*s: %.*s", verb, command, first_line(answer->buf), answer->buf);
	case LL_MPS_ANSWER_REFUSED:
		return ll_err_set(err, -EIO, "MPS: %.*s: %.*s", verb, command, first_line(answer->buf), answer->buf);
	case LL_MPS_ANSWER_PLAIN:
		break;
	}
	if (status)
		return ll_err_set(err, -EIO, "MPS: %.*s: exit status %d: %.*s", verb, command, status,
				  first_line(answer->buf), answer->buf);
	return 0;
}

static int ask_once(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *answer,
		    const char *command, struct ll_err *err)
{
	char line[COMMAND_SIZE + 2];
	const char *words[] = {place->program, NULL};
	struct ll_mps_variables variables;
	int status = 0;
	int rc = ll_mps_place_need_program(place, err);
	if (!rc)
		rc = ll_mps_variables_make(place, NULL, &variables, err);
	if (rc)
		return rc;
	snprintf(line, sizeof line, "%s\n", command);
	ll_strbuf_reset(answer);
	struct ll_mps_child child = {.words = words,
				     .environment = (const char *const *)variables.list,
				     .input = line,
				     .deadline_ns = deadline_ns};
	rc = ll_mps_child_run(&child, answer, &status, err);
	ll_mps_variables_fini(&variables);
	if (rc == -ETIMEDOUT) {
		ll_err_set(err, rc, "MPS: %.*s: no answer in time", (int)strcspn(command, " "), command);
		return ll_err_hint(err, "the daemon at %.100s hangs: `loadline mps stop --force` ends it", place->pipe);
	}
	if (!rc && answer->failed)
		rc = ll_err_set(err, -ENOMEM, "MPS: %s", strerror(ENOMEM));
	if (rc)
		return rc;
	trim_blank_lines(answer);
	return judge_answer(place, command, answer, status, err);
}

static int ask_in_turn(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *answer,
		       const char *command, struct ll_err *err)
{
	struct ll_err why = {0};
	LL_SCOPE_CLOSE int turn = -1; /* without a lock, for instance because the folder is another user's, the daemon
					 may refuse the command while it listens to others */
	int rc = ll_mps_lock(place->log, deadline_ns, &turn, &why) == -EAGAIN ? -EAGAIN : 0;
	while (!rc) {
		rc = ask_once(place, deadline_ns, answer, command, &why);
		if (rc != -EAGAIN || ll_now_ns() >= deadline_ns)
			break;
		rc = 0;
		ll_sleep_until_ns(ll_now_ns() + BUSY_PAUSE_NS);
	}
	if (rc && err)
		*err = why;
	return rc;
}

static int format_command(char command[COMMAND_SIZE], const char *fmt, va_list ap, struct ll_err *err)
{
	int n = vsnprintf(command, COMMAND_SIZE, fmt, ap);
	if (n < 0 || n >= COMMAND_SIZE || strchr(command, '\n'))
		return ll_err_set(err, -EINVAL, "MPS: '%.60s...' is no command", command);
	return 0;
}

int ll_mps_ask(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer, struct ll_err *err,
	       const char *fmt, ...)
{
	char command[COMMAND_SIZE];
	va_list ap;
	va_start(ap, fmt);
	int rc = format_command(command, fmt, ap, err);
	va_end(ap);
	return rc ? rc : ask_in_turn(place, deadline_ns, ret_answer, command, err);
}

static bool is_agreed(const char *answer, double wanted)
{
	double percent;
	uint64_t bytes;
	if (!*answer || ll_mps_answer_is_done(answer))
		return true;
	if (wanted < 0)
		return false;
	return (ll_mps_answer_percent(answer, &percent) && fabs(percent - wanted) < 0.5) ||
	       (ll_mps_answer_bytes(answer, &bytes) && ll_mps_answer_same_bytes(bytes, (uint64_t)wanted));
}

int ll_mps_order(const struct ll_mps_place *place, uint64_t deadline_ns, double wanted, struct ll_err *err,
		 const char *fmt, ...)
{
	char command[COMMAND_SIZE];
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	int rc = format_command(command, fmt, ap, err);
	va_end(ap);
	if (!rc)
		rc = ask_in_turn(place, deadline_ns, &answer, command, err);
	if (!rc && !is_agreed(answer.buf, wanted))
		rc = ll_err_set(err, -EIO, "MPS: %s: answered '%.*s'", command, first_line(answer.buf), answer.buf);
	return rc;
}
