#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/process.h"
#include "monitor/company.h"
#include "monitor/terminal.h"
#include "monitor/tree.h"

/*
 * Waits between attempts to reach a daemon. The first attempt after the end of a connection is made at once. RETRY_MIN:
 * a started daemon serves within some milliseconds. RETRY_MAX: errors that last are a full table of descriptors, a
 * removed program, or a name that another user has bound.
 */
enum { RETRY_MIN_MS = 2, RETRY_MAX_MS = 2000, JITTER_MS = 3, ASK_MS = 1000 };

/* How long an attempt waits in the queue of the connections, while the monitor sees no end of its job. */
enum { REACH_MS = 100 };

/* If a daemon ends within SHORT_LIFE_MS after the connection, it is started at most 50 times a second. */
enum { SHORT_LIFE_MS = 50, SHORT_PAUSE_MS = 10 };

/* How long the parent of the job's first process has for reading its status. A shell takes less than a millisecond. */
enum { STATUS_MS = 100 };

/* How long loadlined has for taking the pages of a job that has ended. */
enum { LAST_MS = 5000 };

/* The interval in which data for later runs are stored. */
enum { COMPANY_MS = 60000 };

struct monitor {
	const struct ll_monitor_config *config;
	union ll_message job; /* the message that is sent */
	struct ll_tree tree;
	int fd;          /* the connection; -1: none */
	int report_fd;   /* -1: the report was sent */
	int own_fd;      /* of this process (process.h) */
	int page_fds[2]; /* the job's page and orders, which a daemon made; -1: none did */
	struct ll_places places;
	uint64_t connected_ns;
	uint64_t retry_ns;
	int pause_ms;
	bool has_asked_handover;
	bool is_accepted; /* by the daemon of the connection */
	bool is_second;   /* the job has another monitor already */
	struct ll_monitor_company company;
};

/* ---- the report to `run`, sent once ---- */

static void report_to_run(struct monitor *monitor, const union ll_message *message)
{
	if (monitor->report_fd < 0)
		return;
	ll_message_send(monitor->report_fd, message, NULL, 0);
	close(monitor->report_fd);
	monitor->report_fd = -1;
}

static void report_failure(struct monitor *monitor, int code)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = code;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, strerror(-code));
	report_to_run(monitor, &message);
}

/* ---- the connection ---- */

static void retry_later(struct monitor *monitor)
{
	int jitter = (int)((unsigned)getpid() % JITTER_MS);
	monitor->pause_ms = monitor->pause_ms ? 2 * monitor->pause_ms : RETRY_MIN_MS;
	if (monitor->pause_ms > RETRY_MAX_MS)
		monitor->pause_ms = RETRY_MAX_MS;
	monitor->retry_ns = ll_now_ns() + (uint64_t)(monitor->pause_ms + jitter) * LL_NS_PER_MS;
}

static void disconnect_daemon(struct monitor *monitor)
{
	close(monitor->fd);
	monitor->fd = -1;
}

/* Sends HELLO and the job together, which saves one wait for a reply. */
static int send_hello(struct monitor *monitor)
{
	union ll_message hello;
	const int fds[] = {monitor->config->process_fd, monitor->config->lifeline_fd, monitor->page_fds[0],
			   monitor->page_fds[1]};
	ll_message_init_hello(&hello, LL_ROLE_MONITOR, monitor->config->version);
	int rc = ll_message_send(monitor->fd, &hello, &monitor->own_fd, monitor->own_fd >= 0);
	return rc ? rc : ll_message_send(monitor->fd, &monitor->job, fds, monitor->page_fds[1] >= 0 ? 4 : 2);
}

/* Returns the system's place if its loadlined serves now: a user's daemon makes room for it. A job that began under the
 * system's daemon stays there. */
static const struct ll_place *choose_place(struct monitor *monitor)
{
	const char *place = monitor->config->place.name;
	monitor->places.user = monitor->config->place;
	bool has_system = ll_place_system_beside(place, getenv("LOADLINE_SIM_DIR"), &monitor->places.system);
	return has_system ? ll_places_choose(&monitor->places) : &monitor->places.user;
}

static int reach_daemon(struct monitor *monitor)
{
	uint64_t until_ns = ll_now_ns() + REACH_MS * LL_NS_PER_MS;
	int rc = ll_daemon_reach(choose_place(monitor), &monitor->config->programs, until_ns, &monitor->fd, NULL);
	monitor->connected_ns = ll_now_ns();
	monitor->is_accepted = false;
	if (!rc && (rc = send_hello(monitor)))
		disconnect_daemon(monitor);
	return rc;
}

static void try_to_reach(struct monitor *monitor)
{
	int rc = reach_daemon(monitor);
	if (!rc)
		return;
	retry_later(monitor);
	/* The causes of these errors may end in a moment. */
	if (rc != -ECONNREFUSED && rc != -EPIPE && rc != -ECONNRESET && rc != -EAGAIN)
		report_failure(monitor, rc);
}

/* Requests an older daemon to make room, once. It replies with its listening socket, or ends. */
static void ask_handover(struct monitor *monitor, uint64_t daemon_version)
{
	union ll_message message;
	uint64_t own = ll_version_number(monitor->config->version);
	if (monitor->has_asked_handover || daemon_version >= own)
		return;
	monitor->has_asked_handover = true;
	ll_message_init(&message, LL_MESSAGE_HANDOVER);
	message.handover.version = own;
	ll_message_send(monitor->fd, &message, NULL, 0);
}

/* The name stays bound all the time, so clients need not connect again. */
static void take_over(struct monitor *monitor, int listen_fd)
{
	ll_daemon_start_on(listen_fd, &monitor->config->place, &monitor->config->programs, NULL);
}

/* Keeps the descriptors for the next daemon. A daemon makes new pages only if it got none. */
static void keep_pages(struct monitor *monitor, const int *fds, size_t count)
{
	int copies[2];
	if (count != 2 || (copies[0] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0)) < 0)
		return;
	copies[1] = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	if (copies[1] < 0) {
		close(copies[0]);
		return;
	}
	if (monitor->page_fds[1] >= 0)
		ll_message_close_fds(monitor->page_fds, 2);
	memcpy(monitor->page_fds, copies, sizeof copies);
}

/* The time of the job ends, or is over. */
static void pass_signal(const struct monitor *monitor, const struct ll_message_signal *message)
{
	int fd = ll_tree_process(&monitor->tree), number = (int)message->signal;
	bool is_known = number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGUSR1 ||
			number == SIGUSR2 || number == SIGKILL;
	if (is_known && message->is_for_all)
		ll_tree_signal(&monitor->tree, number);
	else if (is_known && fd >= 0)
		ll_tree_signal_process(fd, number);
}

static void take_message(struct monitor *monitor, const union ll_message *message, const int *fds, size_t count)
{
	switch (message->header.kind) {
	case LL_MESSAGE_WELCOME:
		ask_handover(monitor, message->welcome.version);
		break;
	case LL_MESSAGE_ACCEPTED:
		keep_pages(monitor, fds, count);
		monitor->is_accepted = true;
		report_to_run(monitor, message);
		break;
	case LL_MESSAGE_REFUSED:
		report_to_run(monitor, message);
		monitor->is_second = message->refused.code == -EBUSY;
		/* The daemon's table of descriptors may be full for a while. */
		if (message->refused.code != -ENOTSUP && message->refused.code != -EPERM) {
			disconnect_daemon(monitor);
			retry_later(monitor);
		}
		break;
	case LL_MESSAGE_HANDED_OVER:
		if (count == 1)
			take_over(monitor, fds[0]);
		break;
	case LL_MESSAGE_SIGNAL:
		pass_signal(monitor, &message->signal);
		break;
	case LL_MESSAGE_EVENT:
		ll_terminal_say(monitor->tree.first_fd, message->event.text);
		break;
	default:
		break;
	}
}

/* The first attempt after the end of a connection is made at once, unless the daemon ended right after its start. */
static void lose_daemon(struct monitor *monitor, int why)
{
	disconnect_daemon(monitor);
	if (why != -EPIPE && why != -ECONNRESET) {
		retry_later(monitor);
	} else if (ll_now_ns() - monitor->connected_ns >= SHORT_LIFE_MS * LL_NS_PER_MS) {
		monitor->pause_ms = 0;
	} else {
		monitor->pause_ms = monitor->pause_ms < SHORT_PAUSE_MS ? monitor->pause_ms : SHORT_PAUSE_MS;
		retry_later(monitor);
	}
}

static void read_connection(struct monitor *monitor)
{
	int rc = 0;
	while ((!rc || rc == -ENOTSUP) && monitor->fd >= 0) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		rc = ll_message_receive(monitor->fd, &message, fds, &count);
		if (!rc)
			take_message(monitor, &message, fds, count);
		ll_message_close_fds(fds, count);
	}
	if (monitor->fd >= 0 && rc != -EAGAIN)
		lose_daemon(monitor, rc);
}

/* ---- start and end ---- */

/* The parent of the first process may not have read the status yet, and until then the kernel does not tell it. */
static void say_status(struct monitor *monitor)
{
	union ll_message message;
	int process_fd = monitor->config->process_fd;
	ll_message_init(&message, LL_MESSAGE_JOB_STATUS);
	message.job_status.job = monitor->job.job.job.token[0];
	if (monitor->fd < 0 || !ll_process_is_pidfd(process_fd))
		return;
	poll(&(struct pollfd){.fd = process_fd, .events = 0}, 1, STATUS_MS);
	if (ll_process_read_end(process_fd, &message.job_status.status) == 0)
		ll_message_send(monitor->fd, &message, NULL, 0);
}

static void say_end(struct monitor *monitor)
{
	union ll_message message;
	say_status(monitor);
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	memcpy(message.job_ended.token, monitor->job.job.job.token, sizeof message.job_ended.token);
	if (monitor->fd >= 0)
		ll_message_send(monitor->fd, &message, NULL, 0);
}

/* The system's loadlined may have been started anew while this process was stopped. Then it does not know the job yet,
 * and what the job has used since is in the job's pages alone. It must have read them before this process ends. */
static void bring_pages(struct monitor *monitor)
{
	if (monitor->page_fds[1] < 0)
		return;
	if (monitor->fd < 0 && ll_place_is_system(choose_place(monitor)))
		try_to_reach(monitor);
	uint64_t until_ns = ll_now_ns() + LAST_MS * LL_NS_PER_MS;
	while (monitor->fd >= 0 && !monitor->is_accepted && ll_now_ns() < until_ns) {
		poll(&(struct pollfd){.fd = monitor->fd, .events = POLLIN}, 1, LAST_MS);
		read_connection(monitor);
	}
}

static int timeout_ms(const struct monitor *monitor)
{
	int timeout = -1;
	if (monitor->fd < 0) {
		uint64_t now_ns = ll_now_ns();
		timeout = monitor->retry_ns > now_ns ? (int)((monitor->retry_ns - now_ns) / LL_NS_PER_MS) + 1 : 0;
	}
	if (timeout < 0 || timeout > COMPANY_MS)
		timeout = COMPANY_MS;
	/* Without a pidfd the process must be polled. */
	int process_fd = ll_tree_process(&monitor->tree);
	bool must_ask = process_fd >= 0 && !ll_process_is_pidfd(process_fd);
	return must_ask && timeout > ASK_MS ? ASK_MS : timeout;
}

static void wait_for_something(struct monitor *monitor)
{
	int process_fd = ll_tree_process(&monitor->tree);
	bool is_pidfd = process_fd >= 0 && ll_process_is_pidfd(process_fd);
	struct pollfd fds[] = {
	    {.fd = monitor->fd, .events = POLLIN},
	    {.fd = monitor->tree.lifeline_fd, .events = 0}, /* bytes that are written to it are ignored */
	    {.fd = is_pidfd ? process_fd : -1, .events = POLLIN},
	};
	poll(fds, sizeof fds / sizeof *fds, timeout_ms(monitor));
	if (monitor->fd >= 0 && fds[0].revents)
		read_connection(monitor);
}

int ll_monitor_run(const struct ll_monitor_config *config)
{
	struct monitor monitor = {.config = config,
				  .fd = -1,
				  .report_fd = config->report_fd,
				  .own_fd = ll_process_open(getpid()),
				  .page_fds = {-1, -1},
				  .tree = {config->lifeline_fd, config->process_fd, -1, 0}};
	char cgroup[LL_CGROUP_SIZE];
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc = ll_message_receive(config->report_fd, &monitor.job, fds, &count);
	keep_pages(&monitor, fds, count);
	ll_message_close_fds(fds, count);
	if (rc || monitor.job.header.kind != LL_MESSAGE_JOB)
		return -EPROTO;
	if (ll_cgroup_read(0, cgroup, sizeof cgroup) == 0)
		ll_message_text_set(monitor.job.job.job.cgroup, sizeof monitor.job.job.job.cgroup, cgroup);
	monitor.tree.id = monitor.job.job.job.token[0];
	signal(SIGPIPE, SIG_IGN); /* terminal.h */
	/* Before the tree is checked, because a monitor that replaces a dead one may have to report only the job's
	 * end. */
	try_to_reach(&monitor);
	while (!monitor.is_second && !ll_tree_has_ended(&monitor.tree)) {
		if (monitor.fd < 0 && ll_now_ns() >= monitor.retry_ns)
			try_to_reach(&monitor);
		wait_for_something(&monitor);
		if (ll_now_ns() - monitor.company.noted_ns >= COMPANY_MS * LL_NS_PER_MS)
			ll_monitor_note_company(&monitor.company, monitor.page_fds[1]);
	}
	if (monitor.is_second)
		return 0;
	bring_pages(&monitor);
	/* First report the end to loadlined: others may wait for the job's memory. */
	say_end(&monitor);
	ll_monitor_note_company(&monitor.company, monitor.page_fds[1]);
	return 0;
}
