#include "keeper/requests.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"
#include "keeper/device.h"
#include "keeper/scope_unit.h"
#include "keeper/source.h"
#include "keeper/subject.h"

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

static int attach_process(const struct ll_keeper *keeper, const char *group, pid_t pid, struct ll_err *err)
{
	int rc = ll_hierarchy_attach(&keeper->hierarchy, group, pid);
	return rc ? ll_err_set(err, rc, "move the process to %.200s: %s", group, strerror(-rc)) : 0;
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
	return attach_process(keeper, group, subject.pid, err);
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
	int rc = is_kill ? ll_hierarchy_kill(hierarchy, group) : -ENOENT;
	if (rc == -ENOENT) {
		if (is_kill)
			ll_hierarchy_freeze(hierarchy, group, true);
		rc = ll_hierarchy_each(hierarchy, group, signal_member, &signalling);
		rc = rc ? rc : signalling.code;
	}
	if (is_kill)
		ll_hierarchy_freeze(hierarchy, group, false);
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
	if (request->uid == 0 || request->uid == keeper->client)
		return ll_err_set(err, -EPERM, "the process is root's or loadlined's");
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
