#include "notify/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "protocol/message.h"

/* loadlined has one connection; one that has just ended may be beside it. */
enum { CONNECTIONS = 4, LISTENER = 0, SIGNALS = 1, FIRST_CONNECTION = 2, NO_EXEC_STATUS = 127 };

struct running_hook {
	pid_t pid; /* 0: none */
	uint64_t until_ns;
	bool is_late;
	char name[LL_EVENT_NAME_SIZE], hook[LL_EVENT_HOOK_SIZE];
};

struct notify_state {
	const struct ll_notify_settings *settings;
	struct pollfd fds[FIRST_CONNECTION + CONNECTIONS]; /* fd -1: free */
	struct running_hook hooks[LL_NOTIFY_AT_A_TIME];
	bool is_ending;
};

/* ---- commands ---- */

static struct running_hook *find_free(struct notify_state *state)
{
	for (int i = 0; i < LL_NOTIFY_AT_A_TIME; i++) {
		if (!state->hooks[i].pid)
			return &state->hooks[i];
	}
	return NULL;
}

static void start_hook(struct notify_state *state, struct running_hook *running, const struct ll_message_event *event)
{
	struct ll_err err = {0};
	char path[PATH_MAX];
	int rc = ll_hook_check(&state->settings->rules, event->hook, path, &err);
	if (!rc && (rc = ll_hook_start(event, path, &running->pid)))
		ll_err_set(&err, rc, "%s: %s", event->hook, strerror(-rc));
	if (rc) {
		running->pid = 0;
		ll_error("%s: not told: %s", event->name, err.text);
		return;
	}
	running->until_ns = ll_now_ns() + state->settings->deadline_ns;
	running->is_late = false;
	memcpy(running->name, event->name, sizeof running->name);
	memcpy(running->hook, event->hook, sizeof running->hook);
	if (event->dropped)
		ll_warn("%u events before this one were dropped", event->dropped);
}

static void log_end(const struct running_hook *running, int status)
{
	if (running->is_late)
		ll_error("%s: %s did not end in time", running->name, running->hook);
	else if (WIFSIGNALED(status))
		ll_error("%s: %s was ended by signal %d", running->name, running->hook, WTERMSIG(status));
	else if (WEXITSTATUS(status) == NO_EXEC_STATUS)
		ll_error("%s: %s cannot be executed", running->name, running->hook);
	else if (WEXITSTATUS(status))
		ll_error("%s: %s failed with status %d", running->name, running->hook, WEXITSTATUS(status));
	else
		ll_info("%s: %s was told", running->name, running->hook);
}

/* What the command has left in its process group ends with it. The command is reaped after that: then its number is
 * free, and may be that of another group. */
static void reap_hooks(struct notify_state *state)
{
	int status;
	for (int i = 0; i < LL_NOTIFY_AT_A_TIME; i++) {
		struct running_hook *running = &state->hooks[i];
		siginfo_t ended = {0};
		if (!running->pid || waitid(P_PID, (id_t)running->pid, &ended, WEXITED | WNOHANG | WNOWAIT) ||
		    ended.si_pid != running->pid)
			continue;
		kill(-running->pid, SIGKILL);
		waitpid(running->pid, &status, 0);
		log_end(running, status);
		running->pid = 0;
	}
}

static void end_late(struct notify_state *state, uint64_t now_ns)
{
	for (int i = 0; i < LL_NOTIFY_AT_A_TIME; i++) {
		struct running_hook *running = &state->hooks[i];
		if (!running->pid || running->is_late || now_ns < running->until_ns)
			continue;
		running->is_late = true;
		kill(-running->pid, SIGKILL);
	}
}

static void end_all(struct notify_state *state)
{
	for (int i = 0; i < LL_NOTIFY_AT_A_TIME; i++) {
		if (!state->hooks[i].pid)
			continue;
		kill(-state->hooks[i].pid, SIGKILL);
		waitpid(state->hooks[i].pid, NULL, 0);
		ll_error("%s: %s was ended with loadline-notify", state->hooks[i].name, state->hooks[i].hook);
	}
}

/* ---- the socket ---- */

static void accept_peer(struct notify_state *state)
{
	int fd = accept4(state->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	for (int i = FIRST_CONNECTION; fd >= 0 && i < FIRST_CONNECTION + CONNECTIONS; i++) {
		if (state->fds[i].fd < 0) {
			state->fds[i] = (struct pollfd){.fd = fd};
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* Returns whether the connection stays. */
static bool read_event(struct notify_state *state, int fd, struct running_hook *running)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc = ll_message_receive(fd, &message, fds, &count);
	ll_message_close_fds(fds, count);
	if (rc == -EAGAIN)
		return true;
	if (rc || message.header.kind != LL_MESSAGE_EVENT)
		return false;
	start_hook(state, running, &message.event);
	return true;
}

static void read_signals(struct notify_state *state)
{
	struct signalfd_siginfo info;
	while (read(state->fds[SIGNALS].fd, &info, sizeof info) == sizeof info)
		state->is_ending |= info.ssi_signo != SIGCHLD;
	reap_hooks(state);
}

static void serve_ready(struct notify_state *state)
{
	if (state->fds[SIGNALS].revents)
		read_signals(state);
	if (state->fds[LISTENER].revents)
		accept_peer(state);
	for (int i = FIRST_CONNECTION; i < FIRST_CONNECTION + CONNECTIONS; i++) {
		struct running_hook *running = find_free(state);
		struct pollfd *connection = &state->fds[i];
		if (connection->fd < 0 || !connection->revents || !running)
			continue;
		if (read_event(state, connection->fd, running))
			continue;
		close(connection->fd);
		connection->fd = -1;
	}
}

/* ---- the loop ---- */

static int timeout_ms(const struct notify_state *state, uint64_t now_ns)
{
	uint64_t until_ns = UINT64_MAX;
	for (int i = 0; i < LL_NOTIFY_AT_A_TIME; i++) {
		const struct running_hook *running = &state->hooks[i];
		if (running->pid && !running->is_late && running->until_ns < until_ns)
			until_ns = running->until_ns;
	}
	return until_ns == UINT64_MAX ? -1 : until_ns > now_ns ? (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1 : 0;
}

/* With the end of a connection poll() returns also if nothing is asked for: while no event can be taken, connections
 * are left out. */
static int wait_for_something(struct notify_state *state)
{
	struct pollfd watched[FIRST_CONNECTION + CONNECTIONS];
	bool is_full = !find_free(state);
	for (int i = 0; i < FIRST_CONNECTION + CONNECTIONS; i++) {
		bool is_left_out = is_full && i >= FIRST_CONNECTION;
		watched[i] = (struct pollfd){.fd = is_left_out ? -1 : state->fds[i].fd, .events = POLLIN};
	}
	int rc = poll(watched, FIRST_CONNECTION + CONNECTIONS, timeout_ms(state, ll_now_ns()));
	for (int i = 0; i < FIRST_CONNECTION + CONNECTIONS; i++)
		state->fds[i].revents = rc > 0 ? watched[i].revents : 0;
	return rc < 0 && errno != EINTR ? -errno : 0;
}

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int ll_notify_serve(const struct ll_notify_settings *settings, int listen_fd)
{
	struct notify_state state = {.settings = settings};
	int rc = 0;
	for (int i = 0; i < FIRST_CONNECTION + CONNECTIONS; i++)
		state.fds[i].fd = -1;
	state.fds[LISTENER].fd = listen_fd;
	state.fds[SIGNALS].fd = open_signals();
	if (state.fds[SIGNALS].fd < 0)
		return -errno;
	while (!rc && !state.is_ending) {
		rc = wait_for_something(&state);
		serve_ready(&state);
		end_late(&state, ll_now_ns());
	}
	end_all(&state);
	return rc;
}
