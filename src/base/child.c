#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/close_from.h"
#include "base/detach.h"
#include "base/err.h"
#include "base/relay.h"
#include "base/scope.h"

enum { STANDARD_FDS = 3, EXEC_FAILED = 127 };

void ll_child_group_signals(sigset_t *ret_set)
{
	static const int group_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGTSTP,
					    SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGPIPE};
	sigemptyset(ret_set);
	for (size_t i = 0; i < sizeof group_signals / sizeof *group_signals; i++)
		sigaddset(ret_set, group_signals[i]);
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
	if (birth->child->flags & LL_CHILD_ORPHAN) {
		setsid();
		pid_t pid = fork();
		if (pid < 0)
			tell_and_exit(birth->tell_fd, errno);
		if (pid > 0)
			_exit(0);
	}
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
	set_family(birth);
	int code = arrange_fds(birth);
	if (code)
		tell_and_exit(birth->tell_fd, code);
	signal(SIGPIPE, SIG_DFL);
	if (birth->child->flags & LL_CHILD_DETACHED)
		ll_detach_self();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, birth->child->mask ? birth->child->mask : &none, NULL);
	execve(birth->path, birth->words, birth->environment);
	tell_and_exit(birth->tell_fd, errno);
}

/* ---- in the parent ---- */

static int standard_fd(int fd)
{
	return fd == LL_CHILD_RELAYED ? ll_relay_fd() : fd;
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
