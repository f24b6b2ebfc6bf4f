#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/process.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"

enum { PLACE_TRIES = 2 };

static uint64_t number_of(const struct ll_job *job)
{
	struct stat st = {0};
	fstat(job->pages.page_fd, &st);
	return st.st_ino;
}

/* ---- which job a process is in ---- */

/* A user chooses the page of a job that began under the user's own daemon. So two jobs of one user may have one
 * number; the first counts. */
static struct ll_job *find_job(const struct ll_server *server, uint32_t uid, uint64_t number)
{
	struct ll_job *job = server->books.jobs;
	while (job && (job->facts.uid != uid || number_of(job) != number))
		job = job->next;
	return job;
}

/* 0: it has ended, or /proc does not have it. The group of another process that has got the pid is not taken for this
 * one's: the pidfd is read before and after. */
static pid_t pid_of(const struct ll_server *server, int process_fd)
{
	return process_fd < 0 || !server->has_own_proc ? 0 : ll_process_id_of_fd(process_fd);
}

static bool read_group(const struct ll_server *server, int process_fd, char ret_group[LL_GROUP_SIZE])
{
	pid_t pid = pid_of(server, process_fd);
	return pid && ll_group_of_process(pid, ret_group) == 0 && pid_of(server, process_fd) == pid;
}

/* ---- containers ---- */

static bool read_container(const struct ll_server *server, int process_fd, char ret_group[LL_CGROUP_SIZE])
{
	pid_t pid = pid_of(server, process_fd);
	return pid && ll_cgroup_read(pid, ret_group, LL_CGROUP_SIZE) == 0 && pid_of(server, process_fd) == pid;
}

/* A path that may be cut is none. */
static bool is_whole(const char *group)
{
	return group[0] == '/' && group[1] && strlen(group) + 1 < LL_CGROUP_SIZE;
}

int ll_job_group_of_container(struct ll_server *server, const struct ll_job_facts *facts, int process_fd,
			      int registrar_fd, char ret_group[LL_CGROUP_SIZE])
{
	char group[LL_CGROUP_SIZE], outer[LL_CGROUP_SIZE];
	*ret_group = '\0';
	if (!(facts->flags & LL_JOB_CONTAINER))
		return 0;
	if (!server->is_system || !read_container(server, process_fd, group) || !is_whole(group) ||
	    (read_container(server, registrar_fd, outer) && ll_group_contains(group, outer)))
		return -EINVAL;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		if (*job->container && job->facts.token[0] != facts->token[0] &&
		    (ll_group_contains(group, job->container) || ll_group_contains(job->container, group)))
			return -EEXIST;
	}
	memcpy(ret_group, group, sizeof group);
	return 0;
}

/* The processes of a user's container have the uids of that user; those of root's have any. */
static struct ll_job *find_container(struct ll_server *server, int process_fd)
{
	char group[LL_CGROUP_SIZE];
	struct ll_process_users users;
	if (!read_container(server, process_fd, group) || ll_process_read_users(process_fd, &users))
		return NULL;
	uint32_t owner = ll_subordinates_owner(&server->subordinates, users.real);
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		if (*job->container && ll_group_contains(job->container, group) &&
		    (job->facts.uid == 0 || job->facts.uid == owner))
			return job;
	}
	return NULL;
}

/* ---- jobs of Slurm ---- */

/* As read_group, for the group of a job of Slurm. */
static bool read_slurm_group(const struct ll_server *server, int process_fd, char ret_group[LL_GROUP_SIZE])
{
	pid_t pid = pid_of(server, process_fd);
	return pid && ll_cgroup_read_slurm_job(pid, ret_group, LL_GROUP_SIZE) == 0 && pid_of(server, process_fd) == pid;
}

/* Slurm's plugin has put the first process of the job into the control group of Slurm's job (doc/slurm.md). A user's
 * own job in a job of Slurm (`loadline run`) is younger. */
static struct ll_job *find_slurm_job(const struct ll_server *server, int process_fd)
{
	char group[LL_GROUP_SIZE], own[LL_GROUP_SIZE];
	if (!read_slurm_group(server, process_fd, group))
		return NULL;
	struct ll_job *job = server->books.jobs;
	while (job && (!read_slurm_group(server, job->process_fd, own) || strcmp(own, group) != 0))
		job = job->next;
	return job;
}

struct ll_job *ll_job_group_find(struct ll_server *server, int process_fd)
{
	const struct ll_groups *groups = &server->keeper.groups;
	char group[LL_GROUP_SIZE];
	uint32_t uid;
	uint64_t number;
	struct ll_job *of_container = find_container(server, process_fd);
	ll_keeper_link_greet(&server->keeper);
	if (of_container)
		return of_container;
	bool is_in_group = groups->kind != LL_GROUPS_NONE && read_group(server, process_fd, group) &&
			   ll_group_find_job(groups, group, &uid, &number);
	struct ll_job *job = is_in_group ? find_job(server, uid, number) : find_slurm_job(server, process_fd);
	if (job && is_in_group)
		job->has_group = true;
	return job;
}

void ll_job_groups_look(const struct ll_server *server)
{
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		char group[LL_GROUP_SIZE], own[LL_GROUP_SIZE];
		if (job->has_group || !read_group(server, job->process_fd, group) ||
		    ll_group_path(&server->keeper.groups, job->facts.uid, number_of(job), own))
			continue;
		job->has_group = ll_group_contains(own, group);
	}
}

int ll_job_group_prove(const struct ll_connection *connection, uint64_t id, struct ll_job **ret_job)
{
	struct ll_server *server = connection->server;
	struct ll_job *named = id ? ll_books_find_id(&server->books, id) : NULL;
	struct ll_job *home = server->is_system ? ll_job_group_find(server, connection->process_fd) : NULL;
	if (home && (home == named || *home->container || home->facts.uid == connection->uid)) {
		*ret_job = home;
		return 0;
	}
	if (!named)
		return home ? -EPERM : -EAGAIN;
	/* A process that is in no group may use the token of its user's job. Root may use that of another user's job. A
	 * job of root may have become another user: `run -- gosu app`. */
	bool is_own = !server->is_system || connection->uid == named->facts.uid;
	if (!is_own && (named->has_group || (connection->uid != 0 && named->facts.uid != 0)))
		return -EPERM;
	*ret_job = named;
	return 0;
}

/* ---- requests to the keeper ---- */

/* Once for each loadlined: where the kernel has no such limits, it has them for no job. */
static void on_limited(struct ll_server *server, int code, const char *reason, uint64_t number)
{
	const struct ll_job *job = ll_books_find_number(&server->books, number);
	if (!code || !job || server->keeper.has_told_no_device_memory)
		return;
	server->keeper.has_told_no_device_memory = code == -ENOTSUP;
	ll_log(code == -ENOTSUP ? LL_LOG_INFO : LL_LOG_WARN,
	       "job %llu of uid %u: its control group has no limit of device memory: %s",
	       (unsigned long long)job->number, job->facts.uid, reason);
}

void ll_job_group_limit(struct ll_server *server, const struct ll_job *job)
{
	const struct ll_keeper_request request = {.call = LL_KEEPER_DEVICE_MEMORY,
						  .uid = job->facts.uid,
						  .job = number_of(job),
						  .bytes = job->facts.limits.memory_bytes};
	if (job->has_group && !server->keeper.has_told_no_device_memory)
		ll_keeper_link_send(&server->keeper, &request, -1, on_limited, job->number);
}

static void on_placed(struct ll_server *server, int code, const char *reason, uint64_t number)
{
	struct ll_job *job = ll_books_find_number(&server->books, number);
	if (!job)
		return;
	job->has_group = !code;
	if (job->facts.limits.memory_bytes)
		ll_job_group_limit(server, job);
	/* The next keeper is asked, once. */
	if (code == -ECONNRESET && job->place_tries < PLACE_TRIES && ll_job_group_place(server, job))
		return;
	if (code && server->keeper.state != LL_KEEPER_REFUSES)
		ll_log(LL_LOG_WARN, "job %llu of uid %u has no control group, and is known by its token only: %s",
		       (unsigned long long)job->number, job->facts.uid, reason);
	struct ll_connection *connection = server->connections;
	while (connection && connection->job != job)
		connection = connection->next;
	if (connection && connection->has_pending) /* it does not read; it connects again */
		shutdown(connection->fd, SHUT_RDWR);
	else if (connection)
		ll_job_group_on_placed(connection, job);
}

bool ll_job_group_place(struct ll_server *server, struct ll_job *job)
{
	job->place_tries++;
	struct ll_keeper_request request = {.call = LL_KEEPER_PLACE, .uid = job->facts.uid, .job = number_of(job)};
	int process_fd = job->process_fd;
	if (!ll_process_is_pidfd(process_fd) || find_job(server, request.uid, request.job) != job)
		return false;
	request.pid = ll_process_id_of_fd(process_fd);
	return request.pid && ll_keeper_link_send(&server->keeper, &request, process_fd, on_placed, job->number);
}

static void on_removed(struct ll_server *server, int code, const char *reason, uint64_t number)
{
	(void)reason;
	struct ll_job *job = ll_books_find_number(&server->books, number);
	if (!job)
		return;
	job->has_group |= code == -EBUSY;
	ll_job_on_group_removed(server, job, code == -EBUSY || code == -ECONNRESET);
}

bool ll_job_group_remove(struct ll_server *server, const struct ll_job *job)
{
	const struct ll_keeper_request request = {
	    .call = LL_KEEPER_REMOVE, .uid = job->facts.uid, .job = number_of(job)};
	return ll_keeper_link_send(&server->keeper, &request, -1, on_removed, job->number);
}

static void on_signalled(struct ll_server *server, int code, const char *reason, uint64_t number)
{
	struct ll_job *job = ll_books_find_number(&server->books, number);
	if (!job)
		return;
	job->has_group |= !code;
	/* -ENOENT: there is none, or it is empty and so gone. -ECONNRESET: the next keeper is asked. */
	if (!code || code == -ENOENT || code == -ECONNRESET)
		return;
	job->is_group_lost = true;
	ll_warn("job %" PRIu64 ": the keeper cannot signal its control group: %s", job->number, reason);
}

bool ll_job_group_signal(struct ll_server *server, const struct ll_job *job, int number)
{
	const struct ll_keeper_request request = {
	    .call = LL_KEEPER_SIGNAL_GROUP, .uid = job->facts.uid, .job = number_of(job), .signal = number};
	return !job->is_group_lost && ll_keeper_link_send(&server->keeper, &request, -1, on_signalled, job->number);
}
