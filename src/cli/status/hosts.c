#include "cli/status/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/json_line.h"
#include "cli/common/still.h"
#include "cli/status/status.h"

enum { NAME_MAX_BYTES = 255, SSH_FAILED = 255, NO_COMMAND = 127, NO_PROGRAM = 126 };

/* ---- names ---- */

static bool is_name(const char *name, size_t length)
{
	if (!length || length > NAME_MAX_BYTES || *name == '-')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("._-@:[]%", name[i]))
			return false;
		if (i && name[i - 1] == '@' && name[i] == '-')
			return false;
	}
	return true;
}

static size_t count_names(const char *list)
{
	size_t count = 1;
	for (; *list; list++)
		count += *list == ',';
	return count;
}

int ll_status_hosts_init(const char *list, struct ll_status_host **ret_hosts, size_t *ret_count, struct ll_err *err)
{
	size_t count = count_names(list);
	*ret_count = 0;
	*ret_hosts = calloc(count, sizeof **ret_hosts);
	for (size_t i = 0; *ret_hosts && i < count; i++) {
		struct ll_status_host *host = &(*ret_hosts)[i];
		size_t length = strcspn(list, ",");
		if (!is_name(list, length))
			return ll_err_set(err, -EINVAL, "--host: '%.*s': not the name of a machine",
					  length > NAME_MAX_BYTES ? NAME_MAX_BYTES : (int)length, list);
		*host = (struct ll_status_host){
		    .name = strndup(list, length), .out = LL_STRBUF_INIT, .err = LL_STRBUF_INIT};
		if (!host->name)
			return ll_err_set(err, -ENOMEM, "--host: %s", strerror(ENOMEM));
		(*ret_count)++;
		list += length + 1;
	}
	return *ret_hosts ? 0 : ll_err_set(err, -ENOMEM, "--host: %s", strerror(ENOMEM));
}

void ll_status_hosts_fini(struct ll_status_host *hosts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(hosts[i].name);
		ll_strbuf_fini(&hosts[i].out);
		ll_strbuf_fini(&hosts[i].err);
		json_decref(hosts[i].lines);
	}
	free(hosts);
}

/* ---- the answer ---- */

/* The last line that ssh, or loadline there, wrote on standard error. Empty: none. */
static void write_last_line(const struct ll_status_host *host, char *reason, size_t size)
{
	const char *text = host->err.buf;
	size_t end = host->err.length;
	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	size_t begin = end;
	while (begin && text[begin - 1] != '\n' && text[begin - 1] != '\r')
		begin--;
	snprintf(reason, size, "%.*s", (int)(end - begin < size ? end - begin : size - 1), text + begin);
	ll_utf8_clean(reason);
}

/* Returns the objects. NULL: a line is none. */
static json_t *read_lines(const char *text)
{
	json_t *lines = json_array();
	while (lines && *text) {
		size_t length = strcspn(text, "\n");
		json_t *object = length ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
		if (length && (!json_is_object(object) || json_array_append(lines, object))) {
			json_decref(lines);
			lines = NULL;
		}
		json_decref(object);
		text += length + (text[length] == '\n');
	}
	return lines;
}

/* The first object of each loadline is a card. */
static bool is_of_loadline(const json_t *lines)
{
	const json_t *first = json_array_get(lines, 0);
	return json_is_integer(json_object_get(first, "card")) && json_is_string(json_object_get(first, "uuid"));
}

/* Versions before the last kernel was told. */
static bool is_older(const json_t *lines)
{
	size_t i;
	json_t *line;
	json_array_foreach(lines, i, line)
	{
		bool is_program = json_object_get(line, "claim") || json_object_get(line, "process");
		if (is_program && !json_object_get(line, "last_kernel"))
			return true;
	}
	return false;
}

static void explain(struct ll_status_host *host, uint64_t within_ns)
{
	char line[LL_STATUS_REASON_SIZE] = "";
	int status = WIFEXITED(host->wait_status) ? WEXITSTATUS(host->wait_status) : -1;
	write_last_line(host, line, sizeof line);
	if (host->is_late)
		snprintf(host->reason, sizeof host->reason, _("no answer within %.0f s"),
			 (double)within_ns / (double)LL_NS_PER_S);
	else if (status == NO_COMMAND || status == NO_PROGRAM)
		snprintf(host->reason, sizeof host->reason, "%s", _("there is no loadline"));
	else if (status && *line)
		snprintf(host->reason, sizeof host->reason, "%s", line);
	else if (status == SSH_FAILED)
		snprintf(host->reason, sizeof host->reason, "%s", _("ssh failed, and did not say why"));
	else if (status)
		snprintf(host->reason, sizeof host->reason, _("loadline ended with status %d there"), status);
	else if (!host->lines)
		snprintf(host->reason, sizeof host->reason, "%s", _("its answer is not that of loadline"));
}

void ll_status_host_read(struct ll_status_host *host, uint64_t within_ns)
{
	bool is_whole = !host->out.failed && strlen(host->out.buf) == host->out.length;
	host->lines = is_whole && !host->is_late ? read_lines(host->out.buf) : NULL;
	if (host->lines && !is_of_loadline(host->lines)) {
		json_decref(host->lines);
		host->lines = NULL;
	}
	host->is_older = host->lines && is_older(host->lines);
	explain(host, within_ns);
}

/* ---- output ---- */

static int print_host_json(const struct ll_status_host *host, struct ll_err *err)
{
	json_t *failed = host->reason[0] ? ll_json_text(host->reason) : json_null();
	int rc = ll_json_line(
	    json_pack("{s:s, s:o, s:b}", "host", host->name, "failed", failed, "older", host->is_older), err);
	size_t i;
	json_t *line;
	json_array_foreach(host->lines, i, line)
	{
		json_t *copy = rc ? NULL : json_copy(line);
		if (copy && json_object_set_new(copy, "host", json_string(host->name))) {
			json_decref(copy);
			copy = NULL;
		}
		rc = rc ? rc : ll_json_line(copy, err);
	}
	return rc;
}

int ll_status_hosts_print_json(const struct ll_status_host *hosts, size_t count, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < count; i++)
		rc = print_host_json(&hosts[i], err);
	return rc;
}

static int print_text(const struct ll_status_host *hosts, size_t count, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned columns, rows;
	ll_status_terminal(&columns, &rows);
	ll_status_hosts_add_text(&text, hosts, count, columns);
	if (text.failed)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	fwrite(text.buf, 1, text.length, stdout);
	return 0;
}

int ll_status_hosts(const char *list, uint64_t within_ns, bool is_json, struct ll_err *err)
{
	struct ll_status_host *hosts = NULL;
	size_t count = 0;
	bool has_failed = false;
	struct ll_still still;
	int rc = ll_status_hosts_init(list, &hosts, &count, err);
	ll_still_begin(&still, N_("waits for the answers of %s, for %g s at most"), list,
		       (double)within_ns / (double)LL_NS_PER_S);
	if (!rc)
		rc = ll_status_hosts_ask(hosts, count, within_ns, err);
	ll_still_end(&still);
	for (size_t i = 0; !rc && i < count; i++) {
		ll_status_host_read(&hosts[i], within_ns);
		has_failed |= hosts[i].reason[0] != '\0';
	}
	if (!rc)
		rc = is_json ? ll_status_hosts_print_json(hosts, count, err) : print_text(hosts, count, err);
	ll_status_hosts_fini(hosts, count);
	return rc ? rc : has_failed ? LL_EXIT_FAILED : 0;
}
