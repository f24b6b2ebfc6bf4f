/* A detached process, looked at in /proc: nothing of its starter is left in it. */
#include "base/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "test.h"
#include "wait_for.h"

enum { OPEN_FDS = 40, TEXT_SIZE = 8192, FEW_SECONDS = 1000 };

/* ---- what the detached process does: it tells its number, and waits until nobody holds the other end ---- */

static int serve(void)
{
	pid_t pid = getpid();
	char end;
	if (write(LL_CHILD_FIRST_FD, &pid, sizeof pid) != (ssize_t)sizeof pid)
		return 1;
	return read(LL_CHILD_FIRST_FD, &end, 1) == 0 ? 0 : 1;
}

/* ---- the starter, which has all that may cling ---- */

/* Ignores and blocks all signals, also those of the C library's own (32, 33), which it gives no way to. */
static void cling_to_signals(void)
{
	/* The kernel's sigaction: the handler first. */
	static const unsigned long ignored[16] = {(unsigned long)SIG_IGN};
	const uint64_t all = UINT64_MAX;
	for (int i = 1; i < NSIG; i++)
		assert_int_equal(syscall(SYS_rt_sigaction, i, ignored, NULL, sizeof all) == 0,
				 i != SIGKILL && i != SIGSTOP);
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all), 0);
}

static void cling(const char *folder)
{
	struct rlimit limit;
	struct sched_param param = {.sched_priority = 0};
	cpu_set_t one;
	assert_int_equal(chdir(folder), 0);
	umask(0);
	cling_to_signals();
	for (int i = 0; i < OPEN_FDS; i++) {
		int fd = open(folder, O_RDONLY);
		assert_true(fd >= 0);
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	getrlimit(RLIMIT_CPU, &limit);
	limit.rlim_cur = FEW_SECONDS;
	assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	setenv("LOADLINE_SIM_DIR", "/the/world", 1);
	setenv("XDG_STATE_HOME", "/the/state", 1);
	setenv("HOME", "/home/me", 1);
	setenv("LD_PRELOAD_OF_TEST", "/some/library.so", 1);
	setenv("LD_PRELOAD", "/none/other.so:/none/libloadline-sim-kernel.so:/none/libloadline-sim-kernel.so.1", 1);
}

static void read_proc(pid_t pid, const char *name, char text[TEXT_SIZE])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, text, TEXT_SIZE - 1);
	text[length > 0 ? length : 0] = '\0';
}

static void check_link(pid_t pid, const char *name, const char *expected)
{
	char path[64], file[256] = "";
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	ssize_t length = readlink(path, file, sizeof file - 1);
	assert_true(length > 0);
	file[length] = '\0';
	assert_int_equal(strncmp(file, expected, strlen(expected)), 0);
}

static void check_fds(pid_t pid)
{
	char path[64];
	size_t count = 0;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	assert_int_equal(count, 4);
	check_link(pid, "fd/0", "/dev/null");
	check_link(pid, "fd/1", "/dev/null");
	check_link(pid, "fd/2", "/dev/null");
	check_link(pid, "fd/3", "socket:");
}

static void check_status(pid_t pid)
{
	char text[TEXT_SIZE];
	read_proc(pid, "status", text);
	assert_non_null(strstr(text, "\nUmask:\t0077\n"));
	assert_non_null(strstr(text, "\nSigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nSigIgn:\t0000000000000000\n"));
	assert_non_null(strstr(text, "Name:\tunit_base_detac\n"));
}

/* The session is another one, the process does not lead it, and so can get no terminal. */
static void check_session(pid_t pid)
{
	assert_int_not_equal(getsid(pid), getsid(0));
	assert_int_not_equal(getsid(pid), pid);
}

static void check_limits(pid_t pid)
{
	static const __rlimit_resource_t raised[] = {RLIMIT_NOFILE, RLIMIT_CPU};
	struct rlimit limit;
	cpu_set_t cpus;
	for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) {
		assert_int_equal(prlimit(pid, raised[i], NULL, &limit), 0);
		assert_true(limit.rlim_cur == limit.rlim_max);
	}
	assert_int_equal(sched_getscheduler(pid), SCHED_OTHER);
	assert_int_equal(sched_getaffinity(pid, sizeof cpus, &cpus), 0);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		assert_true(CPU_COUNT(&cpus) > 1);
}

static void check_environment(pid_t pid)
{
	static const char *const kept[] = {"LOADLINE_SIM_DIR=/the/world", "XDG_STATE_HOME=/the/state", "HOME=/home/me",
					   "LD_PRELOAD=/none/libloadline-sim-kernel.so"};
	char text[TEXT_SIZE] = "";
	size_t count = 0, found = 0;
	read_proc(pid, "environ", text);
	for (const char *at = text; *at; at += strlen(at) + 1, count++) {
		for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
			found += strcmp(at, kept[i]) == 0;
	}
	assert_int_equal(count, sizeof kept / sizeof *kept);
	assert_int_equal(found, count);
}

/* Runs in a child of the test, because nothing of this can be undone. */
static void start_and_look(const char *program, const char *folder)
{
	int ends[2];
	pid_t pid = 0;
	static const char *const words[] = {"detached", "serve", NULL};
	cling(folder);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	struct ll_detach detach = {.path = program, .words = words, .fds = &ends[1], .fd_count = 1};
	assert_int_equal(ll_detach_start(&detach, NULL), 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
	check_fds(pid);
	check_status(pid);
	check_session(pid);
	check_limits(pid);
	check_environment(pid);
	check_link(pid, "cwd", "/");
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static const char *program;

TEST(a_program_that_is_not_there_is_an_error)
{
	static const char *const words[] = {"detached", NULL};
	struct ll_err err;
	struct ll_detach detach = {.path = "/nowhere/at/all", .words = words};
	assert_fails(ll_detach_start(&detach, &err), -ENOENT, "No such file");
}

/* The last one: it changes this process. */
TEST(a_detached_process_keeps_nothing_of_its_starter)
{
	char folder[] = "/tmp/loadline-detach.XXXXXX";
	assert_non_null(mkdtemp(folder));
	start_and_look(program, folder);
	assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
	char own[4096];
	if (argc > 1)
		return serve();
	program = realpath(argv[0], own);
	return tests_run(argc, argv);
}
