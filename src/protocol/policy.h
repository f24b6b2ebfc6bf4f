/*
 * policy.h - what the user of a command may have, and has, by the configuration that loadlined has in force.
 */
#ifndef LOADLINE_PROTOCOL_POLICY_H
#define LOADLINE_PROTOCOL_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/message_policy.h"

struct ll_client;
struct ll_err;

struct ll_policy {
	struct ll_message_policy_tenant *tenants; /* those of the user; for admins and operators all */
	struct ll_message_policy_part *parts;
	struct ll_message_policy_budget *budgets;
	size_t tenant_count, part_count, budget_count;
};

/* Reads it; it is empty if no configuration is in force. The caller calls ll_policy_fini after success and after
 * failure. */
int ll_client_policy(struct ll_client *client, struct ll_policy *ret_policy, uint64_t deadline_ns, struct ll_err *err);

/* Returns the budget of a tenant; NULL: it has none. */
const struct ll_message_policy_budget *ll_policy_budget(const struct ll_policy *policy, const char *tenant);

void ll_policy_fini(struct ll_policy *policy);

#endif
