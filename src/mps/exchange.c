#include "mps/mps.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"

/* ---- answers ---- */

static bool contains_text(const char *text, const char *words)
{
	return strcasestr(text, words) != NULL;
}

static bool begins_with(const char *text, const char *words)
{
	return strncasecmp(text, words, strlen(words)) == 0;
}

/* Whether the first line of the answer is "Server 17 not found", with any number. */
static bool is_missing_server(const char *text)
{
	size_t length = strcspn(text, "\r\n");
	return begins_with(text, "server ") && length >= strlen("not found") &&
	       begins_with(text + length - strlen("not found"), "not found");
}

enum ll_mps_answer ll_mps_answer_kind(const char *text)
{
	/* Refusals begin with one of these. Other answers begin with a number, a UUID or a word in capitals. */
	static const char *const refusals[] = {"error", "invalid", "failed",    "cannot",      "could not", "unable",
					       "usage", "no such", "not found", "unsupported", "a user id"};
	text += strspn(text, " \t\r\n");
	if (contains_text(text, "cannot find mps control daemon"))
		return LL_MPS_ANSWER_NO_DAEMON;
	if (begins_with(text, "unknown command") || begins_with(text, "unrecognized command") ||
	    begins_with(text, "invalid command"))
		return LL_MPS_ANSWER_UNKNOWN;
	if (contains_text(text, "cannot send command"))
		return LL_MPS_ANSWER_BUSY;
	if (contains_text(text, "permission denied") || contains_text(text, "not permitted") ||
	    contains_text(text, "not authorized"))
		return LL_MPS_ANSWER_DENIED;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		if (begins_with(text, refusals[i]))
			return LL_MPS_ANSWER_REFUSED;
	}
	return is_missing_server(text) ? LL_MPS_ANSWER_REFUSED : LL_MPS_ANSWER_PLAIN;
}

int ll_mps_answer_pids(const char *text, pid_t *pids, size_t capacity)
{
	int count = 0;
	while (*(text += strspn(text, " \t\r\n"))) {
		char *end;
		long pid = strtol(text, &end, 10);
		if (end == text || pid <= 0 || !strchr(" \t\r\n", *end))
			return -1;
		if ((size_t)count < capacity)
			pids[count] = (pid_t)pid;
		count++;
		text = end;
	}
	return count;
}

enum ll_mps_status ll_mps_answer_status(const char *text)
{
	if (contains_text(text, "fault"))
		return LL_MPS_FAULT;
	if (contains_text(text, "initializing"))
		return LL_MPS_INITIALIZING;
	return contains_text(text, "active") && !contains_text(text, "inactive") ? LL_MPS_ACTIVE : LL_MPS_UNKNOWN;
}

bool ll_mps_answer_percent(const char *text, double *ret_percent)
{
	char *end;
	double percent = strtod(text, &end);
	if (end == text || !isfinite(percent) || percent < 0 || percent > 100 || (*end && !strchr("% \t\r\n", *end)))
		return false;
	*ret_percent = percent;
	return true;
}

bool ll_mps_answer_bytes(const char *text, uint64_t *ret_bytes)
{
	char *end;
	double number = strtod(text, &end);
	if (end == text || !(number >= 0 && number < 1e9))
		return false;
	double unit = 1;
	if (*end == 'G' || *end == 'g')
		unit = (double)(UINT64_C(1) << 30);
	else if (*end == 'M' || *end == 'm')
		unit = (double)(UINT64_C(1) << 20);
	else if (*end == 'K' || *end == 'k')
		unit = (double)(UINT64_C(1) << 10);
	else if (*end && !strchr(" \t\r\n", *end))
		return false;
	*ret_bytes = (uint64_t)(number * unit);
	return true;
}

bool ll_mps_answer_same_bytes(uint64_t told_bytes, uint64_t wanted_bytes)
{
	const uint64_t gib = UINT64_C(1) << 30;
	return told_bytes == wanted_bytes || (wanted_bytes >= gib && told_bytes == wanted_bytes / gib * gib);
}

bool ll_mps_answer_ps(const char **rest, struct ll_mps_client *ret_client)
{
	char line[512];
	struct ll_mps_client client = {0};
	size_t length = strcspn(*rest, "\n");
	int pid;
	int server;
	snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), *rest);
	*rest += length + ((*rest)[length] == '\n');
	_Static_assert(LL_MPS_CARD_SIZE == 96 && LL_MPS_COMMAND_SIZE == 64, "the widths below");
	int n = sscanf(line, "%d %*s %d %95s %*s %63s", &pid, &server, client.card, client.command);
	if (n < 3 || pid <= 0 || server <= 0)
		return false;
	client.pid = (pid_t)pid;
	client.server = (pid_t)server;
	*ret_client = client;
	return true;
}

bool ll_mps_answer_is_done(const char *text)
{
	text += strspn(text, " \t\r\n");
	return *text == '0' && text[1 + strspn(text + 1, " \t\r\n")] == '\0';
}

bool ll_mps_answer_is_busy(const char *text)
{
	return strstr(text, "Another client is being terminated") != NULL;
}

bool ll_mps_answer_is_gone(const char *text)
{
	static const char *const gone[] = {"201", "not found!\n1"};
	size_t length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		length--;
	size_t start = strspn(text, " \t\r\n");
	if (length == start + strlen(gone[0]) && begins_with(text + start, gone[0]))
		return true;
	return length > strlen(gone[1]) && begins_with(text + length - strlen(gone[1]), gone[1]);
}

/* ---- exchange ---- */

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
	int status = 0;
	snprintf(line, sizeof line, "%s\n", command);
	ll_strbuf_reset(answer);
	int rc = ll_mps_program_run(place, line, NULL, deadline_ns, answer, &status, err);
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

int ll_mps_ask(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer, struct ll_err *err,
	       const char *fmt, ...)
{
	char command[COMMAND_SIZE];
	struct ll_err why = {0};
	LL_SCOPE_CLOSE int turn = -1; /* without a lock, for instance because the folder is another user's, the daemon
					 may refuse the command while it listens to others */
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(command, COMMAND_SIZE, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= COMMAND_SIZE || strchr(command, '\n'))
		return ll_err_set(err, -EINVAL, "MPS: '%.60s...' is no command", command);
	int rc = ll_mps_lock(place->log, deadline_ns, &turn, &why) == -EAGAIN ? -EAGAIN : 0;
	while (!rc) {
		rc = ask_once(place, deadline_ns, ret_answer, command, &why);
		if (rc != -EAGAIN || ll_now_ns() >= deadline_ns)
			break;
		rc = 0;
		ll_sleep_until_ns(ll_now_ns() + BUSY_PAUSE_NS);
	}
	if (rc && err)
		*err = why;
	return rc;
}

/* Whether the daemon is gone or hangs, and need not be asked on. */
static bool is_final(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -ENOENT || rc == -ENOMEM;
}

int ll_mps_ask_softly(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer,
		      struct ll_err *err, const char *fmt, ...)
{
	char command[COMMAND_SIZE + 1];
	struct ll_err why = {0};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	int rc = ll_mps_ask(place, deadline_ns, ret_answer, &why, "%s", command);
	if (rc && is_final(rc)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_strbuf_reset(ret_answer);
	return 0;
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
	char command[COMMAND_SIZE + 1];
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "%s", command);
	if (!rc && !is_agreed(answer.buf, wanted))
		rc = ll_err_set(err, -EIO, "MPS: %s: answered '%.*s'", command, first_line(answer.buf), answer.buf);
	return rc;
}

/* ---- version ---- */

int ll_mps_version_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_version *ret_version,
			struct ll_strbuf *partitions, struct ll_err *err)
{
	struct ll_mps_version version = {.protocol = 2};
	struct ll_err why = {0};
	int rc = ll_mps_ask(place, deadline_ns, partitions, &why, "get_server_list");
	if (rc == -EOPNOTSUPP)
		version.protocol = 3;
	if (!is_final(rc) && version.protocol == 2) {
		rc = ll_mps_ask(place, deadline_ns, partitions, &why, "lspart");
		/* A refusal means that the daemon knows the command: it has static partitions, but was started without
		 * them. */
		version.has_static_partitions = rc != -EOPNOTSUPP;
	}
	if (is_final(rc)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_strbuf_reset(partitions);
	*ret_version = version;
	return 0;
}
