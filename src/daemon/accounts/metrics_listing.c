#include "daemon/accounts/metrics_listing.h"

#include <errno.h>
#include <string.h>

#include "daemon/accounts/use_totals.h"
#include "daemon/accounts/write.h"
#include "daemon/core/connection.h"
#include "daemon/queue/admission.h"
#include "daemon/residency/memory.h"

bool ll_metrics_list(struct ll_connection *connection)
{
	const struct ll_department *department = &connection->server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	bool is_public = policy && policy->serve.metrics;
	if (!is_public && !ll_department_is_operator(department, connection->uid)) {
		ll_connection_refuse(connection, -EACCES, "serve.metrics is not configured");
		return true;
	}
	ll_admission_refresh(connection->server);
	connection->is_listing_metrics = true;
	connection->metrics_listing = (struct ll_metrics_listing){.policy.is_whole = true};
	return true;
}

/* ---- tenants ---- */

/* name empty: of jobs without a configured tenant. */
static void count_jobs(const struct ll_server *server, const char *name, struct ll_message_metrics_tenant *row)
{
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		const struct ll_job_claims *claims = job->claims;
		if (strcmp(job->department_tenant, name) != 0)
			continue;
		row->running++;
		for (unsigned i = 0; claims && i < claims->card_count; i++)
			row->memory_bytes += ll_memory_used_bytes(claims->cards[i]);
	}
}

static void make_tenant(const struct ll_server *server, const char *name, union ll_message *ret_message)
{
	const struct ll_use_totals *totals = ll_accounting_totals(server->accounting);
	const struct ll_use_total *total = totals ? ll_use_totals_find(totals, name) : NULL;
	ll_message_init(ret_message, LL_MESSAGE_METRICS_TENANT);
	struct ll_message_metrics_tenant *row = &ret_message->metrics_tenant;
	if (total) {
		row->granted_s = total->granted_s;
		row->used_s = total->used_s;
		row->idle_held_s = total->idle_held_s;
		row->memory_byte_s = total->memory_byte_s;
	}
	count_jobs(server, name, row);
	ll_admission_count_waiting(server, name, &row->waiting, &row->oldest_wait_s);
	ll_message_text_set(row->name, sizeof row->name, name);
}

/* A tenant that is not configured any more keeps its sums. */
static bool make_next_tenant(const struct ll_server *server, struct ll_metrics_listing *listing,
			     union ll_message *ret_message)
{
	const struct ll_department *department = &server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	const struct ll_use_totals *totals = ll_accounting_totals(server->accounting);
	if (policy && listing->policy.number == department->number && listing->tenant < policy->tenants.count) {
		make_tenant(server, policy->tenants.items[listing->tenant++].name, ret_message);
		return true;
	}
	while (totals && listing->total < totals->count) {
		const char *name = totals->items[listing->total++].tenant;
		if (*name && ll_department_find(department, name))
			continue;
		make_tenant(server, name, ret_message);
		return true;
	}
	return false;
}

/* ---- the machine ---- */

static uint32_t count_ungoverned(const struct ll_server *server)
{
	size_t count;
	uint32_t found = 0;
	const struct ll_message_sense_process *rows = ll_machine_processes(server, &count);
	for (size_t i = 0; i < count; i++)
		found += (rows[i].flags & (LL_SENSE_IS_UNGOVERNED | LL_SENSE_IS_ALLOWED)) == LL_SENSE_IS_UNGOVERNED;
	return found;
}

static void make_end(const struct ll_server *server, union ll_message *ret_message)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	ll_message_init(ret_message, LL_MESSAGE_METRICS_END);
	struct ll_message_metrics_end *end = &ret_message->metrics_end;
	end->has_queue = ll_admission_out_of_use(server, &end->out_of_use);
	end->accounts = ll_accounting_state(server->accounting, &end->rows, &end->lost_rows);
	end->hides_others = policy && policy->visibility.others == LL_CONFIG_SEE_NOTHING;
	end->ungoverned = count_ungoverned(server);
	if (policy && policy->serve.metrics && strlen(policy->serve.metrics) < sizeof end->address)
		ll_message_text_set(end->address, sizeof end->address, policy->serve.metrics);
}

bool ll_metrics_listing_next(const struct ll_server *server, struct ll_metrics_listing *listing,
			     union ll_message *ret_message)
{
	if (!listing->has_policy) {
		if (ll_policy_listing_next(server, 0, &listing->policy, ret_message))
			return true;
		listing->has_policy = true;
	}
	if (make_next_tenant(server, listing, ret_message))
		return true;
	make_end(server, ret_message);
	return false;
}
