/* What the daemon does for a job whose monitor has lost its connection or has ended. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"
#include "daemon/claims.h"
#include "daemon/connection.h"
#include "daemon/death_watch.h"
#include "daemon/server.h"
#include "daemon/store.h"

#define RETURN_MS UINT64_C(5000) /* the time in which a monitor connects again */

struct keeper {
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none */
	uint64_t lost_ms;                 /* since when there is none, on the loop's clock */
	struct ll_death_watch *monitor;   /* NULL: it has ended, and the next one has not connected yet */
};

static struct keeper *keeper_of(const struct ll_job *job)
{
	return job->keeper;
}

uint32_t ll_keeper_monitor_pid(const struct ll_job *job)
{
	const struct keeper *keeper = keeper_of(job);
	return keeper->monitor ? (uint32_t)ll_process_id_of_fd(keeper->monitor->fd) : 0;
}

uint32_t ll_keeper_flags(const struct ll_job *job)
{
	const struct keeper *keeper = keeper_of(job);
	uint32_t flags = job->facts.flags & LL_JOB_NAMED;
	if (!keeper->monitor)
		flags |= LL_JOB_UNWATCHED;
	else if (!keeper->connection && uv_now(&keeper->server->loop) - keeper->lost_ms >= RETURN_MS)
		flags |= LL_JOB_UNRESPONSIVE;
	return flags;
}

void ll_keeper_end(struct ll_server *server, struct ll_job *job)
{
	struct keeper *keeper = keeper_of(job);
	uint64_t number = job->number;
	ll_store_remove(server, job);
	ll_claims_fini(server, job);
	ll_death_watch_close(keeper->monitor);
	free(keeper);
	ll_books_remove(&server->books, job);
	ll_watchers_tell_end(server, number);
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

bool ll_keeper_has_tree_ended(const struct ll_job *job)
{
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
static void replace_monitor(struct keeper *keeper)
{
	struct ll_job *job = keeper->job;
	struct ll_server *server = keeper->server;
	ll_death_watch_close(keeper->monitor);
	keeper->monitor = NULL;
	keeper->lost_ms = uv_now(&server->loop);
	bool is_unwatched = server->is_system || start_monitor(server, job);
	if (is_unwatched && ll_keeper_has_tree_ended(job))
		ll_keeper_end(server, job);
	ll_server_look(server);
}

static void on_death(void *data)
{
	replace_monitor(data);
}

void ll_keeper_disconnect(struct ll_server *server, struct ll_job *job)
{
	struct keeper *keeper = keeper_of(job);
	keeper->connection = NULL;
	keeper->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	if (keeper->monitor)
		ll_death_watch_start(keeper->monitor);
}

/* If a monitor cannot be watched, the function checks whether it has ended. If the next monitor does not connect, it is
 * started again. */
static bool needs_monitor(const struct keeper *keeper)
{
	if (keeper->monitor)
		return !keeper->monitor->is_polled && ll_process_has_ended(keeper->monitor->fd);
	return keeper->server->is_system || uv_now(&keeper->server->loop) - keeper->lost_ms >= RETURN_MS;
}

static bool keeper_tick(struct keeper *keeper)
{
	if (keeper->connection)
		return false;
	if (needs_monitor(keeper))
		replace_monitor(keeper);
	return true;
}

bool ll_keepers_tick(struct ll_server *server)
{
	bool is_needed = false;
	struct ll_job *next;
	for (struct ll_job *job = server->books.jobs; job; job = next) {
		next = job->next;
		is_needed |= keeper_tick(keeper_of(job));
	}
	return is_needed;
}

/* ---- registration ---- */

static struct keeper *new_keeper(struct ll_server *server, struct ll_job *job)
{
	struct keeper *keeper = calloc(1, sizeof *keeper);
	if (keeper)
		*keeper = (struct keeper){.server = server, .job = job};
	return keeper;
}

/* The pages are those of a former daemon, or new ones. */
static int open_pages(struct ll_server *server, const struct ll_job_call *call, struct ll_job *job)
{
	int rc = call->page_fds ? ll_pages_adopt(&job->pages, call->page_fds, &job->facts)
				: ll_pages_make(&job->pages, &job->facts);
	if (!rc)
		rc = ll_claims_adopt(server, job);
	if (!rc)
		ll_pages_announce(&job->pages, server->instance);
	return rc;
}

/* Adds an unknown job. The books own its descriptors only on success. */
static int add_job(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job)
{
	struct ll_job *job;
	int rc = ll_books_add(&server->books, call->facts, &job);
	if (rc)
		return rc;
	ll_message_text_set(job->department_tenant, sizeof job->department_tenant, call->department_tenant);
	job->keeper = new_keeper(server, job);
	rc = job->keeper ? open_pages(server, call, job) : -ENOMEM;
	if (!rc && call->process_fd >= 0)
		rc = ll_books_add_process(&server->books, job, call->process_fd, LL_PROCESS_FIRST);
	if (rc) {
		if (call->page_fds && job->pages.page) /* keep them unchanged for the next attempt */
			ll_pages_detach(&job->pages);
		ll_claims_fini(server, job);
		free(job->keeper);
		ll_books_remove(&server->books, job);
		return rc;
	}
	job->lifeline_fd = call->lifeline_fd;
	*ret_job = job;
	return 0;
}

int ll_keeper_register(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job)
{
	struct ll_job *job = ll_books_find_id(&server->books, call->facts->token[0]);
	bool is_known = job != NULL;
	if (is_known && (job->facts.uid != call->facts->uid || job->facts.token[1] != call->facts->token[1]))
		return -EPERM;
	if (is_known && keeper_of(job)->connection && keeper_of(job)->connection != call->connection)
		return -EBUSY;
	int monitor_fd = dup(call->monitor_fd);
	if (monitor_fd < 0)
		return -errno;
	int rc = is_known ? 0 : add_job(server, call, &job);
	struct ll_death_watch *watch =
	    rc ? NULL : ll_death_watch_new(&server->loop, monitor_fd, on_death, keeper_of(job));
	if (!watch) {
		close(monitor_fd);
		return rc ? rc : -ENOMEM;
	}
	struct keeper *keeper = keeper_of(job);
	ll_death_watch_close(keeper->monitor);
	keeper->monitor = watch;
	keeper->connection = call->connection;
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

int ll_keeper_restore(struct ll_server *server, const struct ll_job_call *call)
{
	struct ll_job *job;
	int rc = add_job(server, call, &job);
	if (rc)
		return rc;
	keeper_of(job)->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	ll_watchers_look(server);
	return 0;
}

void ll_keepers_fini(struct ll_server *server)
{
	while (server->books.jobs) {
		ll_pages_detach(&server->books.jobs->pages);
		ll_keeper_end(server, server->books.jobs);
	}
}
