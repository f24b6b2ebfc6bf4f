#include "cli/mps/report.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"
#include "mps/cards.h"
#include "mps/limits.h"

void ll_mps_report_fini(struct ll_mps_report *status)
{
	ll_strbuf_fini(&status->partitions);
	ll_strbuf_fini(&status->warnings);
	ll_mps_list_fini(&status->list);
	free(status->cards);
	status->cards = NULL;
}

static void warn_of_servers(struct ll_mps_report *status)
{
	for (size_t i = 0; i < status->list.server_count; i++) {
		const struct ll_mps_server *server = &status->list.servers[i];
		if (server->status == LL_MPS_FAULT)
			ll_strbuf_addf(
			    &status->warnings,
			    "server %d is in FAULT: a client's fault hit all clients on its cards, and new clients "
			    "wait until those have ended\n",
			    (int)server->pid);
		if (server->user != (uid_t)-1 && server->user != geteuid())
			ll_strbuf_addf(
			    &status->warnings,
			    "server %d serves user %lu: clients of others wait until its last client has ended\n",
			    (int)server->pid, (unsigned long)server->user);
	}
}

static void warn_of_leftovers(const struct ll_mps_desk *desk, struct ll_mps_report *status)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	if (ll_mps_session_leftovers(&desk->session, &records, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++)
		ll_strbuf_addf(
		    &status->warnings,
		    "cards are in exclusive mode for a daemon at %s that is gone: `loadline mps stop` puts them "
		    "back\n",
		    records[i].pipe);
}

static void read_record(const struct ll_mps_desk *desk, struct ll_mps_report *status)
{
	struct ll_mps_record record;
	if (ll_mps_record_read(desk->folder, desk->place.pipe, &record, NULL))
		return;
	for (size_t i = 0; i < record.card_count; i++)
		status->is_exclusive |= record.cards[i].is_changed;
}

int ll_mps_report_read(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_mps_report *status,
		       struct ll_err *err)
{
	*status = (struct ll_mps_report){.partitions = LL_STRBUF_INIT, .warnings = LL_STRBUF_INIT};
	int rc = ll_mps_version_read(&desk->place, deadline_ns, &status->version, &status->partitions, err);
	if (!rc)
		rc = ll_mps_list_read(&desk->place, deadline_ns, &status->list, err);
	if (!rc)
		rc = ll_mps_cards_read(desk->driver, desk->folder, &desk->place, &status->cards, &status->card_count,
				       err);
	if (!rc)
		rc = ll_mps_limits_read(&desk->place, deadline_ns, 0, &status->compute_percent, &status->memory_bytes,
					err);
	if (rc)
		return rc;
	if (ll_mps_daemon_find(&desk->place, &status->daemon, NULL))
		status->daemon = (struct ll_mps_daemon){.pid = 0};
	read_record(desk, status);
	warn_of_servers(status);
	warn_of_leftovers(desk, status);
	return 0;
}
