#include "mps/terminate.h"

#include <errno.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "mps/answers.h"
#include "mps/exchange.h"
#include "mps/lock.h"
#include "mps/servers.h"

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
	return ll_err_hint(err, list->client_count ? "clients are %s" : "there are no clients%s", others.buf);
}

/* One try. 0, or what was wrong with it, worded. */
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
	struct ll_err why = {0};
	uint64_t end_ns = from_ns + within_ns;
	for (unsigned tries = 0; rc && tries < TRIES;) {
		rc = try_once(place, server, client, from_ns + within_ns * (tries + 1) / TRIES, &why);
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
