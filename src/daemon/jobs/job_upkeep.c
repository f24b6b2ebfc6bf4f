/* The upkeep of a job: it is registered and restored, its monitor is watched, it ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "daemon/accounts/write.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/core/store.h"
#include "daemon/jobs/claims.h"
#include "daemon/jobs/death_watch.h"
#include "daemon/jobs/job_group.h"
#include "daemon/policy/promises.h"
#include "daemon/queue/admission.h"

#define RETURN_MS UINT64_C(5000) /* the time in which a monitor connects again */

struct upkeep {
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none */
	uint64_t lost_ms;                 /* since when there is none, on the loop's clock */
	bool is_removing;                 /* the keeper has been asked to remove its group, and has not replied */
	bool has_remaining;               /* its monitor has reported its end, and there are processes in its group */
	struct ll_death_watch *monitor;   /* NULL: it has ended, and the next one has not connected yet */
};

static struct upkeep *upkeep_of(const struct ll_job *job)
{
	return job->upkeep;
}

uint32_t ll_job_monitor_pid(const struct ll_job *job)
{
	const struct upkeep *upkeep = upkeep_of(job);
	return upkeep->monitor ? (uint32_t)ll_process_id_of_fd(upkeep->monitor->fd) : 0;
}

uint32_t ll_job_flags(const struct ll_job *job)
{
	const struct upkeep *upkeep = upkeep_of(job);
	uint32_t flags = job->facts.flags & LL_JOB_NAMED;
	flags |= job->has_group ? LL_JOB_HAS_GROUP : 0U;
	if (!upkeep->monitor)
		flags |= LL_JOB_UNWATCHED;
	else if (!upkeep->connection && uv_now(&upkeep->server->loop) - upkeep->lost_ms >= RETURN_MS)
		flags |= LL_JOB_UNRESPONSIVE;
	return flags;
}

/* Removes the job from the books. */
static void forget_job(struct ll_server *server, struct ll_job *job)
{
	struct upkeep *upkeep = upkeep_of(job);
	uint64_t number = job->number;
	ll_accounting_end_job(server->accounting, job); /* asks the queue what the job asked for */
	ll_admission_end(server, job);
	ll_store_remove(server, job);
	ll_claims_fini(server, job);
	ll_death_watch_close(upkeep->monitor);
	free(upkeep);
	ll_books_remove(&server->books, job);
	ll_watchers_tell_end(server, number);
}

/* A process in the job's group may have a new environment, no lifeline, and a parent that has ended. The monitor does
 * not know it, and ends. */
void ll_job_end(struct ll_server *server, struct ll_job *job)
{
	struct upkeep *upkeep = upkeep_of(job);
	if (upkeep->is_removing)
		return;
	if (!ll_job_group_remove(server, job)) {
		forget_job(server, job);
		return;
	}
	upkeep->is_removing = true;
	ll_death_watch_close(upkeep->monitor);
	upkeep->monitor = NULL;
	upkeep->connection = NULL;
	upkeep->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
}

void ll_job_abandon(struct ll_server *server, struct ll_job *job)
{
	struct ll_connection *connection = upkeep_of(job)->connection;
	if (connection) {
		connection->job = NULL;
		shutdown(connection->fd, SHUT_RDWR);
	}
	forget_job(server, job);
	ll_server_look(server);
}

void ll_job_on_group_removed(struct ll_server *server, struct ll_job *job, bool is_to_ask_again)
{
	struct upkeep *upkeep = upkeep_of(job);
	upkeep->is_removing = false;
	upkeep->has_remaining = is_to_ask_again;
	if (is_to_ask_again) /* at the next tick */
		server->wants_tick = true;
	else
		forget_job(server, job);
	ll_server_look(server);
}

/* ---- a monitor that has ended ---- */

/* Whether the other end of a pipe is closed. -1: systemd has closed the descriptor, because it is. */
static bool has_hung_up(int fd)
{
	if (fd < 0)
		return true;
	struct pollfd end = {.fd = fd, .events = 0};
	return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR);
}

bool ll_job_has_tree_ended(const struct ll_job *job)
{
	const struct upkeep *upkeep = upkeep_of(job);
	if (upkeep && upkeep->has_remaining)
		return false;
	for (const struct ll_job_process *process = job->processes; process; process = process->next) {
		if (!ll_process_has_ended(process->fd))
			return false;
	}
	return has_hung_up(job->lifeline_fd);
}

/* The new monitor reads the job from the socket, and registers it as the old one did. */
static int start_monitor(struct ll_server *server, const struct ll_job *job)
{
	int ends[2];
	union ll_message message;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	const int fds[] = {job->pages.page_fd, job->pages.orders_fd};
	ll_message_init(&message, LL_MESSAGE_JOB);
	message.job.job = job->facts;
	int rc = ll_message_send(ends[0], &message, fds, 2);
	if (!rc)
		rc = ll_monitor_start(ends[1], job->lifeline_fd, job->processes->fd, &server->place, &server->programs,
				      NULL);
	close(ends[0]);
	close(ends[1]);
	return rc;
}

/* The end of a monitor does not end its job: nothing of the job is freed while one of its processes may live. The next
 * monitor watches the job. The system's daemon starts no monitor, because it would have another uid than the job; it
 * watches the job itself. */
static void replace_monitor(struct upkeep *upkeep)
{
	struct ll_job *job = upkeep->job;
	struct ll_server *server = upkeep->server;
	ll_death_watch_close(upkeep->monitor);
	upkeep->monitor = NULL;
	upkeep->lost_ms = uv_now(&server->loop);
	bool is_unwatched = server->is_system || start_monitor(server, job);
	if (is_unwatched && ll_job_has_tree_ended(job))
		ll_job_end(server, job);
	ll_server_look(server);
}

static void on_death(void *data)
{
	replace_monitor(data);
}

void ll_job_disconnect(struct ll_server *server, struct ll_job *job)
{
	struct upkeep *upkeep = upkeep_of(job);
	upkeep->connection = NULL;
	upkeep->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	if (upkeep->monitor)
		ll_death_watch_start(upkeep->monitor);
}

/* If a monitor cannot be watched, the function checks whether it has ended. If the next monitor does not connect, it is
 * started again. */
static bool needs_monitor(const struct upkeep *upkeep)
{
	if (upkeep->monitor)
		return !upkeep->monitor->is_polled && ll_process_has_ended(upkeep->monitor->fd);
	return upkeep->server->is_system || uv_now(&upkeep->server->loop) - upkeep->lost_ms >= RETURN_MS;
}

static bool upkeep_tick(struct upkeep *upkeep)
{
	if (upkeep->connection)
		return false;
	if (upkeep->has_remaining)
		ll_job_end(upkeep->server, upkeep->job);
	else if (needs_monitor(upkeep))
		replace_monitor(upkeep);
	return true;
}

bool ll_jobs_tick(struct ll_server *server)
{
	bool is_needed = false;
	struct ll_job *next;
	for (struct ll_job *job = server->books.jobs; job; job = next) {
		uint64_t number = job->number;
		next = job->next;
		is_needed |= job->stop.why != NULL;
		if (job->stop.why)
			ll_job_stop_step(server, job, &job->stop);
		if (ll_books_after(&server->books, number - 1) == job)
			is_needed |= upkeep_tick(upkeep_of(job));
	}
	return is_needed;
}

/* ---- registration ---- */

static struct upkeep *new_upkeep(struct ll_server *server, struct ll_job *job)
{
	struct upkeep *upkeep = calloc(1, sizeof *upkeep);
	if (upkeep)
		*upkeep = (struct upkeep){.server = server, .job = job};
	return upkeep;
}

/* The pages are those of a former daemon, or new ones. */
static int open_pages(struct ll_server *server, const struct ll_job_call *call, struct ll_job *job)
{
	int rc = call->page_fds ? ll_pages_adopt(&job->pages, call->page_fds, &job->facts)
				: ll_pages_make(&job->pages, &job->facts);
	bool is_brought = !rc && call->page_fds && call->connection;
	if (is_brought) { /* with the limits that were admitted: the user may have written others since */
		job->facts.limits = call->facts->limits;
		ll_pages_write_limits(&job->pages, &job->facts.limits);
	}
	if (!rc)
		rc = ll_claims_adopt(server, job);
	if (!rc && is_brought)
		ll_promises_check_brought(server, job);
	if (!rc)
		ll_pages_announce(&job->pages, server->instance);
	return rc;
}

/* Adds an unknown job. The books own its descriptors only on success. */
static int add_job(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job)
{
	struct ll_job *job;
	int rc = ll_books_add(&server->books, call->facts, ll_admission_number(server, call->facts), &job);
	if (rc)
		return rc;
	ll_message_text_set(job->department_tenant, sizeof job->department_tenant, call->department_tenant);
	job->said = call->said;
	job->began_s = (int64_t)(ll_wall_ns() / LL_NS_PER_S);
	ll_message_text_set(job->project, sizeof job->project, call->project);
	ll_message_text_set(job->name, sizeof job->name, call->name);
	job->upkeep = new_upkeep(server, job);
	rc = job->upkeep ? open_pages(server, call, job) : -ENOMEM;
	if (!rc && call->process_fd >= 0)
		rc = ll_books_add_process(&server->books, job, call->process_fd, LL_PROCESS_FIRST);
	if (rc) {
		if (call->page_fds && job->pages.page) /* keep them unchanged for the next attempt */
			ll_pages_detach(&job->pages);
		ll_claims_fini(server, job);
		free(job->upkeep);
		ll_books_remove(&server->books, job);
		return rc;
	}
	job->lifeline_fd = call->lifeline_fd;
	*ret_job = job;
	return 0;
}

int ll_job_read_brought(const struct ll_server *server, const struct ll_job_call *call, struct ll_job_facts *facts)
{
	if (!call->page_fds || ll_books_find_id(&server->books, facts->token[0]))
		return 0;
	return ll_pages_read_limits(call->page_fds, facts->uid, &facts->limits);
}

int ll_job_register(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job)
{
	struct ll_job *job = ll_books_find_id(&server->books, call->facts->token[0]);
	bool is_known = job != NULL;
	if (is_known && (job->facts.uid != call->facts->uid || job->facts.token[1] != call->facts->token[1]))
		return -EPERM;
	if (is_known && upkeep_of(job)->connection && upkeep_of(job)->connection != call->connection)
		return -EBUSY;
	int monitor_fd = fcntl(call->monitor_fd, F_DUPFD_CLOEXEC, 0);
	if (monitor_fd < 0)
		return -errno;
	/* Before the job: one in the books that is refused would own descriptors that the caller closes. */
	struct ll_death_watch *watch = ll_death_watch_new(&server->loop, monitor_fd, on_death, NULL);
	if (!watch) {
		close(monitor_fd);
		return -ENOMEM;
	}
	int rc = is_known ? 0 : add_job(server, call, &job);
	if (rc) {
		ll_death_watch_close(watch);
		return rc;
	}
	struct upkeep *upkeep = upkeep_of(job);
	watch->data = upkeep;
	ll_death_watch_close(upkeep->monitor);
	upkeep->monitor = watch;
	upkeep->connection = call->connection;
	ll_message_text_set(job->department_tenant, sizeof job->department_tenant, call->department_tenant);
	if (is_known) {
		close(call->process_fd);
		close(call->lifeline_fd);
	}
	*ret_job = job;
	if (!is_known) {
		ll_store_add(server, job);
		ll_watchers_look(server);
	}
	return 0;
}

int ll_job_restore(struct ll_server *server, const struct ll_job_call *call)
{
	struct ll_job *job;
	int rc = add_job(server, call, &job);
	if (rc)
		return rc;
	upkeep_of(job)->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	ll_watchers_look(server);
	return 0;
}

void ll_jobs_fini(struct ll_server *server)
{
	while (server->books.jobs) {
		ll_pages_detach(&server->books.jobs->pages);
		forget_job(server, server->books.jobs);
	}
}
