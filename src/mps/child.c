#include "mps/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"

enum { INPUT_MAX = 4096, OUTPUT_MAX = 1 << 20 };

/* Time between two looks for the program's end, if the kernel has no pidfd (before 5.3, or filtered in a container). */
enum { LOOK_MS = 5, REAP_MS = 500 };

/* Writes the input before the program starts: all of it fits into the pipe, so nobody writes to a closed pipe. */
static int make_input(const char *text, int *ret_fd, struct ll_err *err)
{
	int ends[2];
	size_t length = text ? strlen(text) : 0;
	if (length > INPUT_MAX)
		return ll_err_set(err, -E2BIG, "MPS: a command of %zu letters is too long", length);
	if (pipe2(ends, O_CLOEXEC))
		return ll_err_set(err, -errno, "MPS: pipe: %s", strerror(errno));
	bool is_whole = !length || write(ends[1], text, length) == (ssize_t)length;
	close(ends[1]);
	if (!is_whole) {
		close(ends[0]);
		return ll_err_set(err, -EIO, "MPS: pipe: cannot be written");
	}
	*ret_fd = ends[0];
	return 0;
}

static void drain_output(int fd, struct ll_strbuf *output)
{
	char buf[4096];
	ssize_t n;
	while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0) {
		if (output->length < OUTPUT_MAX)
			ll_strbuf_add(output, buf, (size_t)n);
	}
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

/* Reads output until the program has ended or the deadline has passed. True: it has ended, and *status is set. */
static bool follow_child(pid_t pid, int pidfd, int out, uint64_t deadline_ns, struct ll_strbuf *output, int *status)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	for (;;) {
		int n = poll(fds, 2, wait_ms(deadline_ns, pidfd >= 0));
		drain_output(out, output);
		if (fds[0].revents &
		    (POLLHUP | POLLERR)) /* all writers have closed it: only the program's end is waited for */
			fds[0].fd = -1;
		if (reap_child(pid, status)) {
			drain_output(out, output);
			return true;
		}
		if ((n < 0 && errno != EINTR) || ll_now_ns() >= deadline_ns)
			return false;
	}
}

/* Kills the program. If it does not die (it is inside a driver call), it is left, and init reaps it after this process
 * has ended. */
static void kill_and_reap(pid_t pid, int pidfd)
{
	int status;
	uint64_t until_ns = ll_now_ns() + REAP_MS * LL_NS_PER_MS;
	struct pollfd end = {.fd = pidfd, .events = POLLIN};
	kill(pid, SIGKILL);
	while (!reap_child(pid, &status) && ll_now_ns() < until_ns)
		poll(&end, 1, wait_ms(until_ns, pidfd >= 0));
}

/* A daemon gets the signals that the caller blocks. */
static int start_child(const struct ll_mps_child *child, int in, int out, pid_t *ret_pid, struct ll_err *err)
{
	struct ll_child program = {
	    .path = child->words[0],
	    .words = child->words,
	    .environment = child->environment,
	    .in = in,
	    .out = out,
	    .err = out,
	    .flags = LL_CHILD_MORTAL,
	};
	if (ll_child_start(&program, ret_pid, err) < 0)
		return ll_err_wrap(err, "MPS: start %.200s", child->words[0]);
	return 0;
}

/* Opens the output's two ends, for writing and for reading: a pipe, or a file in memory twice. */
static int make_output(bool is_file, int ret_ends[2], struct ll_err *err)
{
	if (!is_file && pipe2(ret_ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		/* The writing end blocks, so that a full pipe is no error for the program. */
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
	return ll_err_set(err, -code, "MPS: output: %s", strerror(code));
}

/* Both ends of the file share one offset, so the output is read from the beginning. */
static void read_file(int fd, struct ll_strbuf *output)
{
	char buf[4096];
	ssize_t n;
	for (off_t at = 0; at < OUTPUT_MAX && (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		ll_strbuf_add(output, buf, (size_t)n);
}

int ll_mps_child_run(const struct ll_mps_child *child, struct ll_strbuf *output, int *ret_status, struct ll_err *err)
{
	LL_SCOPE_CLOSE int in = -1;
	int ends[2] = {-1, -1};
	int rc = make_input(child->input, &in, err);
	if (!rc)
		rc = make_output(child->leaves_daemon, ends, err);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int out = ends[0];
	pid_t pid = -1;
	rc = start_child(child, in, ends[1], &pid, err);
	close(ends[1]);
	if (rc)
		return rc;
	int status = 0;
	LL_SCOPE_CLOSE int pidfd = ll_process_open_pidfd(pid);
	bool has_ended = follow_child(pid, pidfd, child->leaves_daemon ? -1 : out, child->deadline_ns, output, &status);
	if (!has_ended)
		kill_and_reap(pid, pidfd);
	if (child->leaves_daemon)
		read_file(out, output);
	if (!has_ended)
		return ll_err_set(err, -ETIMEDOUT, "MPS: %.200s: no answer in time", child->words[0]);
	*ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}
