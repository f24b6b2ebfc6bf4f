#include "daemon/rights.h"

#include <sys/resource.h>

#include "daemon/connection.h"
#include "daemon/server.h"

/* Descriptors of a job: its pages, its first process, its monitor, the lifeline. Descriptors of a connection: the
 * socket, the process of the other side, and a copy in a death watch. */
enum { FDS_OF_JOB = 6, FDS_OF_CONNECTION = 3 };

bool ll_rights_have_room(const struct ll_server *server, uint32_t uid)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	uint64_t used = 0;
	if (!server->is_system || uid == 0)
		return true;
	for (const struct ll_connection *connection = server->connections; connection; connection = connection->next)
		used += connection->uid == uid ? FDS_OF_CONNECTION : 0;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next)
		used += job->facts.uid == uid ? FDS_OF_JOB : 0;
	getrlimit(RLIMIT_NOFILE, &limit);
	return used < limit.rlim_cur / 2;
}

static bool is_over_user(const struct ll_connection *connection, uint32_t uid)
{
	return !connection->server->is_system || connection->uid == 0 || connection->uid == uid;
}

bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job)
{
	return is_over_user(connection, job->facts.uid);
}

/* Hides from other users which programs a user runs, and beside which programs they run. */
static void trim_card(const struct ll_connection *connection, struct ll_message_card_row *row)
{
	const struct ll_job *job = ll_books_after(&connection->server->books, row->job_number - 1);
	if (!job || job->number != row->job_number || !is_over_user(connection, job->facts.uid))
		row->program = row->others = row->company_ns = row->company_launches = 0;
}

void ll_rights_trim(const struct ll_connection *connection, union ll_message *row)
{
	if (row->header.kind == LL_MESSAGE_CARD_ROW)
		trim_card(connection, &row->card_row);
	if (row->header.kind != LL_MESSAGE_JOB_ROW || is_over_user(connection, row->job_row.job.uid))
		return;
	row->job_row.job.token[0] = row->job_row.number;
	row->job_row.job.token[1] = 0;
}
