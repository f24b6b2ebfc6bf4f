#include "mps/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"

/* ---- start ---- */

enum { POLL_MS = 10, QUOTE = 160, CARDS_MAX = 64, FOUND_MAX = 64, UNDO_S = 5 };

/* Returns the process id in the file; -1: there is no such file. */
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

/* Whether the control pipe exists. A dead daemon may have left it; without it no daemon runs here. */
static bool has_pipe(const struct ll_mps_place *place)
{
	char control[LL_MPS_PATH_SIZE + 40];
	snprintf(control, sizeof control, "%s/control", place->pipe);
	return access(control, F_OK) == 0 || errno != ENOENT;
}

/* Drivers before 515 write no file with the process id. A search in /proc takes milliseconds, so it is made only if
 * there is some other sign of a daemon. */
static pid_t search_pid(const struct ll_mps_place *place)
{
	struct ll_mps_found found[FOUND_MAX];
	if (!has_pipe(place))
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

bool ll_mps_daemon_is_met(void)
{
	const char *pipe = getenv(LL_MPS_PIPE_VARIABLE);
	struct ll_mps_place place = {.is_named = pipe && *pipe};
	struct ll_mps_daemon daemon;
	snprintf(place.pipe, sizeof place.pipe, "%s", place.is_named ? pipe : LL_MPS_NVIDIA_PIPE);
	return ll_mps_daemon_find(&place, &daemon, NULL) == 0;
}

int ll_mps_daemon_answers(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err why = {0};
	int rc = ll_mps_ask(place, deadline_ns, &answer, &why, "get_server_list");
	/* Without a pipe a daemon cannot answer, so a short wait tells nothing. */
	if (rc == -ETIMEDOUT && !has_pipe(place))
		rc = ll_err_set(&why, -ECONNREFUSED, "no MPS daemon at %s", place->pipe);
	if (rc && err)
		*err = why;
	return rc;
}

/* Starts the control program, which goes to the background by itself. What it prints before that is the reason why it
 * failed. */
static int launch_daemon(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t deadline_ns,
			 struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf visible = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf output = LL_STRBUF_INIT;
	int status = 0;
	for (size_t i = 0; i < start->count; i++)
		ll_strbuf_addf(&visible, "%s%s", i ? "," : "", start->uuids[i]);
	int rc = ll_mps_program_run(place, NULL, start->count ? visible.buf : NULL, deadline_ns, &output, &status, err);
	if (rc)
		return rc;
	if (status)
		return ll_err_set(err, -EIO, "MPS: the daemon does not start (exit status %d): %.*s", status,
				  (int)(strcspn(output.buf, "\n") < QUOTE ? strcspn(output.buf, "\n") : QUOTE),
				  output.buf);
	return 0;
}

/* Waits until the daemon answers. If it has ended meanwhile, its log has the reason. */
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

/* Waits until the server is there. The answer's text is not documented, so only the list of servers counts. A new
 * daemon has no other server. */
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
	int rc = launch_daemon(place, start, deadline_ns, err);
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
	/* If the program refused to start a daemon, another caller may have started one. */
	if (rc && !was_refused)
		ll_mps_daemon_stop(place, true, UNDO_S * LL_NS_PER_S, NULL, NULL);
	if (!rc && ret_daemon)
		*ret_daemon = daemon;
	return rc;
}

/* ---- stop ---- */

/* A question may be lost where the daemon is busy with others'. */
#define ASK_AGAIN_NS (2 * LL_NS_PER_S)
enum { STOP_POLL_MS = 5, AGAIN_MS = 3, MEMBERS_MAX = 80, NAMED = 8 };

/* The daemon and its servers, identified by process id and start time. */
struct members {
	struct ll_mps_found items[MEMBERS_MAX];
	size_t count;
};

static void add_member(struct members *members, pid_t pid, uint64_t start_ticks, bool is_server)
{
	for (size_t i = 0; i < members->count; i++) {
		if (members->items[i].pid == pid && members->items[i].start_ticks == start_ticks)
			return;
	}
	if (start_ticks && members->count < MEMBERS_MAX)
		members->items[members->count++] =
		    (struct ll_mps_found){.pid = pid, .start_ticks = start_ticks, .is_server = is_server};
}

/* Adds a server if it is one. A process id of another PID namespace may belong to any process here. */
static void join_server(struct members *members, pid_t pid)
{
	char name[64];
	ll_mps_process_name(pid, name, sizeof name);
	if (strcmp(name, "nvidia-cuda-mps-server") == 0)
		add_member(members, pid, ll_mps_process_start(pid), true);
}

static void search_once(struct members *members, const struct ll_mps_place *place)
{
	struct ll_mps_found found[MEMBERS_MAX];
	size_t count = ll_mps_search(found, MEMBERS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(found[i].pipe, place->pipe) == 0)
			add_member(members, found[i].pid, found[i].start_ticks, found[i].is_server);
	}
}

/*
 * Adds servers that the daemon does not report, because it hangs or is dead. Adds also a daemon whose starter was
 * killed, so that nothing else knows of it. It forks several times while it starts, and a single look may miss it.
 */
static void join_found(struct members *members, const struct ll_mps_place *place)
{
	size_t before;
	search_once(members, place);
	do {
		before = members->count;
		ll_sleep_until_ns(ll_now_ns() + AGAIN_MS * LL_NS_PER_MS);
		search_once(members, place);
	} while (members->count > before);
}

static const struct ll_mps_found *first_alive(const struct members *members)
{
	for (size_t i = 0; i < members->count; i++) {
		if (ll_mps_process_is(members->items[i].pid, members->items[i].start_ticks))
			return &members->items[i];
	}
	return NULL;
}

static bool await_end(const struct members *members, uint64_t deadline_ns)
{
	while (first_alive(members)) {
		if (ll_now_ns() >= deadline_ns)
			return false;
		ll_sleep_until_ns(ll_now_ns() + STOP_POLL_MS * LL_NS_PER_MS);
	}
	return true;
}

static void signal_all(const struct members *members, int number)
{
	for (size_t i = 0; i < members->count; i++)
		ll_mps_process_signal(members->items[i].pid, members->items[i].start_ticks, number);
}

static int refuse_clients(const struct ll_mps_list *list, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	size_t count = ll_mps_list_add_clients(list, NAMED, &names);
	ll_err_set(err, -EBUSY, "MPS has clients: %s%s", names.buf, count > NAMED ? ", ..." : "");
	return ll_err_hint(err, "end them first, or use --force, which makes their next CUDA call fail");
}

/* What a daemon that has ended left. */
static void remove_files(const struct ll_mps_place *place)
{
	static const char *const names[] = {"nvidia-cuda-mps-control.pid", "control", "control_privileged",
					    "control_lock", "log"};
	char path[LL_MPS_PATH_SIZE + 40];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", place->pipe, names[i]);
		unlink(path);
	}
}

static void ask_to_end(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_list *list)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	for (size_t i = 0; i < list->server_count && list->client_count; i++)
		ll_mps_ask(place, deadline_ns, &answer, NULL, "shutdown_server %d -f", (int)list->servers[i].pid);
	ll_mps_ask(place, deadline_ns, &answer, NULL, "quit");
}

static uint64_t sooner_of(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

static int say_left(const struct members *members, bool force, struct ll_err *err)
{
	const struct ll_mps_found *left = first_alive(members);
	if (!left)
		return 0;
	ll_err_set(err, -ETIMEDOUT, "MPS: the %s (process %d) still runs", left->is_server ? _("server") : _("daemon"),
		   (int)left->pid);
	return ll_err_hint(err, force ? N_("it may be stuck in the driver: look at the kernel's log")
				      : N_("a longer --timeout may help; --force ends it by a signal"));
}

/* The daemon is in another PID namespace. It cannot be signalled, and its end shows only in that nobody answers any
 * more. */
static int stop_unseen(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	ll_mps_ask(place, deadline_ns, &answer, NULL, "quit");
	while (ll_mps_daemon_answers(place, deadline_ns, NULL) != -ECONNREFUSED) {
		if (ll_now_ns() >= deadline_ns)
			return ll_err_set(err, -ETIMEDOUT, "MPS: the daemon at %s still runs", place->pipe);
		ll_sleep_until_ns(ll_now_ns() + STOP_POLL_MS * LL_NS_PER_MS);
	}
	return 0;
}

static int end_members(const struct ll_mps_place *place, const struct members *members, const struct ll_mps_list *list,
		       bool force, uint64_t from_ns, uint64_t deadline_ns, bool *was_signalled, struct ll_err *err)
{
	uint64_t half_ns = force ? from_ns + (deadline_ns - from_ns) / 2 : deadline_ns;
	do { /* one that gets no answer is not waited for until the end: the next one may */
		ask_to_end(place, sooner_of(ll_now_ns() + ASK_AGAIN_NS, half_ns), list);
	} while (!await_end(members, sooner_of(ll_now_ns() + ASK_AGAIN_NS, half_ns)) && ll_now_ns() < half_ns);
	if (!force || !first_alive(members))
		return say_left(members, force, err);
	*was_signalled = true;
	signal_all(members, SIGTERM);
	if (!await_end(members, half_ns + (deadline_ns - half_ns) / 2)) {
		signal_all(members, SIGKILL);
		await_end(members, deadline_ns);
	}
	return say_left(members, force, err);
}

int ll_mps_daemon_stop(const struct ll_mps_place *place, bool force, uint64_t within_ns, bool *ret_was_signalled,
		       struct ll_err *err)
{
	uint64_t from_ns = ll_now_ns();
	uint64_t deadline_ns = from_ns + within_ns;
	struct ll_mps_daemon daemon = {0};
	struct ll_mps_list list = {0};
	struct members members = {.count = 0};
	bool was_signalled = false;
	struct ll_err why = {0};
	int rc = ll_mps_list_read(place, from_ns + within_ns / 4, &list, &why);
	bool is_seen = ll_mps_daemon_find(place, &daemon, NULL) == 0;
	if (rc == -ETIMEDOUT && !has_pipe(place))
		rc = -ECONNREFUSED;
	if (is_seen)
		add_member(&members, daemon.pid, daemon.start_ticks, false);
	for (size_t i = 0; i < list.server_count; i++)
		join_server(&members, list.servers[i].pid);
	join_found(&members, place);
	if (rc == -ECONNREFUSED && !is_seen)
		rc = first_alive(&members) && force ? 0 : -ESRCH;
	else if (rc && force)
		rc = 0; /* force: its answer does not matter */
	if (rc) {
		if (err)
			*err = why;
	} else if (list.client_count && !force)
		rc = refuse_clients(&list, err);
	else if (!is_seen && !first_alive(&members))
		rc = stop_unseen(place, deadline_ns, err);
	else
		rc = end_members(place, &members, &list, force, from_ns, deadline_ns, &was_signalled, err);
	ll_mps_list_fini(&list);
	if (rc == -ESRCH)
		ll_err_set(err, rc, "no MPS daemon at %s", place->pipe);
	if (!rc || rc == -ESRCH)
		remove_files(place);
	if (!rc && ret_was_signalled)
		*ret_was_signalled = was_signalled;
	return rc;
}
