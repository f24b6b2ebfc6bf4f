#include "mps/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "mps/child.h"
#include "mps/exchange.h"
#include "mps/limits.h"
#include "mps/process.h"
#include "mps/search.h"
#include "mps/variables.h"

enum { POLL_MS = 10, QUOTE = 160, CARDS_MAX = 64, FOUND_MAX = 64, UNDO_S = 5 };

/* -1: there is no such file. */
static pid_t read_pid_file(const struct ll_mps_place *place)
{
	char path[LL_MPS_PATH_SIZE + 40];
	char text[32];
	snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", place->pipe);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	long pid = strtol(text, NULL, 10);
	return pid > 0 ? (pid_t)pid : 0;
}

static bool is_daemon(pid_t pid)
{
	char name[64];
	ll_mps_process_name(pid, name, sizeof name);
	return strcmp(name, "nvidia-cuda-mps-control") == 0;
}

bool ll_mps_daemon_has_pipe(const struct ll_mps_place *place)
{
	char control[LL_MPS_PATH_SIZE + 40];
	snprintf(control, sizeof control, "%s/control", place->pipe);
	return access(control, F_OK) == 0 || errno != ENOENT;
}

/* Drivers before 515 write no such file; going through /proc takes milliseconds, so not without a sign of a daemon. */
static pid_t search_pid(const struct ll_mps_place *place)
{
	struct ll_mps_found found[FOUND_MAX];
	if (!ll_mps_daemon_has_pipe(place))
		return 0;
	size_t count = ll_mps_search(found, FOUND_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!found[i].is_server && strcmp(found[i].pipe, place->pipe) == 0)
			return found[i].pid;
	}
	return 0;
}

int ll_mps_daemon_find(const struct ll_mps_place *place, struct ll_mps_daemon *ret_daemon, struct ll_err *err)
{
	struct ll_mps_daemon daemon = {.pid = read_pid_file(place)};
	if (daemon.pid < 0)
		daemon.pid = search_pid(place);
	else if (!is_daemon(daemon.pid))
		daemon.pid = 0;
	daemon.start_ticks = ll_mps_process_start(daemon.pid);
	if (!daemon.start_ticks)
		return ll_err_set(err, -ESRCH, "no MPS daemon at %s", place->pipe);
	daemon.owner = ll_mps_process_user(daemon.pid);
	*ret_daemon = daemon;
	return 0;
}

int ll_mps_daemon_answers(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err why = {0};
	int rc = ll_mps_ask(place, deadline_ns, &answer, &why, "get_server_list");
	/* Where there is no pipe to answer through, a short time says nothing about a daemon. */
	if (rc == -ETIMEDOUT && !ll_mps_daemon_has_pipe(place))
		rc = ll_err_set(&why, -ECONNREFUSED, "no MPS daemon at %s", place->pipe);
	if (rc && err)
		*err = why;
	return rc;
}

/* The program goes to the background by itself; what it prints before is why it does not. */
static int launch(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t deadline_ns,
		  struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf visible = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf output = LL_STRBUF_INIT;
	const char *words[] = {place->program, "-d", NULL};
	struct ll_mps_variables variables;
	int status = 0;
	for (size_t i = 0; i < start->count; i++)
		ll_strbuf_addf(&visible, "%s%s", i ? "," : "", start->uuids[i]);
	int rc = ll_mps_variables_make(place, start->count ? visible.buf : NULL, &variables, err);
	if (rc)
		return rc;
	struct ll_mps_child child = {.words = words,
				     .environment = (const char *const *)variables.list,
				     .deadline_ns = deadline_ns,
				     .leaves_daemon = true};
	rc = ll_mps_child_run(&child, &output, &status, err);
	ll_mps_variables_fini(&variables);
	if (rc)
		return rc;
	if (status)
		return ll_err_set(err, -EIO, "MPS: the daemon does not start (exit status %d): %.*s", status,
				  (int)(strcspn(output.buf, "\n") < QUOTE ? strcspn(output.buf, "\n") : QUOTE),
				  output.buf);
	return 0;
}

/* Until it answers. One that has ended meanwhile has said why in its log. */
static int await_answer(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_daemon *ret_daemon,
			struct ll_err *err)
{
	bool was_there = false;
	for (;;) {
		struct ll_err why = {0};
		bool is_there = ll_mps_daemon_find(place, ret_daemon, NULL) == 0;
		int rc = is_there ? ll_mps_daemon_answers(place, deadline_ns, &why) : -ECONNREFUSED;
		if (!rc)
			return 0;
		bool is_over = ll_now_ns() >= deadline_ns;
		if (rc != -ECONNREFUSED) {
			if (err)
				*err = why;
			return rc;
		}
		if (was_there && !is_there) {
			ll_err_set(err, -EIO, "MPS: the daemon has ended again");
			return ll_err_hint(err, "%s/control.log says why", place->log);
		}
		if (is_over) {
			ll_err_set(err, -ETIMEDOUT, "MPS: the daemon does not answer in time");
			return ll_err_hint(err, "%s/control.log may say why", place->log);
		}
		was_there |= is_there;
		ll_sleep_until_ns(ll_now_ns() + POLL_MS * LL_NS_PER_MS);
	}
}

/* What it answers is not written down: that a server is there counts. A fresh daemon has no other. */
static int start_server(const struct ll_mps_place *place, uid_t user, uint64_t deadline_ns, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "start_server -uid %lu", (unsigned long)user);
	while (!rc) {
		rc = ll_mps_ask(place, deadline_ns, &list, err, "get_server_list");
		if (!rc && list.length)
			return 0;
		ll_sleep_until_ns(ll_now_ns() + POLL_MS * LL_NS_PER_MS);
	}
	if (rc == -ETIMEDOUT)
		ll_err_set(err, rc, "MPS: no server for user %lu in time: '%.60s'", (unsigned long)user, answer.buf);
	return rc;
}

static int set_up(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t deadline_ns,
		  struct ll_mps_daemon *daemon, bool *was_refused, struct ll_err *err)
{
	size_t cards[CARDS_MAX];
	struct ll_mps_limits limits = {.compute_percent = start->compute_percent,
				       .memory_bytes = start->memory_bytes,
				       .cards = cards,
				       .card_count = start->count < CARDS_MAX ? start->count : CARDS_MAX};
	for (size_t i = 0; i < limits.card_count; i++)
		cards[i] = i;
	int rc = launch(place, start, deadline_ns, err);
	*was_refused = rc == -EIO;
	if (!rc)
		rc = await_answer(place, deadline_ns, daemon, err);
	if (!rc)
		rc = ll_mps_limits_set(place, deadline_ns, &limits, NULL, err);
	if (!rc && start->has_user)
		rc = start_server(place, start->user, deadline_ns, err);
	return rc;
}

int ll_mps_daemon_start(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t within_ns,
			struct ll_mps_daemon *ret_daemon, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + within_ns;
	struct ll_mps_daemon daemon = {0};
	int rc = ll_mps_place_need_program(place, err);
	if (!rc)
		rc = ll_mps_place_make(place, err);
	if (rc)
		return rc;
	if (start->memory_bytes && !start->count)
		return ll_err_set(err, -EINVAL, "MPS: a limit of device memory needs the cards named");
	if (ll_mps_daemon_find(place, &daemon, NULL) == 0 || ll_mps_daemon_answers(place, deadline_ns, NULL) == 0) {
		ll_err_set(err, -EALREADY, "an MPS daemon runs at %s already", place->pipe);
		return ll_err_hint(err, "`loadline mps status` shows it, `loadline mps stop` ends it");
	}
	bool was_refused;
	rc = set_up(place, start, deadline_ns, &daemon, &was_refused, err);
	/* Where the program would not start a daemon, another caller's may be there by now. */
	if (rc && !was_refused)
		ll_mps_daemon_stop(place, true, UNDO_S * LL_NS_PER_S, NULL, NULL);
	if (!rc && ret_daemon)
		*ret_daemon = daemon;
	return rc;
}
