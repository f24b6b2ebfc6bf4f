/*
 * metrics.h - asks loadlined for the sums of message_metrics.h.
 */
#ifndef LOADLINE_PROTOCOL_METRICS_H
#define LOADLINE_PROTOCOL_METRICS_H

#include "protocol/client.h"

struct ll_metrics_sums {
	struct ll_message_policy_tenant *policies; /* of configured tenants */
	struct ll_message_policy_part *parts;
	struct ll_message_metrics_tenant *tenants;
	size_t policy_count, part_count, tenant_count;
	struct ll_message_metrics_end end;
};

/* Reads all rows. Call ll_metrics_sums_fini after success and after failure. -EACCES: serve.metrics is not configured,
 * and this user is no operator. -ENOTSUP: an older loadlined. */
int ll_metrics_sums_read(struct ll_metrics_sums *sums, struct ll_client *client, uint64_t deadline_ns,
			 struct ll_err *err);
void ll_metrics_sums_fini(struct ll_metrics_sums *sums);

#endif
