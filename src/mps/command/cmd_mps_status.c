#include "mps/command/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/table.h"
#include "mps/mps.h"
#include "protocol/message.h"

/* ---- report ---- */

/* Read first, then printed as text or as JSON lines. */
struct report {
	struct ll_mps_daemon daemon; /* pid 0: the daemon answers, but its process is not visible from here */
	char cgroup[LL_CGROUP_SIZE]; /* the group whose end would end it; empty: not known */
	struct ll_mps_version version;
	struct ll_strbuf partitions; /* the lines of MPS's command lspart */
	struct ll_mps_list list;
	const struct ll_card **cards; /* the cards that the daemon shows to its clients */
	size_t card_count;
	bool is_exclusive; /* loadline put the cards into exclusive mode for this daemon */
	double compute_percent;
	uint64_t memory_bytes;
	struct ll_strbuf warnings; /* one warning a line */
};

static void warn_of_servers(struct report *status)
{
	for (size_t i = 0; i < status->list.server_count; i++) {
		const struct ll_mps_server *server = &status->list.servers[i];
		if (server->status == LL_MPS_FAULT)
			ll_strbuf_addf(
			    &status->warnings,
			    _("server %d is in FAULT: a client's fault hit all clients on its cards, and new clients "
			      "wait until those have ended\n"),
			    (int)server->pid);
		if (server->user != (uid_t)-1 && server->user != geteuid())
			ll_strbuf_addf(
			    &status->warnings,
			    _("server %d serves user %lu: clients of others wait until its last client has ended\n"),
			    (int)server->pid, (unsigned long)server->user);
	}
}

static void warn_of_leftovers(const struct ll_mps_desk *desk, struct report *status)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	if (ll_mps_session_leftovers(&desk->session, &records, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		ll_strbuf_addf(&status->warnings, _("cards are in exclusive mode for a daemon at %s that is gone: "),
			       records[i].pipe);
		ll_sim_add_advice(&status->warnings, _("`loadline mps stop` puts them back\n"));
	}
}

static void read_record(const struct ll_mps_desk *desk, struct report *status)
{
	struct ll_mps_record record;
	if (ll_mps_record_read(desk->folder, desk->place.pipe, &record, NULL))
		return;
	for (size_t i = 0; i < record.card_count; i++)
		status->is_exclusive |= record.cards[i].is_changed;
}

/* Reads the state of a daemon that answers. */
static int read_report(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct report *status, struct ll_err *err)
{
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
	else if (ll_cgroup_read(status->daemon.pid, status->cgroup, sizeof status->cgroup) < 0)
		*status->cgroup = '\0';
	read_record(desk, status);
	warn_of_servers(status);
	warn_of_leftovers(desk, status);
	return 0;
}

/* ---- print ---- */

enum { MIB_SHIFT = 20 };

static void print_clients(const struct ll_mps_list *list)
{
	if (!list->client_count) {
		puts(_("no clients"));
		return;
	}
	printf("%10s %10s  %-24s %s\n", "CLIENT", "SERVER", "CARD", "COMMAND");
	for (size_t i = 0; i < list->client_count; i++) {
		const struct ll_mps_client *client = &list->clients[i];
		printf("%10d %10d  %-24s %s\n", (int)client->pid, (int)client->server,
		       *client->card ? client->card : "-", *client->command ? client->command : "-");
	}
}

static int print_clients_json(const struct ll_mps_list *list, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < list->client_count; i++) {
		const struct ll_mps_client *client = &list->clients[i];
		rc = ll_json_line(json_pack("{s:i, s:i, s:s*, s:s*}", "client", (int)client->pid, "server",
					    (int)client->server, "card_uuid", *client->card ? client->card : NULL,
					    "command", *client->command ? client->command : NULL),
				  err);
	}
	return rc;
}

static void print_cards(const struct report *status)
{
	printf(_("cards:          "));
	for (size_t i = 0; i < status->card_count; i++)
		printf("%s%s", i ? ", " : "", status->cards[i]->label);
	ll_sim_print_advice(status->is_exclusive ? _(" (in exclusive mode until `loadline mps stop`)\n") : "\n");
}

static void print_limits(const struct report *status)
{
	printf(_("new clients:    "));
	if (status->compute_percent > 0)
		printf(_("%g %% of the SMs, "), status->compute_percent);
	if (status->memory_bytes)
		printf(_("%llu MiB of device memory\n"), (unsigned long long)(status->memory_bytes >> MIB_SHIFT));
	else
		puts(_("no limit of device memory"));
}

static void print_servers(const struct ll_mps_list *list)
{
	for (size_t i = 0; i < list->server_count; i++) {
		const struct ll_mps_server *server = &list->servers[i];
		printf(_("server:         %d, %s"), (int)server->pid, _(ll_mps_status_text(server->status)));
		if (server->user != (uid_t)-1)
			printf(_(", of user %lu"), (unsigned long)server->user);
		if (server->compute_percent > 0)
			printf(_(", %g %% of the SMs for each new client"), server->compute_percent);
		putchar('\n');
	}
	if (!list->server_count)
		puts(_("server:         none; it starts with the first client"));
}

static void print_lines(const char *text, const char *before)
{
	while (*text) {
		int length = (int)strcspn(text, "\n");
		printf("%s%.*s\n", before, length, text);
		text += length + (text[length] == '\n');
	}
}

static void print_report(const struct ll_mps_desk *desk, const struct report *status)
{
	printf(_("daemon:         "));
	if (status->daemon.pid)
		printf(_("process %d, of user %lu"), (int)status->daemon.pid, (unsigned long)status->daemon.owner);
	else
		printf(_("not visible from here (another PID namespace)"));
	printf(_(", MPS v%u%s\n"), status->version.protocol,
	       status->version.has_static_partitions ? _(", knows static partitions") : "");
	if (*status->cgroup && strcmp(status->cgroup, "/") != 0)
		printf(_("control group:  %s, with whose end it ends\n"), status->cgroup);
	printf(_("pipe directory: %s\nlog directory:  %s\n"), desk->place.pipe, desk->place.log);
	print_cards(status);
	print_limits(status);
	print_servers(&status->list);
	if (status->partitions.length) {
		puts(_("static partitions:"));
		print_lines(status->partitions.buf, "  ");
	}
	print_clients(&status->list);
	print_lines(status->warnings.buf, _("warning: "));
}

static json_t *pack_cards(const struct report *status)
{
	json_t *uuids = json_array();
	for (size_t i = 0; i < status->card_count; i++)
		json_array_append_new(uuids, json_string(status->cards[i]->uuid));
	return uuids;
}

static int print_daemon(const struct ll_mps_desk *desk, const struct report *status, struct ll_err *err)
{
	json_t *pid = status->daemon.pid ? json_integer(status->daemon.pid) : json_null();
	json_t *cgroup = *status->cgroup ? json_string(status->cgroup) : json_null();
	json_t *percent = status->compute_percent > 0 ? ll_json_real(status->compute_percent, 1) : json_null();
	json_t *bytes = status->memory_bytes ? json_integer((json_int_t)status->memory_bytes) : json_null();
	return ll_json_line(
	    json_pack("{s:o, s:o, s:s, s:s, s:o, s:b, s:o, s:o, s:i, s:b, s:s}", "daemon", pid, "cgroup", cgroup,
		      "pipe_directory", desk->place.pipe, "log_directory", desk->place.log, "card_uuids",
		      pack_cards(status), "exclusive", status->is_exclusive, "compute_percent", percent,
		      "memory_limit_bytes", bytes, "protocol", (int)status->version.protocol, "has_static_partitions",
		      status->version.has_static_partitions, "static_partitions", status->partitions.buf),
	    err);
}

static int print_server(const struct ll_mps_server *server, struct ll_err *err)
{
	json_t *user = server->user != (uid_t)-1 ? json_integer(server->user) : json_null();
	json_t *percent = server->compute_percent > 0 ? ll_json_real(server->compute_percent, 1) : json_null();
	return ll_json_line(json_pack("{s:i, s:s, s:o, s:o}", "server", (int)server->pid, "status",
				      ll_mps_status_text(server->status), "user_id", user, "compute_percent", percent),
			    err);
}

static int print_report_json(const struct ll_mps_desk *desk, const struct report *status, struct ll_err *err)
{
	int rc = print_daemon(desk, status, err);
	for (size_t i = 0; !rc && i < status->list.server_count; i++)
		rc = print_server(&status->list.servers[i], err);
	if (!rc)
		rc = print_clients_json(&status->list, err);
	for (const char *line = status->warnings.buf; !rc && *line;) {
		size_t length = strcspn(line, "\n");
		rc = ll_json_line(json_pack("{s:s%}", "warning", line, length), err);
		line += length + (line[length] == '\n');
	}
	return rc;
}

/* ---- status ---- */

struct listing_args {
	bool json;
};

static const struct ll_option listing_options[] = {
    LL_OPTION_JSON(struct listing_args, json),
    LL_OPTION_END,
};

/* Adds a warning to the error of a missing daemon if a dead daemon left cards in exclusive mode. */
static int add_leftovers(const struct ll_mps_desk *desk, int rc, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	if (rc == -ECONNREFUSED && ll_mps_session_leftovers(&desk->session, &records, &count, NULL) == 0 && count)
		ll_err_hint(err, "cards are in exclusive mode for a daemon that is gone: `loadline mps stop` restores "
				 "their mode");
	return rc;
}

static int run_status(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct listing_args *args = data;
	uint64_t deadline_ns = ll_now_ns() + LL_MPS_ASK_NS;
	struct ll_mps_desk desk;
	struct report status = {.partitions = LL_STRBUF_INIT, .warnings = LL_STRBUF_INIT};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = add_leftovers(&desk, ll_mps_desk_need_daemon(&desk, deadline_ns, err), err);
	if (!rc)
		rc = read_report(&desk, deadline_ns, &status, err);
	if (!rc && args->json)
		rc = print_report_json(&desk, &status, err);
	else if (!rc)
		print_report(&desk, &status);
	ll_strbuf_fini(&status.partitions);
	ll_strbuf_fini(&status.warnings);
	ll_mps_list_fini(&status.list);
	free(status.cards);
	ll_mps_desk_fini(&desk);
	return rc;
}

const struct ll_command ll_mps_status = {
    .name = "status",
    .group = &ll_command_mps,
    .summary = N_("show the daemon, its servers and clients"),
    .description =
	N_("Shows the daemon that programs of this environment would join: its directories and cards, the "
	   "limits of new clients, its servers and their states, their clients, and static partitions if the "
	   "driver has them. It warns of a server in FAULT, of a server of another user, and of cards that were "
	   "left in exclusive mode.\n\n"
	   "With --json there is one line for the daemon and one for each server, client and warning. Without a "
	   "daemon the command fails, and says where it looked for one."),
    .options = listing_options,
    .args_size = sizeof(struct listing_args),
    .run = run_status,
};

/* ---- clients ---- */

static int run_clients(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct listing_args *args = data;
	uint64_t deadline_ns = ll_now_ns() + LL_MPS_ASK_NS;
	struct ll_mps_desk desk;
	struct ll_mps_list list = {0};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_desk_need_daemon(&desk, deadline_ns, err);
	if (!rc)
		rc = ll_mps_list_read(&desk.place, deadline_ns, &list, err);
	if (!rc && args->json)
		rc = print_clients_json(&list, err);
	else if (!rc)
		print_clients(&list);
	ll_mps_list_fini(&list);
	ll_mps_desk_fini(&desk);
	return rc;
}

const struct ll_command ll_mps_clients = {
    .name = "clients",
    .group = &ll_command_mps,
    .summary = N_("list the clients"),
    .description = N_("Lists the present clients: one line for each process and card."),
    .options = listing_options,
    .args_size = sizeof(struct listing_args),
    .run = run_clients,
};
