#include "protocol/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "protocol/client.h"

#define ADD_ROW(policy, rows, count, row) ll_client_add_row(&(policy)->rows, &(policy)->count, &(row), sizeof(row))

/* Returns 1 at the end. */
static int take_row(struct ll_policy *policy, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_POLICY_TENANT:
		return ADD_ROW(policy, tenants, tenant_count, message->policy_tenant);
	case LL_MESSAGE_POLICY_PART:
		return ADD_ROW(policy, parts, part_count, message->policy_part);
	case LL_MESSAGE_POLICY_BUDGET:
		return ADD_ROW(policy, budgets, budget_count, message->policy_budget);
	case LL_MESSAGE_POLICY_END:
		return 1;
	default:
		return 0;
	}
}

int ll_client_policy(struct ll_client *client, struct ll_policy *ret_policy, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message;
	*ret_policy = (struct ll_policy){0};
	if (!client->welcome.policy_since_s)
		return 0;
	ll_message_init(&message, LL_MESSAGE_POLICY);
	int rc = ll_client_send(client, &message, deadline_ns, err);
	while (!rc) {
		rc = ll_client_receive(client, &message, deadline_ns, err);
		if (!rc)
			rc = take_row(ret_policy, &message);
		if (rc == -ENOMEM)
			return ll_err_set(err, rc, "loadlined: %s", strerror(ENOMEM));
	}
	return rc == 1 ? 0 : rc;
}

const struct ll_message_policy_budget *ll_policy_budget(const struct ll_policy *policy, const char *tenant)
{
	for (size_t i = 0; i < policy->budget_count; i++) {
		if (strcmp(policy->budgets[i].tenant, tenant) == 0)
			return &policy->budgets[i];
	}
	return NULL;
}

void ll_policy_fini(struct ll_policy *policy)
{
	free(policy->tenants);
	free(policy->parts);
	free(policy->budgets);
	*policy = (struct ll_policy){0};
}
