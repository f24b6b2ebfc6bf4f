#include "mps/servers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "mps/answers.h"
#include "mps/exchange.h"
#include "mps/place.h"
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
		return N_("initializing");
	case LL_MPS_ACTIVE:
		return N_("active");
	case LL_MPS_FAULT:
		return N_("fault");
	case LL_MPS_UNKNOWN:
		break;
	}
	return N_("unknown");
}

/* Whether the reading must end. It ends if the daemon is gone or hangs, but not if the daemon does not answer a single
 * question. */
static bool is_final(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -ENOENT || rc == -ENOMEM;
}

/* Asks with a process id; 0: the command has none. A question that the daemon does not answer gives an empty answer. */
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
	items[list->client_count] = *client;
	ll_utf8_clean(items[list->client_count++].command);
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

/* Adds clients of get_client_list that `ps` did not list: older drivers have no `ps`. */
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

/* Adds the clients that `ps` lists, with their cards and commands. */
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

/* ---- taking a client off ---- */

enum { TRIES = 3, NAMED = 16, QUOTE = 120, PAUSE_PART = 8 };

static int find_server(const struct ll_mps_list *list, pid_t client, pid_t *ret_server, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf others = LL_STRBUF_INIT;
	for (size_t i = 0; i < list->client_count; i++) {
		if (list->clients[i].pid == client) {
			*ret_server = list->clients[i].server;
			return 0;
		}
		if (i < NAMED)
			ll_strbuf_addf(&others, "%s%d", i ? ", " : "", (int)list->clients[i].pid);
	}
	ll_err_set(err, -ESRCH, "MPS: process %d is no client", (int)client);
	return ll_err_hint(err, list->client_count ? N_("clients are %s") : N_("there are no clients%s"), others.buf);
}

/* Tries once. Returns 0, or an error with its reason in err. */
static int try_once(const struct ll_mps_place *place, pid_t server, pid_t client, uint64_t deadline_ns,
		    struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "terminate_client %d %d", (int)server, (int)client);
	if (ll_mps_answer_is_gone(answer.buf))
		return ll_err_set(err, -ESRCH, "MPS: process %d is no longer a client", (int)client);
	if (!rc && !ll_mps_answer_is_done(answer.buf))
		rc = ll_err_set(err, ll_mps_answer_is_busy(answer.buf) ? -EBUSY : -EIO,
				"MPS: terminate_client: answered '%.*s'", QUOTE, answer.buf);
	return rc;
}

static int try_all(const struct ll_mps_place *place, pid_t server, pid_t client, uint64_t from_ns, uint64_t within_ns,
		   struct ll_err *err)
{
	int rc = -ETIMEDOUT;
	bool was_unanswered = false;
	struct ll_err why = {0};
	uint64_t end_ns = from_ns + within_ns;
	for (unsigned tries = 0; rc && tries < TRIES;) {
		rc = try_once(place, server, client, from_ns + within_ns * (tries + 1) / TRIES, &why);
		if (rc == -ESRCH && was_unanswered) /* the daemon did what it gave no answer to */
			rc = 0;
		was_unanswered |= rc == -ETIMEDOUT;
		if (rc == -ECONNREFUSED || rc == -EOPNOTSUPP || rc == -EPERM || rc == -ENOENT || rc == -ESRCH)
			break; /* another try would not help */
		uint64_t next_ns = ll_now_ns() + within_ns / PAUSE_PART;
		/* A daemon that is busy has not tried: that was none of the tries, while there is time for another. */
		if (rc != -EBUSY || next_ns >= end_ns)
			tries++;
		if (rc && tries < TRIES)
			ll_sleep_until_ns(next_ns);
	}
	if (!rc)
		return 0;
	if (err)
		*err = why;
	if (rc == -ESRCH)
		return rc;
	ll_err_wrap(err, "client %d was not ended", (int)client);
	return ll_err_hint(err,
			   "nothing else was done: `kill %d` ends its process, `loadline mps stop --force` everything",
			   (int)client);
}

int ll_mps_client_end(const struct ll_mps_place *place, pid_t client, uint64_t within_ns, struct ll_err *err)
{
	uint64_t from_ns = ll_now_ns();
	LL_SCOPE_CLOSE int lock = -1;
	struct ll_mps_list list = {0};
	pid_t server = 0;
	int rc = ll_mps_lock(place->pipe, from_ns + within_ns, &lock, err);
	if (rc == -ENOENT)
		return ll_err_set(err, -ECONNREFUSED, "no MPS daemon at %s", place->pipe);
	if (!rc)
		rc = ll_mps_list_read(place, from_ns + within_ns, &list, err);
	if (!rc)
		rc = find_server(&list, client, &server, err);
	ll_mps_list_fini(&list);
	uint64_t now_ns = ll_now_ns();
	uint64_t left_ns = from_ns + within_ns > now_ns ? from_ns + within_ns - now_ns : 0;
	return rc ? rc : try_all(place, server, client, now_ns, left_ns, err);
}
