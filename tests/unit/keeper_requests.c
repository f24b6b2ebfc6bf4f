/*
 * What loadline-keeper refuses, each with its reason. The hierarchy is a folder of files, and /proc another one, so
 * nothing is moved; the process is a real one.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"

enum { UID = 1000, OTHER_UID = 1001, JOB = 0x77 };

static char folder[32], proc[64], mount[64];
static struct ll_keeper keeper;
static pid_t child;
static int pidfd;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void read_file(const char *path, char *ret_text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	ssize_t length = read(fd, ret_text, size - 1);
	assert_true(length >= 0);
	ret_text[length] = '\0';
	close(fd);
}

/* What /proc says about the child. */
static void describe_child(const char *uids, const char *group)
{
	char path[PATH_MAX], text[PATH_MAX];
	snprintf(path, sizeof path, "%s/%d", proc, (int)child);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%d/status", proc, (int)child);
	snprintf(text, sizeof text, "Name:\tx\\nUid:\t9\t9\t9\t9\nUmask:\t0022\nUid:\t%s\nGid:\t5\t5\t5\t5\n", uids);
	write_file(path, text);
	snprintf(path, sizeof path, "%s/%d/cgroup", proc, (int)child);
	snprintf(text, sizeof text, "6:freezer:/elsewhere\n0::%s\n", group);
	write_file(path, text);
}

static void make_group(const char *group)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", mount, group);
	for (char *slash = path + strlen(mount) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	mkdir(path, 0700);
}

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-keeper.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(proc, sizeof proc, "%s/proc", folder);
	snprintf(mount, sizeof mount, "%s/cgroup", folder);
	assert_int_equal(mkdir(proc, 0700), 0);
	assert_int_equal(mkdir(mount, 0700), 0);
	keeper = (struct ll_keeper){.proc = proc, .hierarchy.groups = {LL_GROUPS_FOLDER, "/jobs"}};
	snprintf(keeper.hierarchy.mount, sizeof keeper.hierarchy.mount, "%s", mount);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	pidfd = ll_process_open_pidfd(child);
	if (pidfd < 0)
		SKIP_TEST("no pidfds here");
	describe_child("1000\t1000\t1000\t1000", "/");
	return 0;
}

static int end(void **state)
{
	(void)state;
	char command[128];
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pidfd);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

TEST_EACH(begin, end);

static struct ll_keeper_request request_of(enum ll_keeper_call call)
{
	struct ll_keeper_request request = {
	    .version = LL_KEEPER_VERSION, .call = call, .serial = 5, .uid = UID, .job = JOB};
	if (call == LL_KEEPER_PLACE)
		request.pid = child;
	return request;
}

static struct ll_keeper_reply reply;

static int ask_with(const struct ll_keeper_request *request, int fd)
{
	ll_keeper_handle(&keeper, request, fd, &reply);
	assert_int_equal(reply.serial, request->serial);
	assert_int_equal(reply.call, request->call);
	if (reply.code)
		assert_true(*reply.text);
	return reply.code;
}

static int ask(enum ll_keeper_call call)
{
	struct ll_keeper_request request = request_of(call);
	return ask_with(&request, request.pid ? pidfd : -1);
}

/* ---- form ---- */

TEST(root_and_loadlined_are_served_and_nobody_else)
{
	assert_true(ll_keeper_serves(0, UID));
	assert_true(ll_keeper_serves(UID, UID));
	assert_false(ll_keeper_serves(OTHER_UID, UID));
}

TEST(without_version_2_each_request_is_refused)
{
	keeper.hierarchy = (struct ll_hierarchy){.groups.kind = LL_GROUPS_NONE};
	for (uint32_t call = 0; call < LL_KEEPER_CALLS; call++) {
		if (ll_keeper_call_name(call) && call != LL_KEEPER_SIGNAL_OUTSIDE)
			assert_int_equal(ask(call), -ENOTSUP);
	}
	struct ll_keeper_request request = request_of(LL_KEEPER_SIGNAL_OUTSIDE);
	request.pid = child;
	request.signal = SIGKILL;
	assert_int_equal(ask_with(&request, pidfd), -ENOTSUP);
}

TEST(a_request_that_is_not_in_the_list_is_refused)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_HELLO);
	assert_int_equal(ask_with(&request, -1), 0);
	assert_string_equal(reply.text, "/jobs");
	request.call = 0;
	assert_int_equal(ask_with(&request, -1), -ENOTSUP);
	request.call = 4; /* there was one */
	assert_int_equal(ask_with(&request, -1), -ENOTSUP);
	request.call = LL_KEEPER_CALLS;
	assert_int_equal(ask_with(&request, -1), -ENOTSUP);
	request = request_of(LL_KEEPER_HELLO);
	request.version++;
	assert_int_equal(ask_with(&request, -1), -EPROTO);
}

TEST(a_request_about_a_process_needs_its_pidfd_and_another_takes_none)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_PLACE);
	assert_int_equal(ask_with(&request, -1), -EPROTO);
	int file = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(ask_with(&request, file), -EBADF);
	close(file);
	request = request_of(LL_KEEPER_REMOVE);
	assert_int_equal(ask_with(&request, pidfd), -EPROTO);
}

TEST(a_pid_that_is_not_the_pidfds_is_refused)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_PLACE);
	request.pid = getpid();
	assert_int_equal(ask_with(&request, pidfd), -ESTALE);
	request.pid = 1;
	assert_int_equal(ask_with(&request, pidfd), -EINVAL);
	request.pid = -1;
	assert_int_equal(ask_with(&request, pidfd), -EINVAL);
}

TEST(a_process_that_has_ended_is_refused)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(ask(LL_KEEPER_PLACE), -ESRCH);
}

TEST(a_job_without_a_number_is_refused)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_REMOVE);
	request.job = 0;
	assert_int_equal(ask_with(&request, -1), -EINVAL);
}

/* ---- place ---- */

TEST(a_process_of_the_uid_goes_into_the_group_of_the_job)
{
	char path[PATH_MAX], text[32], expected[32];
	make_group("/jobs/loadline-job-1000-77");
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.procs", mount);
	write_file(path, "");
	assert_int_equal(ask(LL_KEEPER_PLACE), 0);
	read_file(path, text, sizeof text);
	snprintf(expected, sizeof expected, "%d", (int)child);
	assert_string_equal(text, expected);
}

TEST(a_process_that_has_another_uid_in_any_place_is_refused)
{
	static const char *const uids[] = {"1001\t1000\t1000\t1000", "1000\t0\t1000\t1000", "1000\t1000\t1001\t1000",
					   "1000\t1000\t1000\t0", "1000\t1000"};
	make_group("/jobs/loadline-job-1000-77");
	for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
		describe_child(uids[i], "/");
		assert_true(ask(LL_KEEPER_PLACE) == -EPERM || i == 4);
		assert_int_not_equal(reply.code, 0);
	}
	struct ll_keeper_request request = request_of(LL_KEEPER_PLACE);
	describe_child("1000\t1000\t1000\t1000", "/");
	request.uid = 0;
	assert_int_equal(ask_with(&request, pidfd), -EPERM);
}

TEST(a_process_of_a_service_or_a_container_or_another_user_stays_where_it_is)
{
	static const char *const groups[] = {
	    "/system.slice/cron.service",
	    "/system.slice/docker-4711.scope",
	    "/machine.slice/libpod-4711.scope",
	    "/slurm/uid_1000/job_5/step_0",
	    "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
	    "/user.slice/user-1001.slice/session-5.scope",
	    "/user.slice/user-10000.slice/session-5.scope",
	    "/user.slice/user-1000.slice",
	    "/user.slice",
	    "/jobs/loadline-job-1001-77",
	    "/jobs",
	};
	make_group("/jobs/loadline-job-1000-77");
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		describe_child("1000\t1000\t1000\t1000", groups[i]);
		assert_int_equal(ask(LL_KEEPER_PLACE), -EXDEV);
	}
}

TEST(a_process_of_a_session_a_terminal_or_an_own_job_may_move)
{
	static const char *const groups[] = {
	    "/user.slice/user-1000.slice/session-5.scope",
	    "/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-4711.scope", "/jobs/loadline-job-1000-5",
	    "/jobs/loadline-job-1000-77/below", /* it is there already */
	};
	char path[PATH_MAX];
	make_group("/jobs/loadline-job-1000-77");
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.procs", mount);
	write_file(path, "");
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		describe_child("1000\t1000\t1000\t1000", groups[i]);
		assert_int_equal(ask(LL_KEEPER_PLACE), 0);
	}
}

TEST(a_process_does_not_move_out_of_limits)
{
	static const struct {
		const char *file, *limit, *none;
	} limits[] = {{"memory.max", "1073741824\n", "max\n"},
		      {"memory.high", "5\n", "max\n"},
		      {"cpu.max", "50000 100000\n", "max 100000\n"},
		      {"cpuset.cpus", "0-3\n", "\n"}};
	static const char slice[] = "/user.slice/user-1000.slice";
	char path[PATH_MAX];
	make_group("/user.slice/user-1000.slice/session-5.scope");
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		snprintf(path, sizeof path, "%s%s/%s", mount, slice, limits[i].file);
		write_file(path, limits[i].limit);
		assert_non_null(
		    ll_source_refuses(&keeper.hierarchy, "/user.slice/user-1000.slice/session-5.scope", UID));
		write_file(path, limits[i].none);
		assert_null(ll_source_refuses(&keeper.hierarchy, "/user.slice/user-1000.slice/session-5.scope", UID));
	}
}

TEST(the_unit_of_a_session_is_that_of_the_systems_manager)
{
	char unit[LL_GROUP_SIZE];
	assert_true(ll_source_unit("/user.slice/user-1000.slice/session-5.scope", UID, unit));
	assert_string_equal(unit, "session-5.scope");
	assert_true(ll_source_unit("/user.slice/user-1000.slice/user@1000.service/a/b.scope", UID, unit));
	assert_string_equal(unit, "user@1000.service");
	assert_false(ll_source_unit("/user.slice/user-1001.slice/session-5.scope", UID, unit));
	assert_false(ll_source_unit("/", UID, unit));
}

/* ---- signals to a group ---- */

static bool is_stopped(void)
{
	int status = 0;
	return waitpid(child, &status, WUNTRACED | WNOHANG) == child && WIFSTOPPED(status);
}

static int ask_group(int number)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_SIGNAL_GROUP);
	request.signal = number;
	return ask_with(&request, -1);
}

TEST(only_seven_signals_are_allowed)
{
	unsigned allowed = 0;
	for (int number = -1; number <= SIGRTMAX + 1; number++) {
		int rc = ask_group(number); /* -ENOENT: the signal is allowed, and the job has no group */
		assert_true(rc == -ENOENT || rc == -EINVAL);
		allowed += rc == -ENOENT;
	}
	assert_int_equal(allowed, 7);
	assert_int_equal(ask_group(SIGHUP), -EINVAL);
	assert_int_equal(ask_group(0), -EINVAL);
}

TEST(each_process_that_is_in_the_group_of_the_job_gets_a_signal)
{
	char path[PATH_MAX], pids[64];
	assert_int_equal(ask_group(SIGSTOP), -ENOENT);
	make_group("/jobs/loadline-job-1000-77");
	assert_int_equal(ask_group(SIGHUP), -EINVAL);
	/* One of them has ended, and the child is in another group by now: another process may have got the number. */
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.procs", mount);
	snprintf(pids, sizeof pids, "%d\n%d\n", 1 << 30, (int)child);
	write_file(path, pids);
	assert_int_equal(ask_group(SIGSTOP), 0);
	assert_false(is_stopped());
	describe_child("1000\t1000\t1000\t1000", "/jobs/loadline-job-1000-77");
	assert_int_equal(ask_group(SIGSTOP), 0);
	int status = 0;
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
}

TEST(a_group_is_killed_at_once_or_frozen_and_thawed_around_it)
{
	char path[PATH_MAX], pids[32], text[32];
	siginfo_t info = {.si_pid = 0};
	make_group("/jobs/loadline-job-1000-77");
	describe_child("1000\t1000\t1000\t1000", "/jobs/loadline-job-1000-77");
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.procs", mount);
	snprintf(pids, sizeof pids, "%d\n", (int)child);
	write_file(path, pids);
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.kill", mount);
	write_file(path, "");
	assert_int_equal(ask_group(SIGKILL), 0);
	read_file(path, text, sizeof text);
	assert_string_equal(text, "1");
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
	unlink(path); /* as before Linux 5.14 */
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.freeze", mount);
	write_file(path, "");
	assert_int_equal(ask_group(SIGKILL), 0);
	read_file(path, text, sizeof text);
	assert_int_equal(text[0], '0');
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(info.si_code == CLD_KILLED && info.si_status == SIGKILL);
}

/* ---- signals to processes outside of jobs ---- */

static int ask_outside(const char *uids, const char *group, int signal_number)
{
	struct ll_keeper_request request = {.version = LL_KEEPER_VERSION,
					    .call = LL_KEEPER_SIGNAL_OUTSIDE,
					    .serial = 5,
					    .uid = (uint32_t)strtoul(uids, NULL, 10),
					    .pid = child,
					    .signal = signal_number};
	describe_child(uids, group);
	return ask_with(&request, pidfd);
}

/* What the child has open, by /proc. */
static void open_device(unsigned major)
{
	char path[PATH_MAX], node[PATH_MAX];
	snprintf(path, sizeof path, "%s/%d/fd", proc, (int)child);
	mkdir(path, 0700);
	snprintf(node, sizeof node, "%s/node-%u", folder, major);
	if (mknod(node, S_IFCHR | 0600, makedev(major, 0)))
		SKIP_TEST("no device files can be made here");
	snprintf(path, sizeof path, "%s/%d/fd/%u", proc, (int)child, major);
	assert_int_equal(symlink(node, path), 0);
}

TEST(a_process_outside_of_jobs_gets_a_signal_only_if_it_has_a_card_open)
{
	static const char own[] = "1000\t1000\t1000\t1000";
	siginfo_t info = {.si_pid = 0};
	assert_int_equal(ask_outside(own, "/user.slice", SIGKILL), -ESRCH); /* no descriptors are shown */
	open_device(1);
	assert_int_equal(ask_outside(own, "/user.slice", SIGKILL), -EPERM);
	open_device(195);
	assert_int_equal(ask_outside(own, "/jobs/loadline-job-1000-77", SIGKILL), -EPERM);
	assert_int_equal(ask_outside("1000\t1001\t1000\t1000", "/user.slice", SIGKILL), -EPERM);
	assert_int_equal(ask_outside("0\t0\t0\t0", "/user.slice", SIGKILL), -EPERM);
	assert_int_equal(ask_outside("0\t0\t0\t0\nNSpid:\t77", "/user.slice", SIGKILL), -EPERM);
	assert_int_equal(ask_outside(own, "/user.slice", SIGSTOP), -EINVAL);
	keeper.client = UID;
	assert_int_equal(ask_outside(own, "/user.slice", SIGKILL), -EPERM);
	keeper.client = OTHER_UID;
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
	assert_int_equal(ask_outside(own, "/user.slice", SIGTERM), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(info.si_code == CLD_KILLED && info.si_status == SIGTERM);
}

TEST(root_in_a_container_gets_the_signal)
{
	siginfo_t info = {.si_pid = 0};
	open_device(195);
	keeper.client = OTHER_UID;
	assert_int_equal(ask_outside("0\t0\t0\t0\nNSpid:\t77\t1", "/kubepods/pod1", SIGTERM), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(info.si_code == CLD_KILLED && info.si_status == SIGTERM);
}

/* ---- groups ---- */

static void check_state(const char *file, const char *value)
{
	char path[PATH_MAX], text[32];
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/%s", mount, file);
	read_file(path, text, sizeof text);
	assert_int_equal(strncmp(text, value, strlen(value)), 0);
	write_file(path, "");
}

static int freeze(bool is_frozen)
{
	return ll_hierarchy_write(&keeper.hierarchy, "/jobs/loadline-job-1000-77", "cgroup.freeze",
				  is_frozen ? "1" : "0");
}

TEST(a_group_is_frozen_and_thawed)
{
	char path[PATH_MAX];
	make_group("/jobs/loadline-job-1000-77");
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.freeze", mount);
	write_file(path, "");
	assert_int_equal(freeze(true), 0);
	check_state("cgroup.freeze", "1");
	assert_int_equal(freeze(false), 0);
	check_state("cgroup.freeze", "0");
}

/* Of the group of the job, below a slice. */
static void check_device_memory(uint64_t bytes, const char *expected)
{
	struct ll_keeper_request request = request_of(LL_KEEPER_DEVICE_MEMORY);
	char path[PATH_MAX], text[256];
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/dmem.max", mount);
	write_file(path, "");
	request.bytes = bytes;
	assert_int_equal(ask_with(&request, -1), 0);
	read_file(path, text, sizeof text);
	assert_string_equal(text, expected);
}

TEST(the_group_of_the_job_gets_its_limit_of_the_memory_of_each_device)
{
	char path[PATH_MAX], text[64];
	assert_int_equal(ask(LL_KEEPER_DEVICE_MEMORY), -ENOENT);
	make_group("/jobs/loadline-job-1000-77");
	assert_int_equal(ask(LL_KEEPER_DEVICE_MEMORY), -ENOTSUP);
	snprintf(path, sizeof path, "%s/dmem.capacity", mount);
	write_file(path, "");
	assert_int_equal(ask(LL_KEEPER_DEVICE_MEMORY), -ENOTSUP);
	write_file(path, "drm/0000:03:00.0/vram0 8514437120\ndrm/0000:83:00.0/vram0 85899345920\n");
	assert_int_equal(ask(LL_KEEPER_DEVICE_MEMORY), -ENOENT); /* the controller is not there for the group */
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", mount);
	write_file(path, "");
	check_device_memory(1 << 20, "drm/0000:03:00.0/vram0 1048576\ndrm/0000:83:00.0/vram0 1048576\n");
	read_file(path, text, sizeof text);
	assert_string_equal(text, "+dmem");
	check_device_memory(0, "drm/0000:03:00.0/vram0 max\ndrm/0000:83:00.0/vram0 max\n");
}

TEST(an_empty_group_is_removed_and_one_with_something_in_it_is_not)
{
	char path[PATH_MAX];
	struct stat st;
	assert_int_equal(ask(LL_KEEPER_REMOVE), 0);
	make_group("/jobs/loadline-job-1000-77/below");
	assert_true(ask(LL_KEEPER_REMOVE) == -EBUSY || reply.code == -ENOTEMPTY);
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/below", mount);
	rmdir(path);
	assert_int_equal(ask(LL_KEEPER_REMOVE), 0);
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77", mount);
	assert_int_not_equal(stat(path, &st), 0);
}

TEST(a_scope_with_processes_is_not_removed)
{
	char path[PATH_MAX];
	keeper.hierarchy.groups = (struct ll_groups){LL_GROUPS_SCOPE, "/loadline.slice"};
	assert_int_equal(ask(LL_KEEPER_REMOVE), 0);
	make_group("/loadline.slice/loadline-1000.slice/loadline-job-1000-77.scope");
	snprintf(path, sizeof path, "%s/loadline.slice/loadline-1000.slice/loadline-job-1000-77.scope/cgroup.events",
		 mount);
	write_file(path, "populated 1\nfrozen 0\n");
	assert_int_equal(ask(LL_KEEPER_REMOVE), -EBUSY);
	write_file(path, "populated 0\nfrozen 0\n");
	assert_int_equal(ask(LL_KEEPER_REMOVE), 0);
}

/* ---- which hierarchy ---- */

TEST(the_hierarchy_is_version_2_also_beside_version_1)
{
	static const char two[] = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
			  hybrid[] = "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
				     "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
			  both[] = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
				   "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n"
				   "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
			  one[] = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
				  "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n";
	static const char own[] = "6:freezer:/\n0::/loadline.slice/loadline-keeper.service\n";
	struct ll_hierarchy found;
	assert_int_equal(ll_hierarchy_choose(two, own, &found), 0);
	assert_string_equal(found.mount, "/sys/fs/cgroup");
	assert_string_equal(found.groups.base, "/loadline.slice/loadline-keeper.service/loadline-jobs");
	assert_false(found.is_beside_limits);
	assert_int_equal(ll_hierarchy_choose(hybrid, own, &found), 0);
	assert_int_equal(found.groups.kind, LL_GROUPS_FOLDER);
	assert_string_equal(found.mount, "/sys/fs/cgroup/unified");
	assert_false(found.is_beside_limits);
	assert_int_equal(ll_hierarchy_choose(both, own, &found), 0);
	assert_int_equal(found.groups.kind, LL_GROUPS_FOLDER);
	assert_string_equal(found.mount, "/sys/fs/cgroup/unified");
	assert_true(found.is_beside_limits);
	assert_int_equal(ll_hierarchy_choose(both, "6:freezer:/\n0::/\n", &found), 0);
	assert_string_equal(found.groups.base, "/loadline-jobs");
	assert_int_equal(ll_hierarchy_choose(one, own, &found), -ENOENT);
	assert_int_equal(ll_hierarchy_choose(two, "6:freezer:/\n", &found), -ENOENT);
	assert_int_equal(ll_hierarchy_choose("", own, &found), -ENOENT);
}

TEST(a_group_is_found_behind_a_text_of_any_length)
{
	char path[PATH_MAX];
	static char text[100000];
	make_group("/jobs/loadline-job-1000-77");
	snprintf(path, sizeof path, "%s/jobs/loadline-job-1000-77/cgroup.procs", mount);
	write_file(path, "");
	snprintf(path, sizeof path, "%s/%d/cgroup", proc, (int)child);
	int length = snprintf(text, sizeof text, "5:cpu:/");
	memset(text + length, 'x', sizeof text - 1 - (size_t)length);
	snprintf(text + sizeof text - 100, 100, "\n0::/user.slice/user-1000.slice/session-5.scope\n");
	write_file(path, text);
	assert_int_equal(ask(LL_KEEPER_PLACE), 0);
}

/* ---- the end ---- */

/* SIGTERM comes exactly between the look at the flag and the wait. */
static bool raises;

static void raise_once(void)
{
	if (raises) {
		raises = false;
		raise(SIGTERM);
	}
}

/* TSan runs the handler of a signal only in a function that it stands in front of. */
static int let_handlers_run(long result)
{
	int code = errno;
	usleep(0);
	errno = code;
	return (int)result;
}

/* The two are the C library's otherwise, whose names begin with underscores. */
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) /* NOLINT */
{
	struct timespec copy = timeout ? *timeout : (struct timespec){0};
	raise_once();
	return let_handlers_run(syscall(SYS_ppoll, fds, count, timeout ? &copy : NULL, mask, (size_t)(NSIG / 8)));
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) /* NOLINT */
{
	struct timespec wait = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
	raise_once();
	return let_handlers_run(
	    syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &wait, NULL, (size_t)(NSIG / 8)));
}

TEST(a_signal_that_comes_just_before_the_wait_ends_the_service)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	raises = true;
	alarm(60); /* it waits */
	assert_int_equal(ll_keeper_serve(&keeper, ends[0], NULL), 0);
	alarm(0);
	assert_false(raises);
	close(ends[0]);
	close(ends[1]);
}
