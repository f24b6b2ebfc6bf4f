#include "base/clock.h"
#include "cli/mps/report.h"

struct clients_args {
	bool json;
};

static const struct ll_option options[] = {
    LL_OPTION_JSON(struct clients_args, json),
    LL_OPTION_END,
};

static int run(void *data, const struct ll_operands *operands, struct ll_err *err)
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
    .summary = "list the clients",
    .description = "Lists the present clients: one line for each process and card.",
    .options = options,
    .args_size = sizeof(struct clients_args),
    .run = run,
};
