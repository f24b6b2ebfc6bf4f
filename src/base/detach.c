#include "base/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"

/* The variables that a detached process keeps: the simulated world to which it belongs, and the folder of data for
 * later runs (earlier/file.h). */
static const char *const kept[] = {"LOADLINE_SIM_DIR", "XDG_STATE_HOME", "HOME"};
enum { KEPT = sizeof kept / sizeof *kept, TRY_TEXT_SIZE = 1024 };

/* An environment. Its entries are the process's, or `preload`. */
struct variables {
	const char *list[KEPT + 2]; /* NULL-ended */
	char preload[PATH_MAX];
};

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

void ll_detach_self(void)
{
	int rc = chdir("/");
	(void)rc;
	umask(S_IRWXG | S_IRWXO);
	reset_signals();
	raise_limits();
	reset_schedule();
}

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

/* Reads what the child writes, until it has closed its end. False: it had not at the deadline. */
static bool read_output(int fd, uint64_t deadline_ns, char *text, size_t size)
{
	size_t length = 0;
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int timeout_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / LL_NS_PER_MS) + 1 : 0;
		int count = poll(&ready, 1, timeout_ms);
		if (count == 0)
			return false;
		if (length + 1 == size) { /* its end says more than its beginning */
			memmove(text, text + size / 2, length - size / 2);
			length -= size / 2;
		}
		ssize_t n = count < 0 ? -1 : read(fd, text + length, size - 1 - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		length += (size_t)n;
		text[length] = '\0';
	}
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
	char text[TRY_TEXT_SIZE] = "";
	int ends[2], status = 0;
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	list_variables(&variables);
	struct ll_child child = {.path = path,
				 .words = words,
				 .environment = variables.list,
				 .in = LL_CHILD_NULL,
				 .out = LL_CHILD_NULL,
				 .err = ends[1],
				 .flags = LL_CHILD_DETACHED};
	int rc = ll_child_start(&child, &pid, err);
	close(ends[1]);
	if (!rc && !read_output(ends[0], deadline_ns, text, sizeof text)) {
		kill(pid, SIGKILL);
		rc = ll_err_set(err, -ETIMEDOUT, "%s", strerror(ETIMEDOUT));
	}
	close(ends[0]);
	if (rc == -ETIMEDOUT || !rc) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (rc || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return rc;
	if (*text)
		return ll_err_set(err, -EIO, "%s", last_line(text));
	return WIFSIGNALED(status) ? ll_err_set(err, -EIO, "ended by signal %d", WTERMSIG(status))
				   : ll_err_set(err, -EIO, "ended with status %d", WEXITSTATUS(status));
}
