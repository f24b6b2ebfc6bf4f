#include "hold/governed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/client.h"

static int fill_list(const struct ll_list *rows, const char *uuid, struct ll_governed **ret_list, size_t *ret_count)
{
	size_t count = 0;
	struct ll_governed *list = calloc(rows->claim_count + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < rows->claim_count; i++) {
		const struct ll_message_claim_row *row = &rows->claims[i];
		const struct ll_message_job_row *job = ll_list_job(rows, row->job_number);
		if (!row->pid || !job || strcmp(row->uuid, uuid) != 0)
			continue;
		struct ll_governed *governed = &list[count++];
		governed->pid = (pid_t)row->pid;
		governed->has_work = row->wanting_ns != 0;
		snprintf(governed->tenant, sizeof governed->tenant, "%s", job->job.tenant);
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* If the daemon's own pid differs from the pid that this process sees, the daemon is in another PID namespace. */
static int request_list(struct ll_client *client, const struct ll_places *places, uint64_t wait_ns,
			struct ll_list *ret_rows)
{
	uint64_t deadline_ns = ll_now_ns() + wait_ns;
	int rc =
	    ll_client_open(client, ll_places_choose(places), LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (rc)
		return rc;
	if ((pid_t)client->welcome.pid != client->pid)
		return -ESRCH;
	return ll_client_list(client, ret_rows, deadline_ns, NULL);
}

int ll_governed_list(const struct ll_places *places, const char *uuid, uint64_t wait_ns, struct ll_governed **ret_list,
		     size_t *ret_count)
{
	struct ll_client client;
	struct ll_list rows = {0};
	int rc = request_list(&client, places, wait_ns, &rows);
	if (rc == 0)
		rc = fill_list(&rows, uuid, ret_list, ret_count);
	ll_list_fini(&rows);
	ll_client_close(&client);
	return rc;
}
