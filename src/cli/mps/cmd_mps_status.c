#include <errno.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/mps/report.h"

/* ---- status ---- */

struct status_args {
	bool json;
};

static const struct ll_option status_options[] = {
    LL_OPTION_JSON(struct status_args, json),
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
	const struct status_args *args = data;
	uint64_t deadline_ns = ll_now_ns() + LL_MPS_ASK_NS;
	struct ll_mps_desk desk;
	struct ll_mps_report status = {.partitions = LL_STRBUF_INIT, .warnings = LL_STRBUF_INIT};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = add_leftovers(&desk, ll_mps_desk_need_daemon(&desk, deadline_ns, err), err);
	if (!rc)
		rc = ll_mps_report_read(&desk, deadline_ns, &status, err);
	if (!rc && args->json)
		rc = ll_mps_report_print_json(&desk, &status, err);
	else if (!rc)
		ll_mps_report_print(&desk, &status);
	ll_mps_report_fini(&status);
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
    .options = status_options,
    .args_size = sizeof(struct status_args),
    .run = run_status,
};

/* ---- clients ---- */

struct clients_args {
	bool json;
};

static const struct ll_option clients_options[] = {
    LL_OPTION_JSON(struct clients_args, json),
    LL_OPTION_END,
};

static int run_clients(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct clients_args *args = data;
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
		rc = ll_mps_clients_print_json(&list, err);
	else if (!rc)
		ll_mps_clients_print(&list);
	ll_mps_list_fini(&list);
	ll_mps_desk_fini(&desk);
	return rc;
}

const struct ll_command ll_mps_clients = {
    .name = "clients",
    .group = &ll_command_mps,
    .summary = N_("list the clients"),
    .description = N_("Lists the present clients: one line for each process and card."),
    .options = clients_options,
    .args_size = sizeof(struct clients_args),
    .run = run_clients,
};
