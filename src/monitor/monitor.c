#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advice/advice.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/scope.h"
#include "protocol/message_rows.h"

/* ---- terminal ---- */

enum { PATH_SIZE = 48, INFO_SIZE = 256, LINE_SIZE = LL_EVENT_TEXT_SIZE + 16, OCTAL = 8 };

/* Opens the same file anew, so that it does not block, whatever the process has set. */
static int open_anew(pid_t pid)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, STDERR_FILENO);
	return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool does_append(pid_t pid)
{
	char path[PATH_SIZE], text[INFO_SIZE];
	unsigned flags = 0;
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)pid, STDERR_FILENO);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *line = strstr(text, "flags:");
	return line && sscanf(line, "flags: %o", &flags) == 1 && (flags & O_APPEND);
}

/* The descriptor of the process itself, with its position. It may block: it must be polled. */
static int share_descriptor(int process_fd)
{
#ifdef SYS_pidfd_getfd
	return (int)syscall(SYS_pidfd_getfd, process_fd, STDERR_FILENO, 0);
#else
	(void)process_fd;
	errno = ENOSYS;
	return -1;
#endif
}

static int open_errors(int process_fd, pid_t pid)
{
	struct stat st;
	int fd = open_anew(pid);
	if (fd >= 0 && (fstat(fd, &st) || (S_ISREG(st.st_mode) && !does_append(pid)))) {
		close(fd);
		fd = -1;
	}
	return fd >= 0 ? fd : share_descriptor(process_fd);
}

int ll_terminal_say(int process_fd, const char *text)
{
	char line[LINE_SIZE];
	pid_t pid = process_fd < 0 ? 0 : ll_process_id_of_fd(process_fd);
	if (pid <= 0)
		return -ESRCH;
	LL_SCOPE_CLOSE int fd = open_errors(process_fd, pid);
	if (fd < 0)
		return -errno;
	/* The number was this process's when the file was opened. */
	if (ll_process_has_ended(process_fd))
		return -ESRCH;
	if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 0) <= 0)
		return -EAGAIN;
	int length = snprintf(line, sizeof line, "loadline: %s\n", text);
	return write(fd, line, (size_t)length) == length ? 0 : -EIO;
}

/* ---- monitor ---- */

/*
 * Waits between attempts to reach a daemon. The first attempt after the end of a connection is made at once. RETRY_MIN:
 * a started daemon serves within some milliseconds. RETRY_MAX: the system's daemon may be away for long, and its next
 * one gives nobody a place before the monitors have come (daemon/queue/admission.c).
 */
enum { RETRY_MIN_MS = 2, RETRY_MAX_MS = 250, JITTER_MS = 3, ASK_MS = 1000 };

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

/* What is stored, for later runs, of how fast the job runs beside others (protocol/company.h, advice/advice.h). */
struct ll_monitor_company {
	uint64_t noted_ns;   /* time of the last look */
	uint64_t counted_ns; /* the total time beside others, as last stored */
};

struct monitor {
	const struct ll_monitor_config *config;
	union ll_message job;   /* the message that is sent; without a kind: `run` has not given it yet */
	union ll_message asked; /* what else `run` asked, which is asked of each daemon; without a kind: nothing */
	uint32_t serial;        /* of what `run` waits for a reply to */
	bool is_awaited;        /* it waits */
	struct ll_tree tree;
	int fd;          /* the connection; -1: none */
	int run_fd;      /* to `run`; -1: it has become the command, or has ended */
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

/* ---- to run ---- */

/* Passes on a reply to what `run` asked. */
static void tell_run(struct monitor *monitor, union ll_message message)
{
	if (!monitor->is_awaited)
		return;
	message.header.serial = monitor->serial;
	ll_message_send(monitor->run_fd, &message, NULL, 0);
	if (message.header.kind == LL_MESSAGE_QUEUED || message.header.kind == LL_MESSAGE_WELCOME)
		return;
	monitor->is_awaited = false;
	monitor->asked.header.kind = 0;
}

static bool asks_for_place(const struct monitor *monitor)
{
	return monitor->asked.header.kind == LL_MESSAGE_ADMIT;
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

static int send_job(const struct monitor *monitor)
{
	const int fds[] = {monitor->config->process_fd, monitor->config->lifeline_fd, monitor->page_fds[0],
			   monitor->page_fds[1]};
	return ll_message_send(monitor->fd, &monitor->job, fds, monitor->page_fds[1] >= 0 ? 4 : 2);
}

/* Sends HELLO and all else together, which saves one wait for a reply. */
static int send_all(struct monitor *monitor)
{
	union ll_message hello;
	ll_message_init_hello(&hello, LL_ROLE_MONITOR, monitor->config->version);
	int rc = ll_message_send(monitor->fd, &hello, &monitor->own_fd, monitor->own_fd >= 0);
	if (!rc && monitor->job.header.kind)
		rc = send_job(monitor);
	return !rc && monitor->asked.header.kind ? ll_message_send(monitor->fd, &monitor->asked, NULL, 0) : rc;
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
	if (!rc && (rc = send_all(monitor)))
		disconnect_daemon(monitor);
	return rc;
}

static void try_to_reach(struct monitor *monitor)
{
	union ll_message message;
	int rc = reach_daemon(monitor);
	if (!rc)
		return;
	retry_later(monitor);
	/* The causes of these errors may end in a moment. How long a job waits for its queue, `run` decides. */
	bool may_end = rc == -EPIPE || rc == -ECONNRESET || rc == -EAGAIN || rc == -ECONNREFUSED;
	if (may_end && (rc != -ECONNREFUSED || !asks_for_place(monitor)))
		return;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = rc;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, strerror(-rc));
	tell_run(monitor, message);
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

/* The job was refused, or the connection. The daemon's table of descriptors may be full for a while. A job that lost
 * its place gets another one, for which `run` asks first. */
static void take_refusal(struct monitor *monitor, int code)
{
	if (code == -ESTALE && monitor->run_fd >= 0) {
		monitor->job.header.kind = 0;
		return;
	}
	monitor->is_second = code == -EBUSY;
	if (code == -ENOTSUP || code == -EPERM)
		return;
	disconnect_daemon(monitor);
	retry_later(monitor);
}

static void take_message(struct monitor *monitor, const union ll_message *message, const int *fds, size_t count)
{
	bool is_of_asked = monitor->asked.header.kind && message->header.serial == monitor->asked.header.serial;
	switch (message->header.kind) {
	case LL_MESSAGE_WELCOME:
		ask_handover(monitor, message->welcome.version);
		if (asks_for_place(monitor))
			tell_run(monitor, *message);
		break;
	case LL_MESSAGE_QUEUED:
	case LL_MESSAGE_ADMITTED:
		if (is_of_asked)
			tell_run(monitor, *message);
		break;
	case LL_MESSAGE_ACCEPTED:
		keep_pages(monitor, fds, count);
		monitor->is_accepted = true;
		if (message->header.serial == monitor->serial)
			tell_run(monitor, *message);
		break;
	case LL_MESSAGE_REFUSED:
		if (message->header.serial == monitor->serial || !message->header.serial)
			tell_run(monitor, *message);
		if (!is_of_asked)
			take_refusal(monitor, message->refused.code);
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

/* ---- what run asks ---- */

/* The job, or a question about it. It is sent now, or to the next daemon. */
static void take_request(struct monitor *monitor, const union ll_message *message, const int *fds, size_t count)
{
	char cgroup[LL_CGROUP_SIZE];
	int rc = 0;
	monitor->serial = message->header.serial;
	monitor->is_awaited = true;
	monitor->retry_ns = 0;
	monitor->asked.header.kind = 0;
	if (message->header.kind == LL_MESSAGE_JOB) {
		monitor->job = *message;
		monitor->tree.id = message->job.job.token[0];
		keep_pages(monitor, fds, count);
		if (ll_cgroup_read(0, cgroup, sizeof cgroup) == 0)
			ll_message_text_set(monitor->job.job.job.cgroup, sizeof monitor->job.job.job.cgroup, cgroup);
		rc = monitor->fd < 0 ? 0 : send_job(monitor);
	} else {
		monitor->asked = *message;
		rc = monitor->fd < 0 ? 0 : ll_message_send(monitor->fd, message, NULL, 0);
	}
	if (rc)
		lose_daemon(monitor, rc);
}

static void read_run(struct monitor *monitor)
{
	int rc = 0;
	while (!rc) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		rc = ll_message_receive(monitor->run_fd, &message, fds, &count);
		if (!rc)
			take_request(monitor, &message, fds, count);
		ll_message_close_fds(fds, count);
	}
	if (rc == -EAGAIN)
		return;
	close(monitor->run_fd);
	monitor->run_fd = -1;
	monitor->is_awaited = false;
	monitor->asked.header.kind = 0;
}

static bool has_request(const struct monitor *monitor)
{
	return monitor->job.header.kind || monitor->asked.header.kind;
}

/* ---- start and end ---- */

/* Linux 6.15. Fields that are not used here have no name. */
struct pidfd_end {
	uint64_t mask;
	uint32_t others[13];
	int32_t exit_code;
};
#define PIDFD_END UINT64_C(8)
#define GET_PIDFD_END _IOWR(0xff, 11, struct pidfd_end)

/* Reads how a process that has ended ended, as waitpid() would give it, for a process that is no child of the caller.
 * -ENODATA: the kernel does not tell it: it is older than Linux 6.15, or the process's parent has not read the status
 * yet (then poll() reports POLLHUP when it has). */
static int read_end(int fd, uint32_t *ret_status)
{
	struct pidfd_end end = {.mask = PIDFD_END};
	_Static_assert(sizeof end == 64, "struct pidfd_info of its first version");
	if (ioctl(fd, GET_PIDFD_END, &end) || !(end.mask & PIDFD_END))
		return -ENODATA;
	*ret_status = (uint32_t)end.exit_code;
	return 0;
}

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
	if (read_end(process_fd, &message.job_status.status) == 0)
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
	if (monitor->fd < 0 && has_request(monitor)) {
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
	/* `run` may be stopped. What it has no room for is not read from loadlined either. */
	bool is_full =
	    monitor->is_awaited && poll(&(struct pollfd){.fd = monitor->run_fd, .events = POLLOUT}, 1, 0) == 0;
	struct pollfd fds[] = {
	    {.fd = is_full ? -1 : monitor->fd, .events = POLLIN},
	    {.fd = monitor->run_fd, .events = (short)(is_full ? POLLIN | POLLOUT : POLLIN)},
	    {.fd = monitor->tree.lifeline_fd, .events = 0}, /* bytes that are written to it are ignored */
	    {.fd = is_pidfd ? process_fd : -1, .events = POLLIN},
	};
	poll(fds, sizeof fds / sizeof *fds, timeout_ms(monitor));
	if (fds[0].revents)
		read_connection(monitor);
	if (fds[1].revents & ~POLLOUT)
		read_run(monitor);
}

/* ---- what later runs shall know ---- */

static void describe_company(const struct ll_orders *orders, const struct ll_company *row,
			     struct ll_earlier_record *ret_record)
{
	*ret_record = (struct ll_earlier_record){.ended_s = ll_wall_ns() / LL_NS_PER_S,
						 .program = row->program,
						 .others = row->others,
						 .way = row->way,
						 .ns = row->ns,
						 .launches = row->launches};
	ll_orders_read_uuid(&orders->cards[row->card], ret_record->card);
	ll_company_read_name(orders, ret_record->name);
	memcpy(ret_record->others_names, row->names, sizeof ret_record->others_names);
}

/* Returns the rows with enough time, with all the data that the file needs. */
static size_t read_rows(const struct ll_orders *orders, struct ll_earlier_record records[LL_COMPANY_ROWS],
			uint64_t *ret_counted_ns)
{
	size_t count = 0;
	for (size_t i = 0; i < LL_COMPANY_ROWS; i++) {
		struct ll_company row;
		if (!ll_company_read(&orders->company[i], &row) || row.ns < LL_EARLIER_LEAST_NS)
			continue;
		describe_company(orders, &row, &records[count]);
		*ret_counted_ns += row.ns;
		count += records[count].card[0] && records[count].name[0] && records[count].others_names[0];
	}
	return count;
}

/* Stores what has changed since the last call. orders_fd: of the job's orders; -1: no daemon made them. An error is
 * ignored, and the data are lost. */
static void note_company(struct ll_monitor_company *company, int orders_fd)
{
	struct ll_earlier_record records[LL_COMPANY_ROWS];
	struct ll_orders *orders;
	char folder[PATH_MAX];
	uint64_t counted_ns = 0;
	company->noted_ns = ll_now_ns();
	if (orders_fd < 0 || ll_orders_map(orders_fd, false, &orders))
		return;
	size_t count = read_rows(orders, records, &counted_ns);
	ll_orders_unmap(orders);
	if (counted_ns == company->counted_ns || ll_earlier_folder(getenv("LOADLINE_SIM_DIR"), folder, NULL))
		return;
	if (ll_earlier_note(folder, records, count, NULL) == 0)
		company->counted_ns = counted_ns;
}

/* ---- the monitor ---- */

/* Before it has the job there is nothing but `run` to wait for. */
static bool has_ended(struct monitor *monitor)
{
	if (monitor->job.header.kind)
		return ll_tree_has_ended(&monitor->tree);
	return monitor->run_fd < 0 || ll_process_has_ended(monitor->config->process_fd);
}

int ll_monitor_run(const struct ll_monitor_config *config)
{
	struct monitor monitor = {.config = config,
				  .fd = -1,
				  .run_fd = config->run_fd,
				  .own_fd = ll_process_open(getpid()),
				  .page_fds = {-1, -1},
				  .tree = {config->lifeline_fd, config->process_fd, -1, 0}};
	signal(SIGPIPE, SIG_IGN); /* ll_terminal_say */
	/* Before the tree is checked, because a monitor that replaces a dead one may have to report only the job's
	 * end. */
	read_run(&monitor);
	if (has_request(&monitor))
		try_to_reach(&monitor);
	while (!monitor.is_second && !has_ended(&monitor)) {
		if (monitor.fd < 0 && has_request(&monitor) && ll_now_ns() >= monitor.retry_ns)
			try_to_reach(&monitor);
		wait_for_something(&monitor);
		if (ll_now_ns() - monitor.company.noted_ns >= COMPANY_MS * LL_NS_PER_MS)
			note_company(&monitor.company, monitor.page_fds[1]);
	}
	if (!monitor.job.header.kind)
		return -EPROTO;
	if (monitor.is_second)
		return 0;
	bring_pages(&monitor);
	/* First report the end to loadlined: others may wait for the job's memory. */
	say_end(&monitor);
	note_company(&monitor.company, monitor.page_fds[1]);
	return 0;
}
