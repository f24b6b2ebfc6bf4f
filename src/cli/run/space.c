#include "cli/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "mps/command/words.h"
#include "mps/mps.h"

enum { MIB_SHIFT = 20, PERMILLE = 1000, CARDS_MAX = 128 };

/* Leaves out cards that the daemon does not show to clients. A named card among them is an error. */
static int keep_shown(const struct ll_mps_desk *desk, bool is_named, const struct ll_card **cards, size_t *count,
		      struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **shown = NULL;
	size_t shown_count = 0;
	size_t kept = 0;
	int rc = ll_mps_cards_read(desk->driver, desk->folder, &desk->place, &shown, &shown_count, err);
	for (size_t i = 0; !rc && i < *count; i++) {
		if (ll_mps_cards_number(shown, shown_count, cards[i]) >= 0)
			cards[kept++] = cards[i];
		else if (is_named)
			return ll_err_set(err, -ENODEV, "card %s: the MPS daemon at %s does not show it to clients",
					  cards[i]->label, desk->place.pipe);
	}
	if (!rc && !kept)
		return ll_err_set(err, -ENODEV, "the MPS daemon at %s shows none of these cards to clients",
				  desk->place.pipe);
	*count = kept;
	return rc;
}

static bool has_clients(const struct ll_mps_list *list, pid_t server)
{
	for (size_t i = 0; i < list->client_count; i++) {
		if (list->clients[i].server == server)
			return true;
	}
	return false;
}

/* Refuses if a client would wait without a message: for a server in FAULT, or for another user's clients. */
static int check_servers(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_mps_list list = {0};
	int rc = ll_mps_list_read(&desk->place, deadline_ns, &list, err);
	for (size_t i = 0; !rc && i < list.server_count; i++) {
		const struct ll_mps_server *server = &list.servers[i];
		bool is_used = has_clients(&list, server->pid);
		if (server->status == LL_MPS_FAULT) {
			rc = ll_err_set(
			    err, -EBUSY,
			    "MPS server %d is in FAULT: new clients wait until the clients that the fault hit have "
			    "ended",
			    (int)server->pid);
			ll_err_hint(err, "`loadline mps clients` lists them, `loadline mps stop --force` ends all");
		} else if (is_used && server->user != (uid_t)-1 && server->user != geteuid()) {
			rc = ll_err_set(
			    err, -EBUSY,
			    "MPS server %d serves user %lu: a client of yours would wait until that user's last "
			    "client has ended",
			    (int)server->pid, (unsigned long)server->user);
			ll_err_hint(err, "start a daemon of your own, in a folder of your own (%s)",
				    LL_MPS_PIPE_VARIABLE);
		}
	}
	ll_mps_list_fini(&list);
	return rc;
}

/* Finds the share that the program will really have: --compute, the caller's variable, or the daemon's share for each
 * client. */
static int settle_share(struct ll_run_settings *settings, double most_percent, struct ll_run_space *space,
			struct ll_err *err)
{
	const char *text = getenv(LL_MPS_PERCENT_VARIABLE);
	double own = text && *text ? strtod(text, NULL) : 0;
	double wanted = settings->space_permille / 10.0;
	most_percent = most_percent > 0 ? most_percent : 100;
	if (wanted > most_percent) {
		ll_err_set(err, -EINVAL, "--compute: this MPS daemon gives a client %g %% of the SMs at most",
			   most_percent);
		return ll_err_hint(err, "`loadline mps set --compute %g%%` changes that for new clients", wanted);
	}
	if (wanted > 0)
		snprintf(space->percent, sizeof space->percent, "%g", wanted);
	else
		wanted = own > 0 && own < most_percent ? own : most_percent;
	settings->space_permille = (unsigned)lround(wanted * 10);
	settings->space_permille = settings->space_permille ? settings->space_permille : 1;
	return 0;
}

static int check_memory(const struct ll_run_settings *settings, uint64_t most_bytes, struct ll_err *err)
{
	if (!most_bytes || settings->memory_limit_bytes <= most_bytes)
		return 0;
	ll_err_set(err, -EINVAL, "--mem: this MPS daemon gives a client %llu MiB at most",
		   (unsigned long long)(most_bytes >> MIB_SHIFT));
	return ll_err_hint(err, "`loadline mps set --mem` changes that for new clients");
}

static int check_variables(const struct ll_card *const *cards, size_t count, struct ll_err *err)
{
	const char *uuids[CARDS_MAX];
	for (size_t i = 0; i < count && i < CARDS_MAX; i++)
		uuids[i] = cards[i]->uuid;
	return ll_mps_environment_check(uuids, count < CARDS_MAX ? count : CARDS_MAX, err);
}

/* Logs the number of SMs of the user's share. It is a warning if MPS gives more than the user asked for. */
static void say_shares(const struct ll_run_space *space, const struct ll_card *const *cards, size_t count)
{
	double percent = strtod(space->percent, NULL);
	for (size_t i = 0; i < count && *space->percent; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		unsigned sms = cards[i]->sm_count;
		if (!sms)
			continue;
		ll_mps_share_add(&text, cards[i]->label, sms, percent);
		ll_log(ll_mps_share_is_floor(sms, percent) ? LL_LOG_WARN : LL_LOG_INFO, "%s", text.buf);
	}
}

int ll_run_space_choose(const struct ll_driver *driver, const struct ll_run_args *args,
			struct ll_run_settings *settings, const struct ll_card **cards, size_t *count,
			struct ll_run_space *ret_space, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + LL_MPS_ASK_NS;
	struct ll_mps_desk desk = {.own = NULL};
	struct ll_run_space space = {.is_client = true};
	double most_percent = 0;
	uint64_t most_bytes = 0;
	int rc = ll_mps_desk_use(&desk, driver, err);
	if (!rc)
		rc = args->by == LL_RUN_BY_SPACE ? ll_mps_desk_have_daemon(&desk, deadline_ns, err)
						 : ll_mps_desk_need_daemon(&desk, deadline_ns, err);
	if (!rc)
		rc = keep_shown(&desk, args->cards != NULL, cards, count, err);
	if (!rc)
		rc = check_variables(cards, *count, err);
	if (!rc)
		rc = check_servers(&desk, deadline_ns, err);
	if (!rc)
		rc = ll_mps_limits_read(&desk.place, deadline_ns, 0, &most_percent, &most_bytes, err);
	if (!rc)
		rc = settle_share(settings, most_percent, &space, err);
	if (!rc)
		rc = check_memory(settings, most_bytes, err);
	if (rc)
		return rc;
	say_shares(&space, cards, *count);
	memcpy(space.pipe, desk.place.pipe, sizeof space.pipe);
	memcpy(space.log, desk.place.log, sizeof space.log);
	*ret_space = space;
	return 0;
}
