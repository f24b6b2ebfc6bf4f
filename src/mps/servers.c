#include "mps/servers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mps/answers.h"
#include "mps/exchange.h"
#include "mps/process.h"

enum { SERVERS_MAX = 64, CLIENTS_MAX = 256 };

void ll_mps_list_fini(struct ll_mps_list *list)
{
	free(list->servers);
	free(list->clients);
	*list = (struct ll_mps_list){0};
}

const char *ll_mps_status_text(enum ll_mps_status status)
{
	switch (status) {
	case LL_MPS_INITIALIZING:
		return "initializing";
	case LL_MPS_ACTIVE:
		return "active";
	case LL_MPS_FAULT:
		return "fault";
	case LL_MPS_UNKNOWN:
		break;
	}
	return "unknown";
}

/* A daemon that is gone or hangs ends the reading; a single question that it does not answer does not. */
static bool is_final(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -ENOENT || rc == -ENOMEM;
}

/* pid 0: the command has none. What it does not answer is an empty answer. */
static int ask_softly(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *answer,
		      const char *verb, pid_t pid, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = pid ? ll_mps_ask(place, deadline_ns, answer, &why, "%s %d", verb, (int)pid)
		     : ll_mps_ask(place, deadline_ns, answer, &why, "%s", verb);
	if (is_final(rc)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_strbuf_reset(answer);
	return 0;
}

static int read_server(const struct ll_mps_place *place, uint64_t deadline_ns, pid_t pid, struct ll_mps_server *server,
		       struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	*server = (struct ll_mps_server){.pid = pid, .user = ll_mps_process_user(pid)};
	int rc = ask_softly(place, deadline_ns, &answer, "get_server_status", pid, err);
	if (rc)
		return rc;
	server->status = ll_mps_answer_status(answer.buf);
	rc = ask_softly(place, deadline_ns, &answer, "get_active_thread_percentage", pid, err);
	if (!rc && !ll_mps_answer_percent(answer.buf, &server->compute_percent))
		server->compute_percent = 0;
	return rc;
}

static int add_client(struct ll_mps_list *list, const struct ll_mps_client *client, struct ll_err *err)
{
	struct ll_mps_client *items = realloc(list->clients, (list->client_count + 1) * sizeof *items);
	if (!items)
		return ll_err_set(err, -ENOMEM, "MPS: clients: %s", strerror(ENOMEM));
	list->clients = items;
	items[list->client_count++] = *client;
	return 0;
}

static bool has_client(const struct ll_mps_list *list, pid_t server, pid_t pid)
{
	for (size_t i = 0; i < list->client_count; i++) {
		if (list->clients[i].server == server && list->clients[i].pid == pid)
			return true;
	}
	return false;
}

/* What get_client_list has and `ps` had not: older drivers have no `ps`. */
static int add_listed(const struct ll_mps_place *place, uint64_t deadline_ns, pid_t server, struct ll_mps_list *list,
		      struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	pid_t pids[CLIENTS_MAX];
	int rc = ask_softly(place, deadline_ns, &answer, "get_client_list", server, err);
	if (rc)
		return rc;
	int count = ll_mps_answer_pids(answer.buf, pids, CLIENTS_MAX);
	for (int i = 0; !rc && i < count && i < CLIENTS_MAX; i++) {
		struct ll_mps_client client = {.pid = pids[i], .server = server};
		ll_mps_process_name(pids[i], client.command, sizeof client.command);
		if (!has_client(list, server, pids[i]))
			rc = add_client(list, &client, err);
	}
	return rc;
}

/* `ps` knows the cards and the commands. */
static int add_shown(const char *text, pid_t server, struct ll_mps_list *list, struct ll_err *err)
{
	int rc = 0;
	while (!rc && *text) {
		struct ll_mps_client client;
		if (ll_mps_answer_ps(&text, &client) && client.server == server)
			rc = add_client(list, &client, err);
	}
	return rc;
}

static int read_all(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_list *list,
		    struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	pid_t pids[SERVERS_MAX];
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "get_server_list");
	int count = rc ? 0 : ll_mps_answer_pids(answer.buf, pids, SERVERS_MAX);
	if (count < 0)
		rc = ll_err_set(err, -EIO, "MPS: get_server_list: answered '%.60s'", answer.buf);
	if (rc || !count)
		return rc;
	count = count < SERVERS_MAX ? count : SERVERS_MAX;
	list->servers = calloc((size_t)count, sizeof *list->servers);
	if (!list->servers)
		return ll_err_set(err, -ENOMEM, "MPS: servers: %s", strerror(ENOMEM));
	rc = ask_softly(place, deadline_ns, &answer, "ps", 0, err);
	for (int i = 0; !rc && i < count; i++) {
		rc = read_server(place, deadline_ns, pids[i], &list->servers[list->server_count], err);
		if (!rc)
			rc = add_shown(answer.buf, pids[i], list, err);
		if (!rc)
			rc = add_listed(place, deadline_ns, pids[i], list, err);
		list->server_count += !rc;
	}
	return rc;
}

int ll_mps_list_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_list *list,
		     struct ll_err *err)
{
	struct ll_mps_list fresh = {0};
	int rc = read_all(place, deadline_ns, &fresh, err);
	ll_mps_list_fini(list);
	if (rc)
		ll_mps_list_fini(&fresh);
	else
		*list = fresh;
	return rc;
}
