/*
 * listing.h - the reply to LL_MESSAGE_POLICY: what a user may have by the configuration, and has, row by row.
 */
#ifndef LOADLINE_DAEMON_POLICY_LISTING_H
#define LOADLINE_DAEMON_POLICY_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_server;

/* How far the reply is. Zeroed, it begins. */
struct ll_policy_listing {
	uint64_t number;     /* of the configuration (policy.h) when the reply began */
	size_t tenant, part; /* the next ones; part 0: the tenant, 1: its budget, 2 and more: groups */
	bool is_whole;       /* of all tenants, whoever asks */
};

/* Makes the next row for the user. If another configuration came into force, the reply ends. Returns false with the
 * last row. */
bool ll_policy_listing_next(const struct ll_server *server, uint32_t uid, struct ll_policy_listing *listing,
			    union ll_message *ret_message);

#endif
