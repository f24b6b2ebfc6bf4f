#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/process_id.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"

/* The upkeep of a job: it is registered and restored, its monitor is watched, it ends. */

#define RETURN_MS UINT64_C(5000) /* the time in which a monitor connects again */

struct ll_upkeep {
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none */
	uint64_t lost_ms;                 /* since when there is none, on the loop's clock */
	bool is_removing;                 /* the keeper has been asked to remove its group, and has not replied */
	bool has_remaining;               /* its monitor has reported its end, and there are processes in its group */
	struct ll_death_watch *monitor;   /* NULL: it has ended, and the next one has not connected yet */
};

uint32_t ll_job_monitor_pid(const struct ll_job *job)
{
	const struct ll_upkeep *upkeep = job->upkeep;
	return upkeep->monitor ? (uint32_t)ll_process_id_of_fd(upkeep->monitor->fd) : 0;
}

uint32_t ll_job_flags(const struct ll_job *job)
{
	const struct ll_upkeep *upkeep = job->upkeep;
	uint32_t flags = job->facts.flags & (LL_JOB_NAMED | LL_JOB_CONTAINER);
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
	struct ll_upkeep *upkeep = job->upkeep;
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
	struct ll_upkeep *upkeep = job->upkeep;
	if (upkeep->is_removing)
		return;
	if (*job->container || !ll_job_group_remove(server, job)) {
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

void ll_job_on_group_removed(struct ll_server *server, struct ll_job *job, bool is_to_ask_again)
{
	struct ll_upkeep *upkeep = job->upkeep;
	upkeep->is_removing = false;
	upkeep->has_remaining = is_to_ask_again;
	if (is_to_ask_again) /* at the next tick */
		server->wants_tick = true;
	else
		forget_job(server, job);
	ll_server_look(server);
}

/* ---- a monitor that has ended ---- */

bool ll_job_has_tree_ended(const struct ll_job *job)
{
	const struct ll_upkeep *upkeep = job->upkeep;
	if (upkeep && upkeep->has_remaining)
		return false;
	/* Whether the other end of the pipe is closed. */
	struct pollfd end = {.fd = job->lifeline_fd, .events = 0};
	return ll_process_has_ended(job->process_fd) && poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR);
}

void ll_job_describe(const struct ll_job *job, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_JOB);
	struct ll_message_job *message = &ret_message->job;
	message->job = job->facts;
	message->said = job->said;
	memcpy(message->project, job->project, sizeof message->project);
	memcpy(message->name, job->name, sizeof message->name);
	memcpy(message->pod, job->pod, sizeof message->pod);
}

/* The new monitor reads the job from the socket, and registers it as the old one did. */
static int start_monitor(struct ll_server *server, const struct ll_job *job)
{
	int ends[2];
	union ll_message message;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	const int fds[] = {job->pages.page_fd, job->pages.orders_fd};
	ll_job_describe(job, &message);
	int rc = ll_message_send(ends[0], &message, fds, 2);
	if (!rc)
		rc = ll_monitor_start(ends[1], job->lifeline_fd, job->process_fd, &server->place, &server->programs,
				      NULL);
	close(ends[0]);
	close(ends[1]);
	return rc;
}

/* The end of a monitor does not end its job: nothing of the job is freed while one of its processes may live. The next
 * monitor watches the job. The system's daemon starts no monitor, because it would have another uid than the job; it
 * watches the job itself. */
static void replace_monitor(void *data)
{
	struct ll_upkeep *upkeep = data;
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

void ll_job_disconnect(struct ll_server *server, struct ll_job *job)
{
	struct ll_upkeep *upkeep = job->upkeep;
	upkeep->connection = NULL;
	upkeep->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	if (upkeep->monitor)
		ll_death_watch_start(upkeep->monitor);
}

/* If a monitor cannot be watched, the function checks whether it has ended. If the next monitor does not connect, it is
 * started again. */
static bool needs_monitor(const struct ll_upkeep *upkeep)
{
	if (upkeep->monitor)
		return !upkeep->monitor->is_polled && ll_process_has_ended(upkeep->monitor->fd);
	return upkeep->server->is_system || uv_now(&upkeep->server->loop) - upkeep->lost_ms >= RETURN_MS;
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
		if (ll_books_find_number(&server->books, number) != job || job->upkeep->connection)
			continue;
		is_needed = true;
		if (job->upkeep->has_remaining)
			ll_job_end(server, job);
		else if (needs_monitor(job->upkeep))
			replace_monitor(job->upkeep);
	}
	return is_needed;
}

/* ---- registration ---- */

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
	ll_message_text_set(job->pod, sizeof job->pod, call->pod);
	ll_message_text_set(job->container, sizeof job->container, call->container);
	job->has_group = *job->container;
	struct ll_upkeep *upkeep = calloc(1, sizeof *upkeep);
	if (upkeep)
		*upkeep = (struct ll_upkeep){.server = server, .job = job};
	job->upkeep = upkeep;
	rc = upkeep ? open_pages(server, call, job) : -ENOMEM;
	if (rc) {
		if (call->page_fds && job->pages.page) /* keep them unchanged for the next attempt */
			ll_pages_detach(&job->pages);
		ll_claims_fini(server, job);
		free(job->upkeep);
		ll_books_remove(&server->books, job);
		return rc;
	}
	job->process_fd = call->process_fd;
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
	if (is_known && job->upkeep->connection && job->upkeep->connection != call->connection)
		return -EBUSY;
	int monitor_fd = fcntl(call->monitor_fd, F_DUPFD_CLOEXEC, 0);
	if (monitor_fd < 0)
		return -errno;
	/* Before the job: one in the books that is refused would own descriptors that the caller closes. */
	struct ll_death_watch *watch = ll_death_watch_new(&server->loop, monitor_fd, replace_monitor, NULL);
	if (!watch) {
		close(monitor_fd);
		return -ENOMEM;
	}
	int rc = is_known ? 0 : add_job(server, call, &job);
	if (rc) {
		ll_death_watch_close(watch);
		return rc;
	}
	struct ll_upkeep *upkeep = job->upkeep;
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
	job->upkeep->lost_ms = uv_now(&server->loop);
	server->wants_tick = true;
	ll_admission_register(server, job);
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

/* ---- takeover ---- */

/* A monitor tries to connect at least each 2 s. The rest is for a machine under load. */
#define WINDOW_NS (60 * LL_NS_PER_S)
enum { CLOCK_TICKS = 2 }; /* the start of a process is known to 1 tick */

/* Since when the socket of the service is there, on the clock of ll_boot_ns. Nobody but its owner can change that time.
 * Returns false if it is not known. */
static bool read_socket_birth(const struct ll_server *server, uint64_t *ret_ns)
{
	struct stat st;
	uint64_t wall_ns = ll_wall_ns(), boot_ns = ll_boot_ns();
	if (stat(server->place.name, &st) || !S_ISSOCK(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
		return false;
	uint64_t made_ns = (uint64_t)st.st_mtim.tv_sec * LL_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	if (made_ns > wall_ns || wall_ns - made_ns > boot_ns)
		return false;
	*ret_ns = boot_ns - (wall_ns - made_ns);
	return true;
}

bool ll_takeover_is_due(const struct ll_server *server, const struct ll_job_facts *facts, const int *page_fds)
{
	struct ll_process_stat stat;
	uint64_t birth_ns, tick_ns = LL_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	if (!server->is_system || !page_fds || !server->has_own_proc || !facts->pid)
		return false;
	/* If the pid has become another process's since it was read, that one is younger. */
	return read_socket_birth(server, &birth_ns) && ll_boot_ns() - birth_ns < WINDOW_NS &&
	       ll_process_stat_of((pid_t)facts->pid, &stat) == 0 &&
	       (stat.start_ticks + CLOCK_TICKS) * tick_ns <= birth_ns;
}

void ll_takeover_log(struct ll_takeover_told *told, const struct ll_job_facts *facts, bool is_taken)
{
	for (size_t i = 0; i < told->count; i++) {
		if (told->tokens[i] == facts->token[0])
			return;
	}
	if (told->count == LL_TAKEOVER_TOLD)
		return;
	told->tokens[told->count++] = facts->token[0];
	ll_warn("a job of user %" PRIu32 " (%s) %s", facts->uid, facts->command,
		is_taken ? "ran before this service: it goes on with its limits, and counts"
			 : "has no place on the cards and is refused; what it runs goes on outside of jobs");
}

#define GRACE_NS (60 * LL_NS_PER_S) /* if the configuration has none */
/* The monitor kills within milliseconds. systemd starts a keeper that has ended within seconds. */
#define MONITOR_NS (3 * LL_NS_PER_S)
#define KEEPER_NS (60 * LL_NS_PER_S)
#define AGAIN_MIN_NS LL_NS_PER_S
#define AGAIN_MAX_NS (60 * LL_NS_PER_S)

const int ll_job_signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGKILL};

/* ---- signals to a job that is stopped ---- */

/* Returns false if the job has no monitor that listens. */
static bool send_by_monitor(const struct ll_server *server, const struct ll_job *job, int number, bool is_for_all)
{
	union ll_message message;
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (connection->job != job)
			continue;
		ll_message_init(&message, LL_MESSAGE_SIGNAL);
		message.signal.signal = (uint32_t)number;
		message.signal.is_for_all = is_for_all;
		return ll_message_send(connection->fd, &message, NULL, 0) == 0;
	}
	return false;
}

static void log_signal(const struct ll_job *job, int number, const char *why, bool is_sent)
{
	ll_warn("job %" PRIu64 " of user %" PRIu32 ": %s: signal %d%s", job->number, job->facts.uid, why, number,
		is_sent ? "" : " could not be sent, its monitor does not listen");
}

void ll_job_stop_warn(struct ll_server *server, const struct ll_job *job, int number, const char *why)
{
	log_signal(job, number, why, send_by_monitor(server, job, number, false));
}

/* The keeper is asked also about a job of which it is not known whether it has a group: so a user who has killed the
 * monitor does not have the card for longer. The keeper sends no SIGHUP. */
static bool send_to_all(struct ll_server *server, const struct ll_job *job, struct ll_job_stop *stop, int number)
{
	bool is_asked = number != SIGHUP && ll_job_group_signal(server, job, number);
	if (is_asked)
		stop->asked_ns = ll_now_ns();
	if (is_asked && job->has_group)
		return true;
	return send_by_monitor(server, job, number, true) || is_asked;
}

/* ---- the steps of a stop ---- */

uint64_t ll_job_stop_grace_ns(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy && policy->reclaim.stop.grace_ns != LL_CONFIG_NONE ? policy->reclaim.stop.grace_ns : GRACE_NS;
}

static uint64_t later_of(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns > other_ns ? one_ns : other_ns;
}

/* A loadlined that has just started learns where groups are when the keeper answers. */
static bool is_out_of_reach(const struct ll_server *server, const struct ll_job *job, const struct ll_job_stop *stop,
			    uint64_t now_ns)
{
	uint64_t since_ns = later_of(stop->killed_ns, server->born_ns);
	if (!stop->killed_ns)
		return false;
	if (!job->has_group || job->is_group_lost)
		return now_ns >= since_ns + MONITOR_NS;
	return now_ns >= later_of(since_ns, stop->asked_ns) + KEEPER_NS + AGAIN_MAX_NS;
}

void ll_job_stop_step(struct ll_server *server, struct ll_job *job, struct ll_job_stop *stop)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	const struct ll_event_about about = {.job = job};
	uint64_t now_ns = ll_now_ns(), grace_ns = ll_job_stop_grace_ns(server);
	if (!stop->since_ns) {
		int signal = policy ? policy->reclaim.stop.signal : -1;
		int number = signal >= 0 ? ll_job_signals[signal] : SIGTERM;
		const char *why = stop->why ? stop->why : "its time is over";
		stop->since_ns = now_ns;
		ll_events_tell(server, LL_EVENT_STOPPED, &about,
			       "job %" PRIu64 " is stopped: %s; it is killed if it has not ended in %" PRIu64 " s",
			       job->number, why, grace_ns / LL_NS_PER_S);
		log_signal(job, number, why, send_to_all(server, job, stop, number));
	}
	/* Also a loadlined that was late leaves the job its grace. */
	if (now_ns < stop->since_ns + grace_ns)
		return;
	if (is_out_of_reach(server, job, stop, now_ns)) {
		struct ll_connection *connection = job->upkeep->connection;
		ll_events_tell(server, LL_EVENT_STOPPED, &about,
			       "job %" PRIu64 " has no control group and has not ended: its place is given back, and "
			       "what it still runs is outside of jobs",
			       job->number);
		if (connection) {
			connection->job = NULL;
			shutdown(connection->fd, SHUT_RDWR);
		}
		forget_job(server, job);
		ll_server_look(server);
	} else if (now_ns >= stop->again_ns) {
		bool is_first = !stop->killed_ns;
		stop->killed_ns = is_first ? now_ns : stop->killed_ns;
		bool is_sent = send_to_all(server, job, stop, SIGKILL);
		/* A process that the kernel does not end now is not killed each second for days: the times between
		 * grow. */
		uint64_t pause_ns = later_of(now_ns - stop->killed_ns, AGAIN_MIN_NS);
		stop->again_ns = now_ns + (pause_ns < AGAIN_MAX_NS ? pause_ns : AGAIN_MAX_NS);
		if (is_first)
			log_signal(job, SIGKILL, "it has not ended in its grace", is_sent);
	}
}
