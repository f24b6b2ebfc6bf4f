#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/guest.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/strbuf.h"

enum { STANDARD_FDS = 3, EXEC_FAILED = 127 };

void ll_child_group_signals(sigset_t *ret_set)
{
	static const int group_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGTSTP,
					    SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGPIPE};
	sigemptyset(ret_set);
	for (size_t i = 0; i < sizeof group_signals / sizeof *group_signals; i++)
		sigaddset(ret_set, group_signals[i]);
}

/* ---- closing descriptors ---- */

enum { DESCRIPTORS = 65536 };

#define CLOSE_IN_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC, from Linux 5.11 on */

static long close_range_from(unsigned first, unsigned flags)
{
#ifdef SYS_close_range
	return syscall(SYS_close_range, first, ~0U, flags);
#else
	(void)first;
	(void)flags;
	return -1;
#endif
}

void ll_close_from_now(unsigned first)
{
	if (close_range_from(first, 0) == 0)
		return;
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = (int)first; fd < (most > 0 && most < DESCRIPTORS ? (int)most : DESCRIPTORS); fd++)
		close(fd);
}

void ll_close_from(unsigned first)
{
	if (close_range_from(first, CLOSE_IN_EXEC) != 0)
		ll_close_from_now(first);
}

/* ---- letting go of what the starter has ---- */

/* The soft limit of the stack stays: if it is high, the kernel lays out memory in another way. */
static const int raised[] = {RLIMIT_AS,     RLIMIT_CPU,   RLIMIT_DATA, RLIMIT_FSIZE,     RLIMIT_MEMLOCK,
			     RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_RSS,  RLIMIT_SIGPENDING};

static void raise_limits(void)
{
	struct rlimit limit;
	for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) {
		if (getrlimit((__rlimit_resource_t)raised[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit((__rlimit_resource_t)raised[i], &limit);
	}
	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		limit.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &limit);
	}
}

static void reset_schedule(void)
{
	struct sched_param param = {.sched_priority = 0};
	cpu_set_t cpus;
	if (sched_getscheduler(0) != SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &param);
	memset(&cpus, 0xff, sizeof cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
	setpriority(PRIO_PROCESS, 0, 0);
}

/* The C library does not reset the two signals that it uses itself (32, 33). An ancestor may ignore them, so they are
 * reset by the system call. */
static void reset_signals(void)
{
	/* A kernel's sigaction of zeros is SIG_DFL without flags or mask, whatever the order of its members. */
	static const unsigned long by_default[16];
	for (int i = 1; i < NSIG; i++)
		syscall(SYS_rt_sigaction, i, by_default, NULL, (NSIG - 1) / 8);
}

/* Resets folder, umask, signal handlers, soft limits, scheduling class and CPUs. */
static void detach_self(void)
{
	int rc = chdir("/");
	(void)rc;
	umask(S_IRWXG | S_IRWXO);
	reset_signals();
	raise_limits();
	reset_schedule();
}

/* ---- a pipe whose contents are copied to this process's standard error stream ---- */

/* So no started process keeps this process's own descriptor. A thread copies. At exit the rest of the pipe is copied.
 * After the end of this process a writer gets EPIPE. */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held from a read to the end of its write */
static int read_fd = -1, write_fd = -1;

static void write_whole(const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDERR_FILENO, text, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

/* Copies the contents of the pipe. Returns false if it is empty. */
static bool copy_some(void)
{
	char text[4096];
	LL_SCOPE_LOCK(&mutex);
	ssize_t n = read(read_fd, text, sizeof text);
	if (n > 0)
		write_whole(text, (size_t)n);
	return n > 0;
}

static void copy_rest(void)
{
	while (copy_some())
		;
}

static void *relay_main(void *arg)
{
	struct pollfd ready = {.fd = read_fd, .events = POLLIN};
	(void)arg;
	for (;;) {
		if (poll(&ready, 1, -1) > 0)
			copy_some();
	}
	return NULL;
}

static void make_relay(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	read_fd = ends[0];
	if (ll_guest_thread_start(0, relay_main, NULL, NULL) == 0) {
		write_fd = ends[1];
		atexit(copy_rest);
		return;
	}
	close(ends[0]);
	close(ends[1]);
}

/* Returns the writing end, which stays open; -1: no pipe or thread could be made. The first call makes them. */
static int relay_fd(void)
{
	pthread_once(&once, make_relay);
	return write_fd;
}

/* ---- in the child, between fork and exec: only system calls ---- */

/* The data that the parent prepares for the child. */
struct birth {
	const struct ll_child *child;
	int *fds; /* all descriptors of the child, from 0 on */
	size_t count;
	int tell_fd; /* the child writes exec's errno there */
	pid_t parent;
	const char *path;
	char *const *words, *const *environment;
};

static _Noreturn void tell_and_exit(int tell_fd, int code)
{
	ssize_t n = write(tell_fd, &code, sizeof code);
	(void)n;
	_exit(EXEC_FAILED);
}

/* Returns 0 or an errno. The descriptors are first moved above all wanted numbers, and then to these numbers. */
static int arrange_fds(struct birth *birth)
{
	int above = (int)birth->count + 1;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return errno;
	int tell_fd = fcntl(birth->tell_fd, F_DUPFD_CLOEXEC, above);
	if (tell_fd < 0)
		return errno;
	birth->tell_fd = tell_fd;
	for (size_t i = 0; i < birth->count; i++) {
		birth->fds[i] = fcntl(birth->fds[i] >= 0 ? birth->fds[i] : null_fd, F_DUPFD_CLOEXEC, above);
		if (birth->fds[i] < 0)
			return errno;
	}
	for (size_t i = 0; i < birth->count; i++) {
		if (dup2(birth->fds[i], (int)i) < 0)
			return errno;
	}
	if (dup3(birth->tell_fd, above - 1, O_CLOEXEC) < 0)
		return errno;
	birth->tell_fd = above - 1;
	ll_close_from((unsigned)above);
	return 0;
}

static void set_family(const struct birth *birth)
{
	if (birth->child->flags & LL_CHILD_OWN_GROUP)
		setpgid(0, 0);
	if (birth->child->flags & LL_CHILD_MORTAL) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != birth->parent) /* the parent has ended before */
			_exit(EXEC_FAILED);
	}
}

static _Noreturn void become_program(struct birth *birth)
{
	sigset_t none;
	if (birth->child->flags & LL_CHILD_ORPHAN) {
		setsid();
		/* The memory is a copy already; a second one would be for nothing. The parent only ends. Not vfork in
		 * both forks: AddressSanitizer, where it is preloaded, keeps one return address for both. */
		pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
		if (pid < 0)
			tell_and_exit(birth->tell_fd, errno);
		if (pid > 0)
			_exit(0);
	}
	set_family(birth);
	int code = arrange_fds(birth);
	if (code)
		tell_and_exit(birth->tell_fd, code);
	signal(SIGPIPE, SIG_DFL);
	if (birth->child->flags & LL_CHILD_DETACHED)
		detach_self();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, birth->child->mask ? birth->child->mask : &none, NULL);
	execve(birth->path, birth->words, birth->environment);
	tell_and_exit(birth->tell_fd, errno);
}

/* ---- in the parent ---- */

static int standard_fd(int fd)
{
	return fd == LL_CHILD_RELAYED ? relay_fd() : fd;
}

static int *list_fds(const struct ll_child *child)
{
	int *fds = calloc(STANDARD_FDS + child->fd_count, sizeof *fds);
	if (!fds)
		return NULL;
	fds[STDIN_FILENO] = standard_fd(child->in);
	fds[STDOUT_FILENO] = standard_fd(child->out);
	fds[STDERR_FILENO] = standard_fd(child->err);
	if (child->fd_count)
		memcpy(fds + STANDARD_FDS, child->fds, child->fd_count * sizeof *fds);
	return fds;
}

/* Returns 0 or the errno of the failure. */
static int wait_for_exec(pid_t pid, int tell_fd, bool is_orphan)
{
	int code = 0;
	ssize_t n;
	if (is_orphan)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	do
		n = read(tell_fd, &code, sizeof code);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof code)
		return 0;
	if (!is_orphan)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return code;
}

/* No signal handler of the caller runs in the child. */
static pid_t fork_program(struct birth *birth)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0)
		become_program(birth);
	int code = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = code;
	return pid;
}

int ll_child_start(const struct ll_child *child, pid_t *ret_pid, struct ll_err *err)
{
	int ends[2];
	bool is_orphan = child->flags & LL_CHILD_ORPHAN;
	LL_SCOPE_FREE int *fds = list_fds(child);
	if (!fds)
		return ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	struct birth birth = {
	    .child = child,
	    .fds = fds,
	    .count = STANDARD_FDS + child->fd_count,
	    .tell_fd = ends[1],
	    .parent = getpid(),
	    .path = child->path ? child->path : "/proc/self/exe",
	    .words = (char *const *)child->words,
	    .environment = child->environment ? (char *const *)child->environment : environ,
	};
	pid_t pid = fork_program(&birth);
	int code = pid < 0 ? errno : 0;
	close(ends[1]);
	if (pid > 0)
		code = wait_for_exec(pid, ends[0], is_orphan);
	close(ends[0]);
	if (code)
		return ll_err_set(err, -code, "%s", strerror(code));
	*ret_pid = is_orphan ? 0 : pid;
	return 0;
}

/* ---- a process for its output ---- */

enum { INPUT_MAX = 4096, OUTPUT_MAX = 4 << 20, SIGNAL_STATUS = 128 };

/* Time between two looks for the process's end, if the kernel has no pidfd (before 5.3, or filtered in a container). */
enum { LOOK_MS = 5, REAP_MS = 500 };

/* Writes the input before the process starts: all of it fits into the pipe, so nobody writes to a closed pipe. */
static int make_input(const char *text, int *ret_fd, struct ll_err *err)
{
	int ends[2];
	size_t length = strlen(text);
	if (length > INPUT_MAX)
		return ll_err_set(err, -E2BIG, "an input of %zu letters is too long", length);
	if (pipe2(ends, O_CLOEXEC))
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	bool is_whole = write(ends[1], text, length) == (ssize_t)length;
	close(ends[1]);
	if (!is_whole) {
		close(ends[0]);
		return ll_err_set(err, -EIO, "pipe: cannot be written");
	}
	*ret_fd = ends[0];
	return 0;
}

/* Opens the output's two ends, for reading and for writing: a pipe, or a file in memory twice. */
static int make_output(bool is_file, int ret_ends[2], struct ll_err *err)
{
	if (!is_file && pipe2(ret_ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		/* The writing end blocks, so that a full pipe is no error for the process. */
		fcntl(ret_ends[1], F_SETFL, 0);
		return 0;
	}
	ret_ends[1] = is_file ? memfd_create("output", MFD_CLOEXEC) : -1;
	ret_ends[0] = ret_ends[1] < 0 ? -1 : fcntl(ret_ends[1], F_DUPFD_CLOEXEC, LL_CHILD_FIRST_FD);
	if (ret_ends[0] >= 0)
		return 0;
	int code = errno;
	if (ret_ends[1] >= 0)
		close(ret_ends[1]);
	return ll_err_set(err, -code, "output: %s", strerror(code));
}

static void drain_output(int fd, struct ll_strbuf *output)
{
	char buf[4096];
	ssize_t n;
	while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0) {
		if (output->length <= OUTPUT_MAX)
			ll_strbuf_add(output, buf, (size_t)n);
	}
}

/* Both ends of the file share one offset, so the output is read from the beginning. */
static void read_output(int fd, struct ll_strbuf *output)
{
	char buf[4096];
	ssize_t n;
	for (off_t at = 0; at <= OUTPUT_MAX && (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		ll_strbuf_add(output, buf, (size_t)n);
}

static bool reap_child(pid_t pid, int *status)
{
	pid_t got = waitpid(pid, status, WNOHANG);
	return got == pid || (got < 0 && errno == ECHILD);
}

static int wait_ms(uint64_t deadline_ns, bool has_pidfd)
{
	uint64_t now_ns = ll_now_ns();
	uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / LL_NS_PER_MS + 1 : 0;
	uint64_t most_ms = has_pidfd ? 1000 : LOOK_MS;
	return (int)(left_ms < most_ms ? left_ms : most_ms);
}

/* Reads output until the process has ended, and *status is set; or returns the error for which it must be killed. */
static int follow_child(const struct ll_child_run *run, pid_t pid, int pidfd, int out, struct ll_strbuf *output,
			int *status)
{
	uint64_t deadline_ns = run->deadline_ns ? run->deadline_ns : UINT64_MAX;
	struct pollfd fds[] = {{.fd = out, .events = POLLIN},
			       {.fd = pidfd, .events = POLLIN},
			       {.fd = run->stop_fd ? *run->stop_fd : -1, .events = POLLIN}};
	for (;;) {
		int n = poll(fds, sizeof fds / sizeof *fds, wait_ms(deadline_ns, pidfd >= 0));
		drain_output(out, output);
		if (n > 0 && fds[0].revents & (POLLHUP | POLLERR)) /* all writers have closed it */
			fds[0].fd = -1;
		if (reap_child(pid, status)) {
			drain_output(out, output);
			return 0;
		}
		if (n > 0 && fds[2].revents)
			return -EINTR;
		if ((n < 0 && errno != EINTR) || ll_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
	}
}

static void kill_and_reap(const struct ll_child *child, pid_t pid, int pidfd)
{
	int status;
	uint64_t until_ns = ll_now_ns() + REAP_MS * LL_NS_PER_MS;
	struct pollfd end = {.fd = pidfd, .events = POLLIN};
	kill(child->flags & LL_CHILD_OWN_GROUP ? -pid : pid, SIGKILL);
	while (!reap_child(pid, &status) && ll_now_ns() < until_ns)
		poll(&end, 1, wait_ms(until_ns, pidfd >= 0));
}

int ll_child_run(const struct ll_child_run *run, struct ll_strbuf *output, int *ret_status, struct ll_err *err)
{
	struct ll_child child = run->child;
	LL_SCOPE_CLOSE int in = -1;
	int ends[2], status = 0;
	pid_t pid = -1;
	int rc = run->input ? make_input(run->input, &in, err) : 0;
	if (!rc)
		rc = make_output(run->leaves_daemon, ends, err);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int out = ends[0];
	child.in = run->input ? in : child.in;
	child.out = child.out == LL_CHILD_COLLECTED ? ends[1] : child.out;
	child.err = child.err == LL_CHILD_COLLECTED ? ends[1] : child.err;
	rc = ll_child_start(&child, &pid, err);
	close(ends[1]);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int pidfd = ll_process_open_pidfd(pid);
	rc = follow_child(run, pid, pidfd, run->leaves_daemon ? -1 : out, output, &status);
	if (rc)
		kill_and_reap(&child, pid, pidfd);
	if (run->leaves_daemon)
		read_output(out, output);
	if (!rc && output->length > OUTPUT_MAX)
		rc = -E2BIG;
	*ret_status = WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
	return rc ? ll_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

int ll_child_keep_only(int fd)
{
	int null_fd = open("/dev/null", O_RDWR);
	if (null_fd < 0)
		return -errno;
	for (int i = STDIN_FILENO; i < STANDARD_FDS; i++)
		dup2(null_fd, i);
	if (fd != LL_CHILD_FIRST_FD && dup3(fd, LL_CHILD_FIRST_FD, O_CLOEXEC) < 0)
		return -errno;
	ll_close_from_now(LL_CHILD_FIRST_FD + 1);
	return LL_CHILD_FIRST_FD;
}

/* ---- processes that outlive everything that they were started from ---- */

/* The variables that a detached process keeps: the simulated world to which it belongs, and the folder of data for
 * later runs (advice/advice.h). */
static const char *const kept[] = {"LOADLINE_SIM_DIR", "XDG_STATE_HOME", "HOME"};
enum { KEPT = sizeof kept / sizeof *kept };

/* An environment. Its entries are the process's, or `preload`. */
struct variables {
	const char *list[KEPT + 2]; /* NULL-ended */
	char preload[PATH_MAX];
};

/* Writes LD_PRELOAD with the simulated kernel driver, if it is preloaded here; else "". */
static void write_preload(char ret_text[PATH_MAX])
{
	static const char separators[] = ": ", wanted[] = "/" LL_SIM_KERNEL_LIBRARY;
	const char *word = getenv("LD_PRELOAD");
	ret_text[0] = '\0';
	for (size_t length; word && *(word += strspn(word, separators)); word += length) {
		length = strcspn(word, separators);
		if (length < strlen(wanted) || strncmp(word + length - strlen(wanted), wanted, strlen(wanted)) != 0)
			continue;
		int n = snprintf(ret_text, PATH_MAX, "LD_PRELOAD=%.*s", (int)length, word);
		if (n < 0 || n >= PATH_MAX)
			ret_text[0] = '\0';
	}
}

static void list_variables(struct variables *variables)
{
	size_t used = 0;
	for (size_t i = 0; environ && environ[i]; i++) {
		for (size_t k = 0; k < KEPT; k++) {
			size_t length = strlen(kept[k]);
			if (used < KEPT && strncmp(environ[i], kept[k], length) == 0 && environ[i][length] == '=')
				variables->list[used++] = environ[i];
		}
	}
	write_preload(variables->preload);
	if (variables->preload[0])
		variables->list[used++] = variables->preload;
	variables->list[used] = NULL;
}

int ll_detach_start(const struct ll_detach *detach, struct ll_err *err)
{
	struct variables variables;
	pid_t none;
	list_variables(&variables);
	struct ll_child child = {
	    .path = detach->path,
	    .words = detach->words,
	    .environment = variables.list,
	    .in = LL_CHILD_NULL,
	    .out = LL_CHILD_NULL,
	    .err = LL_CHILD_NULL,
	    .fds = detach->fds,
	    .fd_count = detach->fd_count,
	    .flags = LL_CHILD_ORPHAN | LL_CHILD_DETACHED,
	};
	return ll_child_start(&child, &none, err);
}

static const char *last_line(char *text)
{
	size_t length = strlen(text);
	while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

int ll_detach_try(const char *path, const char *const *words, uint64_t deadline_ns, struct ll_err *err)
{
	struct variables variables;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int status = 0;
	list_variables(&variables);
	struct ll_child_run run = {.child = {.path = path,
					     .words = words,
					     .environment = variables.list,
					     .in = LL_CHILD_NULL,
					     .out = LL_CHILD_NULL,
					     .err = LL_CHILD_COLLECTED,
					     .flags = LL_CHILD_DETACHED},
				   .deadline_ns = deadline_ns};
	int rc = ll_child_run(&run, &text, &status, err);
	if (rc || !status)
		return rc;
	if (text.length)
		return ll_err_set(err, -EIO, "%s", last_line(text.buf));
	return status > SIGNAL_STATUS ? ll_err_set(err, -EIO, "ended by signal %d", status - SIGNAL_STATUS)
				      : ll_err_set(err, -EIO, "ended with status %d", status);
}
