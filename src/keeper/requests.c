#include "keeper/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/service.h"

#define MOVE_NS (1500 * LL_NS_PER_MS) /* systemd moves a process after its reply */
#define LOOK_NS (2 * LL_NS_PER_MS)

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGKILL, SIGSTOP, SIGCONT};

/* Numbers of requests that there were are not used again. */
const char *ll_keeper_call_name(uint32_t call)
{
	static const char *const names[LL_KEEPER_CALLS] = {
	    [LL_KEEPER_HELLO] = "hello",
	    [LL_KEEPER_PLACE] = "place",
	    [LL_KEEPER_REMOVE] = "remove",
	    [LL_KEEPER_SIGNAL_OUTSIDE] = "signal outside",
	    [LL_KEEPER_DEVICE_MEMORY] = "device memory",
	    [LL_KEEPER_SIGNAL_GROUP] = "signal group",
	};
	return call < LL_KEEPER_CALLS ? names[call] : NULL;
}

/* ---- the process ---- */

static int read_subject(const struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
			struct ll_subject *ret_subject, struct ll_err *err)
{
	int rc = ll_subject_read(keeper->proc, pidfd, request->pid, ret_subject);
	switch (rc) {
	case 0:
		return 0;
	case -EBADF:
		return ll_err_set(err, rc, "the descriptor is not a pidfd");
	case -ESTALE:
		return ll_err_set(err, rc, "the pidfd is another process's than the pid");
	case -ESRCH:
		return ll_err_set(err, rc, "the process has ended");
	default:
		return ll_err_set(err, rc, "the process: %s", strerror(-rc));
	}
}

/* ---- place ---- */

static int wait_until_moved(const struct ll_keeper *keeper, const char *group, struct ll_subject *subject,
			    struct ll_err *err)
{
	uint64_t until_ns = ll_now_ns() + MOVE_NS;
	for (;;) {
		int rc = ll_subject_read_group(keeper->proc, subject);
		if (rc)
			return ll_err_set(err, rc, "the process has ended");
		if (ll_group_contains(group, subject->group))
			return 0;
		if (ll_now_ns() >= until_ns)
			return ll_err_set(err, -ETIMEDOUT, "systemd did not move the process");
		ll_sleep_until_ns(ll_now_ns() + LOOK_NS);
	}
}

static int start_scope(struct ll_keeper *keeper, const char *group, struct ll_subject *subject, uint32_t uid,
		       struct ll_err *err)
{
	char unit[LL_GROUP_SIZE] = "";
	ll_source_unit(subject->group, uid, unit);
	struct ll_scope_request request = {.group = group, .uid = uid, .pid = subject->pid, .part_of = unit};
	int rc = ll_scope_start(&keeper->bus, &request, err);
	return rc ? rc : wait_until_moved(keeper, group, subject, err);
}

static int place_process(struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
			 const char *group, struct ll_err *err)
{
	struct ll_subject subject;
	int rc = read_subject(keeper, request, pidfd, &subject, err);
	if (rc)
		return rc;
	if (!ll_subject_is_of(&subject, request->uid))
		return ll_err_set(err, -EPERM, "the process is not of uid %u", request->uid);
	if (ll_group_contains(group, subject.group))
		return 0;
	const char *reason = ll_source_refuses(&keeper->hierarchy, subject.group, request->uid);
	if (reason)
		return ll_err_set(err, -EXDEV, "%s: %.200s", reason, subject.group);
	if (keeper->hierarchy.groups.kind == LL_GROUPS_SCOPE && !ll_hierarchy_has(&keeper->hierarchy, group))
		return start_scope(keeper, group, &subject, request->uid, err);
	if (keeper->hierarchy.groups.kind != LL_GROUPS_SCOPE)
		rc = ll_hierarchy_make(&keeper->hierarchy, group);
	if (rc)
		return ll_err_set(err, rc, "make %.200s: %s", group, strerror(-rc));
	char pid[24];
	snprintf(pid, sizeof pid, "%d", (int)subject.pid);
	rc = ll_hierarchy_write(&keeper->hierarchy, group, "cgroup.procs", pid);
	return rc ? ll_err_set(err, rc, "move the process to %.200s: %s", group, strerror(-rc)) : 0;
}

/* ---- signal to a group ---- */

static bool is_allowed(int number)
{
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (signals[i] == number)
			return true;
	}
	return false;
}

struct signalling {
	const struct ll_keeper *keeper;
	const char *group;
	int number, code; /* code: the first error; 0: none */
};

/* Another process may have got the pid since it was read: the group is read again. One that has ended is no error. */
static void signal_member(void *data, pid_t pid)
{
	struct signalling *signalling = data;
	const struct ll_keeper *keeper = signalling->keeper;
	struct ll_subject subject;
	LL_SCOPE_CLOSE int fd = ll_process_open_pidfd(pid);
	int rc = fd < 0 ? -errno : ll_subject_read(keeper->proc, fd, pid, &subject);
	if (!rc && ll_group_contains(signalling->group, subject.group) &&
	    syscall(SYS_pidfd_send_signal, fd, signalling->number, NULL, 0) < 0)
		rc = -errno;
	if (rc && rc != -ESRCH && !signalling->code)
		signalling->code = rc;
}

/* A frozen process starts none, and ends when it is thawed. */
static int signal_group(const struct ll_keeper *keeper, const char *group, int number, struct ll_err *err)
{
	const struct ll_hierarchy *hierarchy = &keeper->hierarchy;
	struct signalling signalling = {.keeper = keeper, .group = group, .number = number};
	bool is_kill = number == SIGKILL;
	if (!is_allowed(number))
		return ll_err_set(err, -EINVAL, "signal %d is not allowed", number);
	if (!ll_hierarchy_has(hierarchy, group))
		return ll_err_set(err, -ENOENT, "the job has no group");
	/* -ENOENT: this kernel cannot kill a group at once (before Linux 5.14). */
	int rc = is_kill ? ll_hierarchy_write(hierarchy, group, "cgroup.kill", "1") : -ENOENT;
	if (rc == -ENOENT) {
		if (is_kill)
			ll_hierarchy_write(hierarchy, group, "cgroup.freeze", "1");
		rc = ll_hierarchy_each(hierarchy, group, signal_member, &signalling);
		rc = rc ? rc : signalling.code;
	}
	if (is_kill)
		ll_hierarchy_write(hierarchy, group, "cgroup.freeze", "0");
	return rc ? ll_err_set(err, rc, "signal %.200s: %s", group, strerror(-rc)) : 0;
}

/* ---- signal to a process outside of jobs ---- */

static int check_outside(const struct ll_keeper *keeper, const struct ll_keeper_request *request,
			 const struct ll_subject *subject, struct ll_err *err)
{
	uint32_t uid;
	uint64_t job;
	if (!ll_subject_is_of(subject, request->uid))
		return ll_err_set(err, -EPERM, "the process is not of uid %u", request->uid);
	if ((request->uid == 0 && !subject->is_nested) || request->uid == keeper->client)
		return ll_err_set(err, -EPERM, "the process is root's and in no container, or loadlined's");
	if (ll_group_find_job(&keeper->hierarchy.groups, subject->group, &uid, &job))
		return ll_err_set(err, -EPERM, "the process is in the group of a job");
	int is_open = keeper->is_simulated ? 1 : ll_device_is_open(keeper->proc, subject->pid);
	if (is_open < 0)
		return ll_err_set(err, is_open, "the files of the process: %s", strerror(-is_open));
	return is_open ? 0 : ll_err_set(err, -EPERM, "the process has no device file of a card open");
}

static int signal_outside(const struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
			  struct ll_err *err)
{
	struct ll_subject subject;
	if (request->signal != SIGTERM && request->signal != SIGKILL)
		return ll_err_set(err, -EINVAL, "signal %d is not allowed", request->signal);
	int rc = read_subject(keeper, request, pidfd, &subject, err);
	if (!rc)
		rc = check_outside(keeper, request, &subject, err);
	if (!rc && syscall(SYS_pidfd_send_signal, pidfd, request->signal, NULL, 0) < 0)
		rc = ll_err_set(err, -errno, "signal: %s", strerror(errno));
	return rc;
}

/* ---- groups ---- */

static int limit_devices(const struct ll_keeper *keeper, const char *group, uint64_t bytes, struct ll_err *err)
{
	if (!ll_hierarchy_has(&keeper->hierarchy, group))
		return ll_err_set(err, -ENOENT, "the job has no group");
	int rc = ll_hierarchy_limit_devices(&keeper->hierarchy, group, bytes);
	if (rc == -ENOTSUP)
		return ll_err_set(err, rc, "the kernel limits the memory of no device by control groups");
	return rc ? ll_err_set(err, rc, "dmem of %.200s: %s", group, strerror(-rc)) : 0;
}

static int remove_group(const struct ll_keeper *keeper, const char *group, struct ll_err *err)
{
	int rc = ll_hierarchy_remove(&keeper->hierarchy, group);
	if (rc == -EBUSY)
		return ll_err_set(err, rc, "there are processes in the group of the job");
	return rc ? ll_err_set(err, rc, "remove %.200s: %s", group, strerror(-rc)) : 0;
}

/* ---- all requests ---- */

static bool needs_process(uint32_t call)
{
	return call == LL_KEEPER_PLACE || call == LL_KEEPER_SIGNAL_OUTSIDE;
}

static bool needs_job(uint32_t call)
{
	return call != LL_KEEPER_HELLO && call != LL_KEEPER_SIGNAL_OUTSIDE;
}

static int check_form(const struct ll_keeper_request *request, bool has_pidfd, struct ll_err *err)
{
	if (request->version != LL_KEEPER_VERSION)
		return ll_err_set(err, -EPROTO, "version %u of the requests is not known", request->version);
	if (!ll_keeper_call_name(request->call))
		return ll_err_set(err, -ENOTSUP, "there is no request %u", request->call);
	if (needs_process(request->call) != has_pidfd)
		return ll_err_set(err, -EPROTO, has_pidfd ? "the request takes no descriptor" : "a pidfd is missing");
	if (needs_job(request->call) && !request->job)
		return ll_err_set(err, -EINVAL, "no job is named");
	if (needs_process(request->call) && request->pid <= 1)
		return ll_err_set(err, -EINVAL, "pid %d cannot belong to a job", request->pid);
	return 0;
}

static int do_call(struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd, struct ll_err *err)
{
	char group[LL_GROUP_SIZE];
	if (request->call == LL_KEEPER_SIGNAL_OUTSIDE)
		return signal_outside(keeper, request, pidfd, err);
	int rc = ll_group_path(&keeper->hierarchy.groups, request->uid, request->job, group);
	if (rc)
		return ll_err_set(err, rc, "the group of the job: %s", strerror(-rc));
	switch (request->call) {
	case LL_KEEPER_PLACE:
		return place_process(keeper, request, pidfd, group, err);
	case LL_KEEPER_SIGNAL_GROUP:
		return signal_group(keeper, group, request->signal, err);
	case LL_KEEPER_DEVICE_MEMORY:
		return limit_devices(keeper, group, request->bytes, err);
	case LL_KEEPER_REMOVE:
		return remove_group(keeper, group, err);
	default:
		return 0;
	}
}

void ll_keeper_handle(struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
		      struct ll_keeper_reply *ret_reply)
{
	struct ll_err err = {0};
	*ret_reply = (struct ll_keeper_reply){.version = LL_KEEPER_VERSION,
					      .call = request->call,
					      .serial = request->serial,
					      .groups = keeper->hierarchy.groups.kind};
	int rc = check_form(request, pidfd >= 0, &err);
	if (!rc && keeper->hierarchy.groups.kind == LL_GROUPS_NONE)
		rc = ll_hierarchy_miss(&err);
	if (!rc)
		rc = do_call(keeper, request, pidfd, &err);
	ret_reply->code = rc;
	snprintf(ret_reply->text, sizeof ret_reply->text, "%.250s",
		 rc                                 ? err.text
		 : request->call == LL_KEEPER_HELLO ? keeper->hierarchy.groups.base
						    : "");
}

/* ---- the socket ---- */

bool ll_keeper_serves(uid_t peer, uid_t client)
{
	return peer == 0 || peer == client;
}

static void log_request(const struct ll_keeper_request *request, const struct ll_keeper_reply *reply)
{
	const char *known = ll_keeper_call_name(request->call), *name = known ? known : "unknown";
	char process[40] = "";
	if (request->call == LL_KEEPER_PLACE)
		snprintf(process, sizeof process, " process %d", request->pid);
	else if (request->call == LL_KEEPER_SIGNAL_OUTSIDE)
		snprintf(process, sizeof process, " process %d with %d", request->pid, request->signal);
	else if (request->call == LL_KEEPER_SIGNAL_GROUP)
		snprintf(process, sizeof process, " with %d", request->signal);
	/* loadlined asks once a second until the group is empty. */
	if (request->call == LL_KEEPER_REMOVE && reply->code == -EBUSY)
		return;
	/* It asks about jobs that may have none, too. */
	if (request->call == LL_KEEPER_SIGNAL_GROUP && reply->code == -ENOENT)
		return;
	if (reply->code)
		ll_warn("refused: %s%s, job %u-%llx: %s", name, process, request->uid, (unsigned long long)request->job,
			reply->text);
	else if (request->call != LL_KEEPER_HELLO)
		ll_info("%s%s, job %u-%llx", name, process, request->uid, (unsigned long long)request->job);
}

static bool check_peer(struct ll_service *service, int fd, uid_t uid)
{
	const struct ll_keeper *keeper = service->data;
	struct ll_keeper_reply reply = {.version = LL_KEEPER_VERSION, .code = -EPERM};
	if (ll_keeper_serves(uid, keeper->client))
		return true;
	snprintf(reply.text, sizeof reply.text, "uid %u may not send requests", (unsigned)uid);
	ll_packet_send(fd, &reply, sizeof reply, NULL, 0);
	ll_warn("refused: a connection of uid %u", (unsigned)uid);
	return false;
}

/* A packet of another size ends the connection: the sender is no loadlined. */
static bool serve_request(struct ll_service *service, int fd)
{
	struct ll_keeper_request request;
	struct ll_keeper_reply reply;
	int pidfd = -1;
	size_t count = 0;
	int rc = ll_packet_receive(fd, false, &request, sizeof request, &pidfd, 1, &count);
	if (rc == -EAGAIN)
		return true;
	if (rc) {
		if (rc != -EPIPE && rc != -ECONNRESET)
			ll_warn("refused: a packet that is no request: %s", strerror(-rc));
		return false;
	}
	ll_keeper_handle(service->data, &request, count ? pidfd : -1, &reply);
	if (count)
		close(pidfd);
	log_request(&request, &reply);
	return ll_packet_send(fd, &reply, sizeof reply, NULL, 0) == 0;
}

static void look_at_fence(struct ll_service *service)
{
	struct ll_keeper *keeper = service->data;
	ll_fence_look(&keeper->fence);
	service->tick_ns = ll_now_ns() + LL_FENCE_AGAIN_NS;
}

/* SIGHUP */
static void read_wish(struct ll_service *service, int number)
{
	struct ll_keeper *keeper = service->data;
	(void)number;
	ll_fence_read_wish(&keeper->fence);
}

/* loadlined has one connection; one that has just ended, and root's, may be beside it. */
int ll_keeper_serve(struct ll_keeper *keeper, int listen_fd, struct ll_err *err)
{
	struct ll_service service = {.data = keeper,
				     .signals = {SIGTERM, SIGINT, SIGHUP},
				     .on_signal = read_wish,
				     .listen_fd = listen_fd,
				     .connections = LL_SERVICE_CONNECTIONS,
				     .on_peer = check_peer,
				     .on_packet = serve_request,
				     .events = POLLIN,
				     .on_watched = look_at_fence,
				     .tick_ns = ll_now_ns() + LL_FENCE_AGAIN_NS,
				     .on_tick = look_at_fence};
	int rc = ll_service_init(&service);
	if (rc)
		return ll_err_set(err, rc, "signals: %s", strerror(-rc));
	rc = ll_fence_begin(&keeper->fence, err);
	if (rc)
		return rc;
	service.watched_fd = keeper->fence.events_fd;
	rc = ll_service_run(&service);
	int ended = ll_fence_end(&keeper->fence, rc ? NULL : err);
	return rc ? ll_err_set(err, rc, "the socket: %s", strerror(-rc)) : ended;
}
