/* The ssh of each machine: started, read until it has ended, and ended where it is late. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/status/hosts.h"

/* Whether an ssh has ended is looked at so often; some keep standard error open in a process that goes on. */
enum { LOOK_MS = 20, CHUNK = 16384, OPTION_SIZE = 48 };
/* Of one machine's answer: hundreds of cards and thousands of programs. */
enum { ANSWER_MAX = 16 << 20 };

struct asked {
	pid_t pid; /* 0: it has ended, or was not started */
	int out_fd, err_fd;
};

/* ---- start ---- */

static int find_program(const char *name, char ret_path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	if (strchr(name, '/'))
		return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -ENAMETOOLONG;
	for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
		size_t length = strcspn(at, ":");
		int needed = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)length, at, name);
		if (length && needed < PATH_MAX && access(ret_path, X_OK) == 0)
			return 0;
		at += length + (at[length] == ':');
	}
	return -ENOENT;
}

static int start_ssh(const char *path, const struct ll_status_host *host, uint64_t within_ns, struct asked *ret_asked,
		     struct ll_err *err)
{
	char connect[OPTION_SIZE];
	int out[2], errors[2];
	unsigned seconds = (unsigned)(within_ns / LL_NS_PER_S);
	snprintf(connect, sizeof connect, "ConnectTimeout=%u", seconds ? seconds : 1);
	const char *const words[] = {"ssh",      "-o",       "BatchMode=yes", "-o",     connect, "--",
				     host->name, "loadline", "status",        "--json", NULL};
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK))
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	if (pipe2(errors, O_CLOEXEC | O_NONBLOCK)) {
		int code = errno;
		close(out[0]);
		close(out[1]);
		return ll_err_set(err, -code, "pipe: %s", strerror(code));
	}
	/* The ends that ssh writes to shall wait. */
	fcntl(out[1], F_SETFL, 0);
	fcntl(errors[1], F_SETFL, 0);
	struct ll_child child = {.path = path,
				 .words = words,
				 .in = LL_CHILD_NULL,
				 .out = out[1],
				 .err = errors[1],
				 .flags = LL_CHILD_OWN_GROUP | LL_CHILD_MORTAL};
	*ret_asked = (struct asked){.out_fd = out[0], .err_fd = errors[0]};
	int rc = ll_child_start(&child, &ret_asked->pid, err);
	close(out[1]);
	close(errors[1]);
	return rc ? ll_err_wrap(err, "%s", path) : 0;
}

/* ---- until the end ---- */

/* Reads what is there now. */
static void drain(int *fd, struct ll_strbuf *text)
{
	char chunk[CHUNK];
	ssize_t n = -1;
	while (*fd >= 0 && (n = read(*fd, chunk, sizeof chunk)) > 0) {
		if (text->length + (size_t)n > ANSWER_MAX)
			text->failed = true;
		ll_strbuf_add(text, chunk, (size_t)n);
	}
	if (*fd >= 0 && n == 0) {
		close(*fd);
		*fd = -1;
	}
}

static void look_at(struct asked *asked, struct ll_status_host *host)
{
	bool has_ended = asked->pid && waitpid(asked->pid, &host->wait_status, WNOHANG) == asked->pid;
	drain(&asked->out_fd, &host->out);
	drain(&asked->err_fd, &host->err);
	if (has_ended)
		asked->pid = 0;
}

static void end_one(struct asked *asked, struct ll_status_host *host)
{
	if (asked->pid) {
		host->is_late = true;
		kill(-asked->pid, SIGKILL);
		while (waitpid(asked->pid, &host->wait_status, 0) < 0 && errno == EINTR)
			;
		asked->pid = 0;
	}
	if (asked->out_fd >= 0)
		close(asked->out_fd);
	if (asked->err_fd >= 0)
		close(asked->err_fd);
}

static size_t count_running(const struct asked *asked, size_t count)
{
	size_t running = 0;
	for (size_t i = 0; i < count; i++)
		running += asked[i].pid != 0;
	return running;
}

static void collect(struct asked *asked, struct ll_status_host *hosts, size_t count, struct pollfd *polled,
		    uint64_t deadline_ns)
{
	while (count_running(asked, count) && ll_now_ns() < deadline_ns) {
		for (size_t i = 0; i < count; i++) {
			polled[2 * i] = (struct pollfd){.fd = asked[i].out_fd, .events = POLLIN};
			polled[2 * i + 1] = (struct pollfd){.fd = asked[i].err_fd, .events = POLLIN};
		}
		poll(polled, 2 * count, LOOK_MS);
		for (size_t i = 0; i < count; i++)
			look_at(&asked[i], &hosts[i]);
	}
}

int ll_status_hosts_ask(struct ll_status_host *hosts, size_t count, uint64_t within_ns, struct ll_err *err)
{
	const char *named = getenv(LL_STATUS_SSH_VARIABLE), *name = named && *named ? named : "ssh";
	LL_SCOPE_FREE struct asked *asked = calloc(count, sizeof *asked);
	LL_SCOPE_FREE struct pollfd *polled = calloc(2 * count, sizeof *polled);
	uint64_t deadline_ns = ll_now_ns() + within_ns;
	char path[PATH_MAX];
	size_t started = 0;
	int rc = find_program(name, path);
	if (rc)
		return ll_err_set(err, rc, "%s: %s", name, strerror(-rc));
	if (!asked || !polled)
		return ll_err_set(err, -ENOMEM, "--host: %s", strerror(ENOMEM));
	for (size_t i = 0; i < count; i++)
		asked[i] = (struct asked){.out_fd = -1, .err_fd = -1};
	for (; !rc && started < count; started++)
		rc = start_ssh(path, &hosts[started], within_ns, &asked[started], err);
	if (!rc)
		collect(asked, hosts, count, polled, deadline_ns);
	for (size_t i = 0; i < started; i++)
		end_one(&asked[i], &hosts[i]);
	return rc;
}
