#include "cli/common/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/common/beside.h"

#define ANSWER_NS LL_NS_PER_S

static const char *const daemon_places[] = {"src/daemon", "../lib/loadline", NULL};
static const char *const monitor_places[] = {"src/monitor", "../lib/loadline", NULL};

int ll_daemon_paths_find(struct ll_daemon_paths *ret_paths, struct ll_err *err)
{
	ret_paths->programs = (struct ll_programs){ret_paths->daemon, ret_paths->monitor};
	if (ll_beside_find(daemon_places, "loadlined", ret_paths->daemon) == 0 &&
	    ll_beside_find(monitor_places, "loadline-job", ret_paths->monitor) == 0)
		return 0;
	ll_err_set(err, -ENOENT, "loadlined and loadline-job are not beside this program, nor in %s", daemon_places[1]);
	return ll_err_hint(err, "install all of loadline");
}

/* ---- asking ---- */

static int wait_for_answer(int fd, uint64_t deadline_ns)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	int rc =
	    poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)((deadline_ns - now_ns) / LL_NS_PER_MS) + 1);
	return rc == 0 ? -ETIMEDOUT : 0;
}

static int add_job(struct ll_daemon_view *view, const struct ll_message_job_row *row)
{
	struct ll_message_job_row *jobs = reallocarray(view->jobs, view->job_count + 1, sizeof *jobs);
	if (!jobs)
		return -ENOMEM;
	view->jobs = jobs;
	view->jobs[view->job_count++] = *row;
	return 0;
}

/* Returns 0 until the last message, which is 1. */
static int take(struct ll_daemon_view *view, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_WELCOME:
		view->welcome = message->welcome;
		return 0;
	case LL_MESSAGE_JOB_ROW:
		return add_job(view, &message->job_row);
	case LL_MESSAGE_LIST_END:
		view->end = message->list_end;
		return 1;
	case LL_MESSAGE_REFUSED:
		return message->refused.code;
	default:
		return 0;
	}
}

static int read_answers(struct ll_daemon_view *view, int fd)
{
	uint64_t deadline_ns = ll_now_ns() + ANSWER_NS;
	int rc = 0;
	while (!rc) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		rc = ll_message_receive(fd, &message, fds, &count);
		if (!rc)
			rc = take(view, &message);
		else if (rc == -EAGAIN)
			rc = wait_for_answer(fd, deadline_ns);
		else if (rc == -ENOTSUP) /* of a newer version: it is for whoever knows it */
			rc = 0;
		ll_message_close_fds(fds, count);
	}
	return rc == 1 ? 0 : rc;
}

static int ask(struct ll_daemon_view *view, int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_COMMAND;
	message.hello.version = ll_version_number(LOADLINE_VERSION);
	ll_message_text_set(message.hello.version_text, sizeof message.hello.version_text, LOADLINE_VERSION);
	int rc = ll_message_send(fd, &message, NULL, 0);
	if (rc)
		return rc;
	ll_message_init(&message, LL_MESSAGE_LIST);
	rc = ll_message_send(fd, &message, NULL, 0);
	return rc ? rc : read_answers(view, fd);
}

static void read_pid(struct ll_daemon_view *view, int fd)
{
	struct ucred peer = {0};
	socklen_t length = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
		view->pid = peer.pid;
}

static bool is_worth_another_try(int rc)
{
	return rc == -EPIPE || rc == -ECONNRESET;
}

/* A daemon may end, or be ended, between two messages; the next one is there within some ms. */
static int connect_and_ask(struct ll_daemon_view *view)
{
	int rc = -EPIPE;
	for (int i = 0; i < 3 && is_worth_another_try(rc); i++) {
		LL_SCOPE_CLOSE int fd = -1;
		view->job_count = 0;
		rc = ll_place_connect(&view->place, &fd, &view->foreign_uid);
		if (rc == -EPERM)
			view->answer = LL_DAEMON_FOREIGN;
		if (rc)
			return rc == -EAGAIN ? -ETIMEDOUT : rc;
		read_pid(view, fd);
		rc = ask(view, fd);
	}
	return rc;
}

static void note(struct ll_daemon_view *view, int rc)
{
	view->code = rc;
	if (rc == 0)
		view->answer = LL_DAEMON_SERVES;
	else if (rc == -ECONNREFUSED)
		view->answer = LL_DAEMON_NONE;
	else if (rc == -ETIMEDOUT)
		view->answer = LL_DAEMON_SILENT;
}

void ll_daemon_view_init_at(struct ll_daemon_view *view, const struct ll_place *place)
{
	*view = (struct ll_daemon_view){.answer = LL_DAEMON_BROKEN, .place = *place};
	note(view, connect_and_ask(view));
}

void ll_daemon_view_init(struct ll_daemon_view *view, const char *sim_folder)
{
	struct ll_place place;
	int rc = ll_place_find(sim_folder, &place, NULL);
	if (rc)
		*view = (struct ll_daemon_view){.answer = LL_DAEMON_BROKEN, .code = rc};
	else
		ll_daemon_view_init_at(view, &place);
}

void ll_daemon_view_fini(struct ll_daemon_view *view)
{
	free(view->jobs);
	view->jobs = NULL;
	view->job_count = 0;
}
