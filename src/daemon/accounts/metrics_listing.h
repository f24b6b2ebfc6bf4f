/*
 * metrics_listing.h - the reply to LL_MESSAGE_METRICS (protocol/message_metrics.h), row by row.
 *
 * The sums are about tenants, and are the same for everybody. They are told to everybody if the configuration has
 * serve.metrics, since they are then public; else to operators alone.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_METRICS_LISTING_H
#define LOADLINE_DAEMON_ACCOUNTS_METRICS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/policy/listing.h"
#include "protocol/message.h"

struct ll_connection;
struct ll_server;

/* How far the reply is. */
struct ll_metrics_listing {
	struct ll_policy_listing policy;
	bool has_policy;      /* its rows were sent */
	size_t tenant, total; /* the next ones: of the policy, and of the sums of use */
};

/* The other side has sent METRICS: the reply begins, or a refusal is sent. Returns true. */
bool ll_metrics_list(struct ll_connection *connection);

/* Makes the next row. Returns false with the last one. */
bool ll_metrics_listing_next(const struct ll_server *server, struct ll_metrics_listing *listing,
			     union ll_message *ret_message);

#endif
