#include "daemon/accounts/accounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accounts/database.h"
#include "accounts/history.h"
#include "accounts/report.h"
#include "base/err.h"
#include "daemon/core/connection.h"
#include "daemon/policy/policy.h"

struct ll_report_reading {
	struct ll_report_reading *next; /* of the server's */
	uv_work_t work;
	struct ll_server *server;
	struct ll_connection *connection; /* NULL: it has ended */
	uint32_t serial;                  /* of the request */
	bool is_history;                  /* asked, past: of it. Else query, report, prices */
	struct ll_history_query asked;
	struct ll_history past;
	char tenant[LL_NAME_SIZE];
	struct ll_use_query query;
	struct ll_use_report report;
	struct ll_use_prices prices;
	int rc;
	struct ll_err err;
	char path[LL_USE_PATH_SIZE];
};

_Static_assert((int)LL_PAST_NAME_SIZE == LL_NAME_SIZE && (int)LL_PAST_NAME_SIZE == LL_COMMAND_SIZE &&
		   (int)LL_PAST_CARDS_SIZE == LL_HISTORY_CARDS_SIZE && (int)LL_PAST_REQUEUED == LL_HISTORY_HOWS,
	       "a row has the whole job");
_Static_assert((int)LL_REPORT_KEY_SIZE == (int)LL_USE_SUM_KEY_SIZE, "a row has the whole key");

static void free_reading(struct ll_report_reading *reading)
{
	struct ll_report_reading **at = &reading->server->reports;
	while (*at && *at != reading)
		at = &(*at)->next;
	if (*at)
		*at = reading->next;
	ll_use_report_fini(&reading->report);
	ll_history_fini(&reading->past);
	free(reading);
}

static void read_in_thread(uv_work_t *work)
{
	struct ll_report_reading *reading = work->data;
	if (reading->is_history) {
		reading->rc = ll_history_read(reading->path, &reading->asked, &reading->past, &reading->err);
		return;
	}
	reading->rc = ll_use_report_read(&reading->report, reading->path, &reading->query, &reading->err);
	ll_use_report_sort(&reading->report, reading->query.by);
}

/* Makes a reading that is not started yet. */
static int new_reading(struct ll_connection *connection, struct ll_report_reading **ret_reading)
{
	struct ll_server *server = connection->server;
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	unsigned all = 0, own = 0;
	if (!server->accounting)
		return -ENOENT;
	/* Those of connections that have ended count too. */
	for (const struct ll_report_reading *at = server->reports; at; at = at->next) {
		all++;
		own += at->query.uid == connection->uid;
	}
	if (all >= LL_REPORTS_MAX || (connection->uid != 0 && own))
		return -EBUSY;
	/* `others: user-and-share` is about who has a card now, so that it can be asked for. What users did in the last
	 * weeks is another matter, and takes `others: all`. */
	bool sees_all = ll_department_is_operator(&server->department, connection->uid) ||
			(policy && policy->visibility.others == LL_CONFIG_SEE_ALL);
	struct ll_report_reading *reading = calloc(1, sizeof *reading);
	if (!reading)
		return -ENOMEM;
	reading->work.data = reading;
	reading->server = server;
	reading->connection = connection;
	reading->serial = connection->serial;
	reading->query = (struct ll_use_query){.is_of_one_user = !sees_all, .uid = connection->uid};
	snprintf(reading->path, sizeof reading->path, "%s", ll_accounting_path(server->accounting));
	*ret_reading = reading;
	return 0;
}

static void make_row(const struct ll_use_sum *sum, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_REPORT_ROW);
	struct ll_message_report_row *row = &ret_message->report_row;
	row->granted_s = sum->granted_s;
	row->used_s = sum->used_s;
	row->idle_held_s = sum->idle_held_s;
	row->memory_byte_s = sum->memory_byte_s;
	row->joules = sum->joules;
	row->lent_s = sum->lent_s;
	row->borrowed_s = sum->borrowed_s;
	row->number = sum->number;
	row->borrowed_byte_s = sum->borrowed_byte_s;
	ll_message_text_set(row->key, sizeof row->key, sum->key);
}

/* What a user runs, and how it calls it, is hidden as in `queue`. */
static void make_history_row(const struct ll_past_job *job, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_HISTORY_ROW);
	struct ll_message_history_row *row = &ret_message->history_row;
	row->number = job->number;
	row->came_s = job->came_s;
	row->began_s = job->began_s;
	row->ended_s = job->ended_s;
	row->memory_bytes = job->memory_bytes;
	row->compute_permille = job->compute_permille;
	row->time_ns = job->time_ns;
	row->used_ns = job->used_ns;
	row->memory_byte_s = job->memory_byte_s;
	row->uid = job->uid;
	row->by_uid = job->by_uid;
	row->how = job->how;
	row->status = job->status;
	row->card_count = job->card_count;
	row->class = job->class;
	row->borrowed_ns = job->borrowed_ns;
	row->borrowed_byte_s = job->borrowed_byte_s;
	row->slept_ns = job->slept_ns;
	row->recalls = job->recalls;
	row->lendable_ns = job->lendable_ns;
	ll_message_text_set(row->tenant, sizeof row->tenant, job->tenant);
	ll_message_text_set(row->cards, sizeof row->cards, job->cards);
	ll_message_text_set(row->why, sizeof row->why, job->why);
	ll_message_text_set(row->command, sizeof row->command, job->command);
	ll_message_text_set(row->name, sizeof row->name, job->name);
	ll_message_text_set(row->project, sizeof row->project, job->project);
}

/* Sends what has been read: the rows, the prices, and the end or why there is nothing. */
static void send_reading(struct ll_connection *connection, const struct ll_report_reading *reading)
{
	union ll_message row;
	for (size_t i = 0; !reading->rc && i < reading->report.count; i++) {
		make_row(&reading->report.sums[i], &row);
		ll_connection_row(connection, &row);
	}
	for (size_t i = 0; !reading->rc && i < reading->past.count; i++) {
		make_history_row(&reading->past.jobs[i], &row);
		ll_connection_row(connection, &row);
	}
	if (!reading->rc && ll_use_prices_are_set(&reading->prices)) {
		ll_message_init(&row, LL_MESSAGE_REPORT_PRICES);
		row.report_prices.gpu_hour = reading->prices.gpu_hour;
		row.report_prices.gib_hour = reading->prices.gib_hour;
		ll_message_text_set(row.report_prices.currency, sizeof row.report_prices.currency,
				    reading->prices.currency);
		ll_connection_row(connection, &row);
	}
	ll_message_init(&row, reading->rc ? LL_MESSAGE_REFUSED : LL_MESSAGE_REPORT_END);
	if (reading->rc) {
		row.refused.code = reading->rc;
		ll_message_text_set(row.refused.reason, sizeof row.refused.reason, reading->err.text);
	} else {
		row.report_end.rows = (uint32_t)(reading->report.count + reading->past.count);
		row.report_end.has_more = reading->past.has_more;
		row.report_end.is_of_one_user = reading->query.is_of_one_user;
	}
	ll_connection_row(connection, &row);
}

static void on_read(uv_work_t *work, int status)
{
	struct ll_report_reading *reading = work->data;
	struct ll_connection *connection = reading->connection;
	if (status)
		reading->rc = -ECANCELED;
	if (connection) {
		connection->report = NULL;
		connection->serial = reading->serial;
		send_reading(connection, reading);
		ll_connection_look(connection);
	}
	free_reading(reading);
}

static int start_reading(struct ll_connection *connection, struct ll_report_reading *reading)
{
	struct ll_server *server = connection->server;
	if (uv_queue_work(&server->loop, &reading->work, read_in_thread, on_read)) {
		free_reading(reading);
		return -EBUSY;
	}
	reading->next = server->reports;
	server->reports = reading;
	connection->report = reading;
	return 0;
}

static int start_report(struct ll_connection *connection, const struct ll_message_report *message)
{
	struct ll_server *server = connection->server;
	struct ll_report_reading *reading;
	int rc = new_reading(connection, &reading);
	if (rc)
		return rc;
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	if (policy)
		reading->prices =
		    (struct ll_use_prices){policy->accounts.price_gpu_hour, policy->accounts.price_gib_hour, ""};
	if (policy && policy->accounts.currency)
		ll_message_text_set(reading->prices.currency, sizeof reading->prices.currency,
				    policy->accounts.currency);
	reading->query.since_s = message->since_s;
	reading->query.until_s = message->until_s;
	reading->query.by = (enum ll_use_by)message->by;
	return start_reading(connection, reading);
}

/* Who may not see the jobs of others asks for its own, and gets nothing if it asks for another's. */
static int start_history(struct ll_connection *connection, const struct ll_message_history *message)
{
	struct ll_report_reading *reading;
	int rc = new_reading(connection, &reading);
	if (rc)
		return rc;
	bool is_of_one_user = reading->query.is_of_one_user;
	bool is_others = is_of_one_user && message->has_uid && message->uid != connection->uid;
	reading->is_history = true;
	ll_message_text_set(reading->tenant, sizeof reading->tenant, message->tenant);
	reading->asked = (struct ll_history_query){.since_s = message->since_s,
						   .until_s = is_others ? message->since_s : message->until_s,
						   .has_uid = message->has_uid || is_of_one_user,
						   .uid = is_of_one_user ? connection->uid : message->uid,
						   .tenant = reading->tenant[0] ? reading->tenant : NULL,
						   .how = message->how,
						   .most = message->most < LL_PAST_MOST ? message->most : LL_PAST_MOST};
	return start_reading(connection, reading);
}

bool ll_report_handle(struct ll_connection *connection, const union ll_message *message)
{
	if (connection->role != LL_ROLE_COMMAND || connection->report)
		return false;
	int rc = message->header.kind == LL_MESSAGE_REPORT ? start_report(connection, &message->report)
							   : start_history(connection, &message->history);
	if (rc == -ENOENT)
		ll_connection_refuse(connection, rc, "this loadlined has no accounts");
	else if (rc)
		ll_connection_refuse(connection, -EBUSY, "loadlined reads or sends other reports now");
	return true;
}

void ll_report_disconnect(struct ll_connection *connection)
{
	if (connection->report)
		connection->report->connection = NULL;
	connection->report = NULL;
}
