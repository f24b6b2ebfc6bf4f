#include "protocol/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static bool is_amount(double value)
{
	return isfinite(value) && value >= 0;
}

bool ll_metrics_tenant_is_valid(const struct ll_message_metrics_tenant *row)
{
	return is_amount(row->granted_s) && is_amount(row->used_s) && is_amount(row->idle_held_s) &&
	       is_amount(row->memory_byte_s) && ll_message_text_is_valid(row->name, sizeof row->name);
}

bool ll_metrics_end_is_valid(const struct ll_message_metrics_end *end)
{
	return end->accounts <= LL_METRICS_ACCOUNTS_OFF && ll_message_text_is_valid(end->address, sizeof end->address);
}

/* Returns 1 at the end. */
static int take_row(struct ll_metrics_sums *sums, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_POLICY_TENANT:
		return ll_client_add_row(&sums->policies, &sums->policy_count, &message->policy_tenant,
					 sizeof message->policy_tenant);
	case LL_MESSAGE_POLICY_PART:
		return ll_client_add_row(&sums->parts, &sums->part_count, &message->policy_part,
					 sizeof message->policy_part);
	case LL_MESSAGE_METRICS_TENANT:
		return ll_client_add_row(&sums->tenants, &sums->tenant_count, &message->metrics_tenant,
					 sizeof message->metrics_tenant);
	case LL_MESSAGE_METRICS_END:
		sums->end = message->metrics_end;
		return 1;
	default:
		return 0;
	}
}

int ll_metrics_sums_read(struct ll_metrics_sums *sums, struct ll_client *client, uint64_t deadline_ns,
			 struct ll_err *err)
{
	union ll_message message;
	*sums = (struct ll_metrics_sums){0};
	ll_message_init(&message, LL_MESSAGE_METRICS);
	int rc = ll_client_send(client, &message, deadline_ns, err);
	while (!rc) {
		rc = ll_client_receive(client, &message, deadline_ns, err);
		if (rc)
			return rc;
		rc = take_row(sums, &message);
		if (rc == -ENOMEM)
			return ll_err_set(err, rc, "loadlined: %s", strerror(ENOMEM));
	}
	return rc == 1 ? 0 : rc;
}

void ll_metrics_sums_fini(struct ll_metrics_sums *sums)
{
	free(sums->policies);
	free(sums->parts);
	free(sums->tenants);
	*sums = (struct ll_metrics_sums){0};
}
