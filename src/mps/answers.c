#include "mps/answers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
