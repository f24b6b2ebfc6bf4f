#include "protocol/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

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
