#include "mps/mps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "base/utf8.h"

/* ---- servers ---- */

enum { SERVERS_MAX = 64, CLIENTS_MAX = 256 };

void ll_mps_list_fini(struct ll_mps_list *list)
{
	free(list->servers);
	free(list->clients);
	*list = (struct ll_mps_list){0};
}

const char *ll_mps_status_text(enum ll_mps_status status)
{
	static const char *const texts[] = {[LL_MPS_UNKNOWN] = N_("unknown"),
					    [LL_MPS_INITIALIZING] = N_("initializing"),
					    [LL_MPS_ACTIVE] = N_("active"),
					    [LL_MPS_FAULT] = N_("fault")};
	return texts[status];
}

static int read_server(const struct ll_mps_place *place, uint64_t deadline_ns, pid_t pid, struct ll_mps_server *server,
		       struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	*server = (struct ll_mps_server){.pid = pid, .user = ll_mps_process_user(pid)};
	int rc = ll_mps_ask_softly(place, deadline_ns, &answer, err, "get_server_status %d", (int)pid);
	if (rc)
		return rc;
	server->status = ll_mps_answer_status(answer.buf);
	rc = ll_mps_ask_softly(place, deadline_ns, &answer, err, "get_active_thread_percentage %d", (int)pid);
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
	int rc = ll_mps_ask_softly(place, deadline_ns, &answer, err, "get_client_list %d", (int)server);
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
	rc = ll_mps_ask_softly(place, deadline_ns, &answer, err, "ps");
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

size_t ll_mps_list_add_clients(const struct ll_mps_list *list, size_t most, struct ll_strbuf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < list->client_count; i++) {
		const struct ll_mps_client *client = &list->clients[i];
		bool is_known = false;
		for (size_t j = 0; j < i; j++)
			is_known |= list->clients[j].pid == client->pid;
		if (is_known || count++ >= most)
			continue;
		ll_strbuf_addf(out, "%s%d%s%s%s", out->length ? ", " : "", (int)client->pid,
			       *client->command ? " (" : "", client->command, *client->command ? ")" : "");
	}
	return count;
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

/* ---- limits ---- */

enum { MIB_SHIFT = 20, QUOTE_VALUE = 60, LIMIT_SIZE = 80 };

/* Sets a limit to what `limits` has, and asks for it. name: in the daemon's commands. */
__attribute__((format(printf, 6, 7))) static int set_limit(const struct ll_mps_place *place, uint64_t deadline_ns,
							   const struct ll_mps_limits *limits, bool is_memory,
							   struct ll_err *err, const char *name, ...)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	char limit[LIMIT_SIZE];
	uint64_t mib = limits->memory_bytes >> MIB_SHIFT, bytes;
	double wanted = limits->compute_percent, percent;
	va_list ap;
	va_start(ap, name);
	vsnprintf(limit, sizeof limit, name, ap);
	va_end(ap);
	int rc = is_memory ? ll_mps_order(place, deadline_ns, (double)limits->memory_bytes, err, "set_%s %" PRIu64 "M",
					  limit, mib)
			   : ll_mps_order(place, deadline_ns, wanted, err, "set_%s %g", limit, wanted);
	if (!rc)
		rc = ll_mps_ask(place, deadline_ns, &answer, err, "get_%s", limit);
	if (rc)
		return rc;
	/* The daemon may round a percentage to one that the card can do, but may not set another value. */
	bool holds = is_memory
			 ? ll_mps_answer_bytes(answer.buf, &bytes) && ll_mps_answer_same_bytes(bytes, mib << MIB_SHIFT)
			 : ll_mps_answer_percent(answer.buf, &percent) && fabs(percent - wanted) < 1;
	if (holds)
		return 0;
	if (is_memory)
		return ll_err_set(err, -EIO, "MPS: limit of device memory: asked for %llu MiB, the daemon holds '%.*s'",
				  (unsigned long long)mib, QUOTE_VALUE, answer.buf);
	return ll_err_set(err, -EIO, "MPS: active thread percentage: asked for %g, the daemon holds '%.*s'", wanted,
			  QUOTE_VALUE, answer.buf);
}

int ll_mps_limits_set(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_limits *limits,
		      const struct ll_mps_list *list, struct ll_err *err)
{
	size_t servers = list ? list->server_count : 0;
	int rc = 0;
	if (limits->compute_percent > 0) {
		rc = set_limit(place, deadline_ns, limits, false, err, "default_active_thread_percentage");
		for (size_t i = 0; !rc && i < servers; i++)
			rc = set_limit(place, deadline_ns, limits, false, err, "active_thread_percentage %d",
				       (int)list->servers[i].pid);
	}
	for (size_t c = 0; !rc && limits->memory_bytes && c < limits->card_count; c++) {
		size_t card = limits->cards[c];
		rc = set_limit(place, deadline_ns, limits, true, err, "default_device_pinned_mem_limit %zu", card);
		for (size_t i = 0; !rc && i < servers; i++)
			rc = set_limit(place, deadline_ns, limits, true, err, "device_pinned_mem_limit %d %zu",
				       (int)list->servers[i].pid, card);
	}
	return rc;
}

int ll_mps_limits_read(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, double *ret_percent,
		       uint64_t *ret_bytes, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	double percent = 0;
	uint64_t bytes = 0;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "get_default_active_thread_percentage");
	if (rc)
		return rc;
	if (!ll_mps_answer_percent(answer.buf, &percent))
		percent = 0;
	rc = ll_mps_ask_softly(place, deadline_ns, &answer, err, "get_default_device_pinned_mem_limit %zu", card);
	if (rc)
		return rc;
	if (!ll_mps_answer_bytes(answer.buf, &bytes))
		bytes = 0;
	*ret_percent = percent;
	*ret_bytes = bytes;
	return 0;
}

/* ---- a client's share of the SMs ---- */

/* Percentages have one decimal. A result that is less than that below a whole number counts as this number. */
#define ROUNDING 1e-6

unsigned ll_mps_share_sms(unsigned sm_count, double percent)
{
	if (percent >= 100)
		return sm_count;
	unsigned sms = (unsigned)(sm_count * percent / 100 + ROUNDING) & ~1u;
	unsigned least = sm_count < LL_MPS_LEAST_SMS ? sm_count : LL_MPS_LEAST_SMS;
	return sms > least ? sms : least;
}

bool ll_mps_share_is_floor(unsigned sm_count, double percent)
{
	return ll_mps_share_sms(sm_count, percent) > sm_count * percent / 100 + ROUNDING;
}

void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent)
{
	unsigned sms = ll_mps_share_sms(sm_count, percent);
	ll_strbuf_addf(out, "%g %% of card %s's %u SMs: %u for each client", percent, label, sm_count, sms);
	if (ll_mps_share_is_floor(sm_count, percent))
		ll_strbuf_addf(out, ", which is %.1f %%: MPS gives no client fewer", 100.0 * sms / sm_count);
	else if (sms + ROUNDING < sm_count * percent / 100)
		ll_strbuf_adds(out, ", because MPS rounds down to pairs of SMs");
}
