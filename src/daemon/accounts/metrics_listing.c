#include <errno.h>
#include <string.h>

#include "daemon/accounts/accounts.h"
#include "daemon/core/connection.h"
#include "daemon/queue/queue.h"
#include "daemon/residency/residency.h"

/* ---- tenants ---- */

/* name empty: of jobs without a configured tenant. */
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
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		if (strcmp(job->department_tenant, name) != 0)
			continue;
		uint32_t lending = ll_lending_of(server, job);
		row->running++;
		row->borrowing += lending & LL_QUEUE_IS_LENT && !(lending & LL_QUEUE_IS_RECALLED);
		row->recalled += (lending & LL_QUEUE_IS_RECALLED) != 0;
		for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
			uint64_t used_bytes = ll_memory_used_bytes(job->claims->cards[i]);
			row->memory_bytes += used_bytes;
			row->borrowed_bytes += lending == LL_QUEUE_IS_LENT ? used_bytes : 0;
		}
	}
	ll_admission_count_waiting(server, name, &row->waiting, &row->oldest_wait_s);
	ll_message_text_set(row->name, sizeof row->name, name);
}

/* A tenant that is not configured any more keeps its sums. */
static void send_tenants(struct ll_connection *connection)
{
	const struct ll_server *server = connection->server;
	const struct ll_department *department = &server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	const struct ll_use_totals *totals = ll_accounting_totals(server->accounting);
	union ll_message row;
	for (size_t i = 0; policy && i < policy->tenants.count; i++) {
		make_tenant(server, policy->tenants.items[i].name, &row);
		ll_connection_row(connection, &row);
	}
	for (size_t i = 0; totals && i < totals->count; i++) {
		const char *name = totals->items[i].tenant;
		if (*name && ll_department_find(department, name))
			continue;
		make_tenant(server, name, &row);
		ll_connection_row(connection, &row);
	}
}

/* ---- the machine ---- */

static void make_end(const struct ll_server *server, union ll_message *ret_message)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	ll_message_init(ret_message, LL_MESSAGE_METRICS_END);
	struct ll_message_metrics_end *end = &ret_message->metrics_end;
	end->has_queue = ll_admission_out_of_use(server, &end->out_of_use);
	end->accounts = ll_accounting_state(server->accounting, &end->rows, &end->lost_rows);
	end->hides_others = policy && policy->visibility.others == LL_CONFIG_SEE_NOTHING;
	size_t count;
	const struct ll_message_sense_process *rows = ll_machine_processes(server, &count);
	for (size_t i = 0; i < count; i++)
		end->ungoverned +=
		    (rows[i].flags & (LL_SENSE_IS_UNGOVERNED | LL_SENSE_IS_ALLOWED)) == LL_SENSE_IS_UNGOVERNED;
	if (policy && policy->serve.metrics && strlen(policy->serve.metrics) < sizeof end->address)
		ll_message_text_set(end->address, sizeof end->address, policy->serve.metrics);
	if (policy && policy->serve.page && strlen(policy->serve.page) < sizeof end->page)
		ll_message_text_set(end->page, sizeof end->page, policy->serve.page);
}

void ll_list_metrics(struct ll_connection *connection)
{
	union ll_message end;
	if (!ll_rights_see_sums(connection)) {
		ll_connection_refuse(connection, -EACCES, "neither serve.metrics nor serve.page is configured");
		return;
	}
	ll_admission_refresh(connection->server);
	ll_list_policy_rows(connection, 0, true);
	send_tenants(connection);
	make_end(connection->server, &end);
	ll_connection_row(connection, &end);
}
