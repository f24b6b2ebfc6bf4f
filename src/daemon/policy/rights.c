#include "daemon/policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"

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

static void count_jobs(struct counting *counting)
{
	for (const struct ll_job *job = counting->server->books.jobs; job; job = job->next)
		count_fds(counting, job->facts.uid, FDS_OF_JOB);
	for (const struct ll_user *user = counting->server->users; user; user = user->next)
		count_fds(counting, user->job->facts.uid, !user->connection);
}

static struct ll_fair_room count_room(const struct ll_server *server, uint32_t owner)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	getrlimit(RLIMIT_NOFILE, &limit);
	uint64_t kept = limit.rlim_cur / PART_KEPT < FDS_KEPT ? limit.rlim_cur / PART_KEPT : FDS_KEPT;
	uint64_t most = limit.rlim_cur - kept < FDS_OF_USERS ? limit.rlim_cur - kept : FDS_OF_USERS;
	struct counting counting = {.server = server, .owner = owner, .room = {.size = most}};
	/* The descriptors of a reply that waits are copies. The kernel limits those that were sent and not read to the
	 * same number, for all peers together. */
	for (const struct ll_connection *at = server->connections; at; at = at->next)
		count_fds(&counting, at->uid, FDS_OF_CONNECTION + at->pending_fd_count + at->sent_fds);
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
	       is_own(connection, users.saved) ||
	       ll_subordinates_find(&connection->server->subordinates, users.real) == connection->uid;
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

bool ll_rights_know(const struct ll_connection *connection, uint32_t uid)
{
	return is_own(connection, uid) || ll_rights_see_others(connection);
}

/* Whose a row is. */
struct row_owner {
	bool is_nobodys; /* it tells of no user */
	bool is_gone;    /* the job has ended meanwhile */
	uint32_t uid;
	const char *tenant; /* the configured one of the job; empty: none, or unknown */
	uint64_t number;    /* of the job, as users are told */
	bool is_named;      /* the user gave its tenant's name */
};

static struct row_owner owner_by_job(const struct ll_job *job)
{
	return (struct row_owner){.uid = job->facts.uid,
				  .tenant = job->department_tenant,
				  .number = job->number,
				  .is_named = job->tenant->is_named};
}

static struct row_owner owner_of(const struct ll_connection *connection, const union ll_message *row)
{
	const struct ll_books *books = &connection->server->books;
	const struct ll_job *job = NULL;
	uint64_t number;
	switch (row->header.kind) {
	case LL_MESSAGE_JOB_ROW:
		number = row->job_row.number;
		break;
	case LL_MESSAGE_CARD_ROW:
		number = row->card_row.job_number;
		break;
	case LL_MESSAGE_CLAIM_ROW:
		number = row->claim_row.job_number;
		break;
	case LL_MESSAGE_TENANT_ROW:
		for (job = books->jobs; job && job->tenant->number != row->tenant_row.number;)
			job = job->next;
		return job ? owner_by_job(job) : (struct row_owner){.uid = row->tenant_row.uid, .tenant = ""};
	case LL_MESSAGE_DECISION_JOB: /* the log of decisions outlives the jobs */
		number = row->decision_job.id;
		job = ll_books_find_number(books, number);
		return job ? owner_by_job(job)
			   : (struct row_owner){.uid = connection->row_uid, .tenant = "", .number = number};
	case LL_MESSAGE_QUEUE_ROW:
		return (struct row_owner){
		    .uid = row->queue_row.uid, .tenant = row->queue_row.tenant, .number = row->queue_row.number};
	case LL_MESSAGE_HISTORY_ROW:
		return (struct row_owner){
		    .uid = row->history_row.uid, .tenant = row->history_row.tenant, .number = row->history_row.number};
	case LL_MESSAGE_SENSE_PROCESS:
		job = ll_books_find_number(books, row->sense_process.job_number);
		return (struct row_owner){.uid = row->sense_process.uid, .tenant = job ? job->department_tenant : ""};
	default:
		return (struct row_owner){.is_nobodys = true};
	}
	job = ll_books_find_number(books, number);
	return job ? owner_by_job(job) : (struct row_owner){.is_gone = true};
}

/* What the other side, which does not see all, may not know of another user. */
static unsigned hidden_from(const struct ll_connection *connection, const struct row_owner *owner)
{
	const struct ll_department *department = &connection->server->department;
	const struct ll_config_policy *policy = policy_of(connection);
	const struct ll_config_tenant *tenant = owner->tenant[0] ? ll_department_find(department, owner->tenant) : NULL;
	bool is_colleague = tenant && ll_department_has(department, &tenant->members, connection->uid);
	bool sees_commands = !policy || policy->visibility.commands == LL_CONFIG_COMMANDS_ALL ||
			     (policy->visibility.commands == LL_CONFIG_COMMANDS_TENANT && is_colleague);
	bool sees_company = sees_commands && policy && policy->visibility.others == LL_CONFIG_SEE_ALL;
	unsigned hidden = LL_ROW_OWNER;
	if (!sees_commands)
		hidden |= LL_ROW_PROGRAM;
	if (!sees_commands && !owner->is_named)
		hidden |= LL_ROW_MADE_NAME;
	if (!sees_company)
		hidden |= LL_ROW_COMPANY;
	return hidden;
}

bool ll_rights_see_sums(const struct ll_connection *connection)
{
	const struct ll_config_policy *policy = policy_of(connection);
	return (policy && (policy->serve.metrics || policy->serve.page)) ||
	       ll_department_is_operator(&connection->server->department, connection->uid);
}

/* Counts the other side's own jobs alone, where it sees nothing of others and no sums. */
static void trim_welcome(const struct ll_connection *connection, struct ll_message_welcome *welcome)
{
	const struct ll_server *server = connection->server;
	if (ll_rights_see_others(connection) || ll_rights_see_sums(connection))
		return;
	welcome->jobs = welcome->tenants = welcome->events_waiting = 0;
	welcome->last_job = welcome->bad_messages = 0;
	welcome->connections = connection->visitor->connections;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		bool is_its = job->facts.uid == connection->uid;
		welcome->jobs += is_its;
		welcome->last_job = is_its ? job->number : welcome->last_job;
	}
	for (const struct ll_tenant *tenant = server->books.tenants; tenant; tenant = tenant->next)
		welcome->tenants += tenant->uid == connection->uid;
}

bool ll_rights_trim(struct ll_connection *connection, union ll_message *row)
{
	char name[LL_NAME_SIZE];
	if (sees_all(connection))
		return true;
	if (row->header.kind == LL_MESSAGE_LIST_END)
		row->list_end.hides_others = !ll_rights_see_others(connection);
	if (row->header.kind == LL_MESSAGE_WELCOME)
		trim_welcome(connection, &row->welcome);
	struct row_owner owner = owner_of(connection, row);
	if (owner.is_nobodys || (!owner.is_gone && is_own(connection, owner.uid)))
		return true;
	if (owner.is_gone || !ll_rights_know(connection, owner.uid))
		return false;
	snprintf(name, sizeof name, "job-%" PRIu64, owner.number);
	ll_row_hide(row, hidden_from(connection, &owner), name);
	/* A job is named by its token; who may not know it names it by its number. */
	if (row->header.kind == LL_MESSAGE_JOB_ROW)
		row->job_row.job.token[0] = row->job_row.number;
	return true;
}
