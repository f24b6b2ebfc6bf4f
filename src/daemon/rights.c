#include "daemon/rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/connection.h"
#include "daemon/department_jobs.h"
#include "daemon/fair_room.h"
#include "daemon/unread.h"
#include "daemon/users.h"

/* Descriptors of a job: its pages, its first process, its monitor, the lifeline. Descriptors of a connection: the
 * socket, the process of the other side, and a copy in a death watch, which may stay after the connection. */
enum { FDS_OF_JOB = 6, FDS_OF_CONNECTION = 3 };
/* So many the users share at most, since each connection and job takes time and memory too. */
enum { FDS_OF_USERS = 1 << 18 };
/* For loadlined itself and for root: one of PART_KEPT, and at most FDS_KEPT. */
enum { PART_KEPT = 8, FDS_KEPT = 256 };

/* Of one user, with its subordinate uids. */
struct counting {
	const struct ll_server *server;
	uint32_t owner;
	struct ll_fair_room room;
};

static void count_fds(void *data, uint32_t uid, uint64_t count)
{
	struct counting *counting = data;
	bool is_user = ll_subordinates_find(&counting->server->subordinates, uid) == counting->owner;
	ll_fair_room_count(&counting->room, is_user, count);
}

/* The descriptors of a reply that waits are copies. The kernel limits those that were sent and not read to the same
 * number, for all peers together. */
static void count_connections(struct counting *counting)
{
	for (const struct ll_connection *at = counting->server->connections; at; at = at->next)
		count_fds(counting, at->uid, FDS_OF_CONNECTION + at->pending_fd_count + at->sent_fds);
}

static void count_jobs(struct counting *counting)
{
	for (const struct ll_job *job = counting->server->books.jobs; job; job = job->next)
		count_fds(counting, job->facts.uid, FDS_OF_JOB);
	for (const struct ll_user *user = counting->server->users; user; user = user->next)
		count_fds(counting, user->job->facts.uid, !user->connection);
}

static uint64_t fds_of_users(void)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	getrlimit(RLIMIT_NOFILE, &limit);
	uint64_t kept = limit.rlim_cur / PART_KEPT < FDS_KEPT ? limit.rlim_cur / PART_KEPT : FDS_KEPT;
	return limit.rlim_cur - kept < FDS_OF_USERS ? limit.rlim_cur - kept : FDS_OF_USERS;
}

static struct ll_fair_room count_room(const struct ll_server *server, uint32_t owner)
{
	struct counting counting = {.server = server, .owner = owner, .room = {.size = fds_of_users()}};
	count_connections(&counting);
	count_jobs(&counting);
	ll_shares_count(&server->residency.shares, count_fds, &counting);
	ll_unread_count(server->unread, count_fds, &counting);
	return counting.room;
}

/* A new connection may become that of a job. */
bool ll_rights_have_room(struct ll_server *server, uint32_t uid)
{
	if (!server->is_system || uid == 0)
		return true;
	struct ll_fair_room room = count_room(server, ll_subordinates_owner(&server->subordinates, uid));
	return ll_fair_room_permits(&room, FDS_OF_JOB);
}

/* A flood of one user is counted once a turn. */
bool ll_rights_have_room_at_door(struct ll_server *server, uint32_t uid)
{
	struct ll_door *door = &server->door;
	uint32_t owner = ll_subordinates_owner(&server->subordinates, uid);
	if (!server->is_system || uid == 0)
		return true;
	if (door->room_turn != door->turn || door->room_owner != owner)
		door->room = count_room(server, owner);
	door->room_turn = door->turn;
	door->room_owner = owner;
	bool has_room = ll_fair_room_permits(&door->room, FDS_OF_JOB);
	if (has_room)
		ll_fair_room_count(&door->room, true, FDS_OF_CONNECTION);
	return has_room;
}

bool ll_rights_have_room_for_job(const struct ll_connection *connection, uint64_t id, const int *page_fds)
{
	return ll_books_find_id(&connection->server->books, id) ||
	       ll_department_was_admitted(connection->server, page_fds) ||
	       ll_rights_have_room(connection->server, connection->uid);
}

/* ---- who may change what ---- */

static const struct ll_config_policy *policy_of(const struct ll_connection *connection)
{
	return ll_department_policy(&connection->server->department);
}

static bool is_own(const struct ll_connection *connection, uint32_t uid)
{
	return !connection->server->is_system || connection->uid == uid;
}

bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job)
{
	return is_own(connection, job->facts.uid) ||
	       ll_department_is_admin(&connection->server->department, connection->uid);
}

bool ll_rights_to_move(const struct ll_connection *connection, const struct ll_job *job)
{
	return ll_rights_over(connection, job) ||
	       ll_department_is_operator(&connection->server->department, connection->uid);
}

bool ll_rights_over_process(const struct ll_connection *connection, int process_fd)
{
	struct ll_process_users users;
	return connection->uid == 0 || ll_process_read_users(process_fd, &users) || is_own(connection, users.real) ||
	       is_own(connection, users.saved);
}

void ll_rights_note(const struct ll_connection *connection, const struct ll_job *job, const char *verb,
		    const char *reason)
{
	const struct ll_department *department = &connection->server->department;
	if (is_own(connection, job->facts.uid) || !policy_of(connection))
		return;
	const struct ll_identity *identity = ll_identities_find(&department->identities, connection->uid, NULL);
	const char *right = connection->uid == 0                                  ? "as root"
			    : ll_department_is_admin(department, connection->uid) ? "as an admin"
										  : "as an operator";
	ll_warn("user %s (uid %" PRIu32 "), %s, %s job %" PRIu64 " (%s) of user %" PRIu32 ", tenant %s: %s",
		identity ? ll_identity_name(identity) : "?", connection->uid, right, verb, job->number,
		job->facts.command, job->facts.uid, job->department_tenant, *reason ? reason : "no reason given");
}

/* ---- who sees what ---- */

/* Sees all rows whole. */
static bool sees_all(const struct ll_connection *connection)
{
	return !connection->server->is_system ||
	       ll_department_is_operator(&connection->server->department, connection->uid);
}

bool ll_rights_see_others(const struct ll_connection *connection)
{
	const struct ll_config_policy *policy = policy_of(connection);
	return !policy || policy->visibility.others != LL_CONFIG_SEE_NOTHING || sees_all(connection);
}

static const struct ll_job *job_of(const struct ll_connection *connection, uint64_t number)
{
	const struct ll_job *job = ll_books_after(&connection->server->books, number - 1);
	return job && job->number == number ? job : NULL;
}

bool ll_rights_see_command(const struct ll_connection *connection, uint32_t uid, const char *tenant_name)
{
	const struct ll_department *department = &connection->server->department;
	const struct ll_config_policy *policy = policy_of(connection);
	if (is_own(connection, uid) || ll_department_is_operator(department, connection->uid) || !policy ||
	    policy->visibility.commands == LL_CONFIG_COMMANDS_ALL)
		return true;
	const struct ll_config_tenant *tenant = ll_department_find(department, tenant_name);
	return policy->visibility.commands == LL_CONFIG_COMMANDS_TENANT && tenant &&
	       ll_department_has(department, &tenant->members, connection->uid);
}

static bool sees_command(const struct ll_connection *connection, const struct ll_job *job)
{
	return ll_rights_see_command(connection, job->facts.uid, job->department_tenant);
}

/* Hides from other users which programs a user runs, and beside which programs they run. */
static void trim_card(const struct ll_connection *connection, const struct ll_job *job, struct ll_message_card_row *row)
{
	const struct ll_config_policy *policy = policy_of(connection);
	if (policy && policy->visibility.others == LL_CONFIG_SEE_ALL && sees_command(connection, job))
		return;
	row->program = row->others = row->company_ns = row->company_launches = 0;
}

/* Without --tenant the name of a job is made of its command. */
static void hide_command(struct ll_job_facts *facts, uint64_t number)
{
	char name[LL_NAME_SIZE];
	ll_message_text_set(facts->command, sizeof facts->command, "");
	ll_message_text_set(facts->cgroup, sizeof facts->cgroup, "");
	snprintf(name, sizeof name, "job-%" PRIu64, number);
	if (!(facts->flags & LL_JOB_NAMED))
		ll_message_text_set(facts->tenant, sizeof facts->tenant, name);
}

static void trim_job(const struct ll_connection *connection, const struct ll_job *job, struct ll_message_job_row *row)
{
	row->job.token[0] = row->number;
	row->job.token[1] = 0;
	if (!sees_command(connection, job)) {
		hide_command(&row->job, job->number);
		ll_message_text_set(row->project, sizeof row->project, "");
	}
}

/* The name of an unnamed tenant is that of its one job. */
static void trim_tenant(const struct ll_connection *connection, struct ll_message_tenant_row *row)
{
	for (const struct ll_job *job = connection->server->books.jobs; job; job = job->next) {
		if (job->tenant->number != row->number || job->tenant->is_named || sees_command(connection, job))
			continue;
		snprintf(row->name, sizeof row->name, "job-%" PRIu64, job->number);
	}
}

static uint64_t job_number_of(const union ll_message *row)
{
	switch (row->header.kind) {
	case LL_MESSAGE_JOB_ROW:
		return row->job_row.number;
	case LL_MESSAGE_PROCESS_ROW:
		return row->process_row.job_number;
	case LL_MESSAGE_CARD_ROW:
		return row->card_row.job_number;
	case LL_MESSAGE_CLAIM_ROW:
		return row->claim_row.job_number;
	default:
		return 0;
	}
}

static bool hide_row(struct ll_connection *connection, const union ll_message *row)
{
	connection->listing.jobs -= row->header.kind == LL_MESSAGE_JOB_ROW;
	connection->listing.processes -= row->header.kind == LL_MESSAGE_PROCESS_ROW;
	connection->listing.tenants -= row->header.kind == LL_MESSAGE_TENANT_ROW;
	return false;
}

static bool trim_row_of_job(struct ll_connection *connection, const struct ll_job *job, union ll_message *row)
{
	if (!ll_rights_see_others(connection))
		return hide_row(connection, row);
	if (row->header.kind == LL_MESSAGE_CARD_ROW)
		trim_card(connection, job, &row->card_row);
	else if (row->header.kind == LL_MESSAGE_JOB_ROW)
		trim_job(connection, job, &row->job_row);
	else if (row->header.kind == LL_MESSAGE_CLAIM_ROW && !sees_command(connection, job))
		ll_message_text_set(row->claim_row.note, sizeof row->claim_row.note, "");
	return true;
}

/* Where the file of another user's program is, and what started it, is not told. */
static bool trim_process(const struct ll_connection *connection, struct ll_message_sense_process *row)
{
	const struct ll_config_policy *policy = policy_of(connection);
	const struct ll_job *job = row->job_number ? job_of(connection, row->job_number) : NULL;
	if (is_own(connection, row->uid))
		return true;
	if (!ll_rights_see_others(connection))
		return false;
	memset(row->program, 0, sizeof row->program);
	memset(row->cgroup, 0, sizeof row->cgroup);
	memset(row->ancestors, 0, sizeof row->ancestors);
	if (job ? !sees_command(connection, job) : policy && policy->visibility.commands != LL_CONFIG_COMMANDS_ALL)
		memset(row->command, 0, sizeof row->command);
	return true;
}

bool ll_rights_trim(struct ll_connection *connection, union ll_message *row)
{
	if (sees_all(connection))
		return true;
	if (row->header.kind == LL_MESSAGE_LIST_END)
		row->list_end.hides_others = !ll_rights_see_others(connection);
	if (row->header.kind == LL_MESSAGE_SENSE_PROCESS)
		return trim_process(connection, &row->sense_process);
	if (row->header.kind == LL_MESSAGE_TENANT_ROW) {
		if (is_own(connection, row->tenant_row.uid))
			return true;
		if (!ll_rights_see_others(connection))
			return hide_row(connection, row);
		trim_tenant(connection, &row->tenant_row);
		return true;
	}
	uint64_t number = job_number_of(row);
	const struct ll_job *job = number ? job_of(connection, number) : NULL;
	if (number && !job)
		return hide_row(connection, row);
	return !job || is_own(connection, job->facts.uid) || trim_row_of_job(connection, job, row);
}
