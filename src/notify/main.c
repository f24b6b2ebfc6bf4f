/* loadline-notify: runs the commands that the configuration names for events (`notify`). While AT_A_TIME of them run,
 * nothing is read, and loadlined keeps the events that follow. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/service.h"
#include "notify/hook.h"
#include "protocol/message.h"
#include "protocol/service_socket.h"

static const char help[] =
    "usage: loadline-notify [--from FOLDER]... [--deadline SECONDS] [--client NAME] [--user NAME]\n"
    "       loadline-notify --help | --version\n"
    "\n"
    "Runs the commands that `notify` of the configuration names for events. loadlined, which may start no program,\n"
    "sends the events. A command gets the event as one line of JSON on its standard input. It must lie in FOLDER\n"
    "(default: /etc/loadline; at most 8), and belong to root with all folders above it, and nobody else may write\n"
    "to them. A command that runs longer than SECONDS (default: 30) is ended. At most 4 run at a time.\n"
    "\n"
    "systemd starts it (loadline-notify.socket) as user loadline-notify. Started by root it makes the socket for\n"
    "loadlined, which runs as user NAME of --client (default: loadline), and goes on as user NAME of --user\n"
    "(default: loadline-notify, or that of loadlined if there is none).\n";

/* loadlined has one connection; one that has just ended may be beside it. */
enum { DEADLINE_S = 30, SECONDS_MAX = 3600, AT_A_TIME = 4, CONNECTIONS = 4 };

struct options {
	struct ll_hook_rules rules;
	uint64_t deadline_ns; /* then a command is ended, with all processes of its group */
	int folder_count;
	const char *client, *user;
};

struct running_hook {
	pid_t pid; /* 0: none */
	uint64_t until_ns;
	bool is_late;
	char name[LL_EVENT_NAME_SIZE], hook[LL_EVENT_HOOK_SIZE];
};

struct notify_state {
	const struct options *options;
	struct running_hook hooks[AT_A_TIME];
};

/* ---- commands ---- */

static struct running_hook *find_free(struct notify_state *state)
{
	for (int i = 0; i < AT_A_TIME; i++) {
		if (!state->hooks[i].pid)
			return &state->hooks[i];
	}
	return NULL;
}

static void start_hook(struct notify_state *state, struct running_hook *running, const struct ll_message_event *event)
{
	struct ll_err err = {0};
	char path[PATH_MAX];
	int rc = ll_hook_check(&state->options->rules, event->hook, path, &err);
	if (!rc && (rc = ll_hook_start(event, path, &running->pid)))
		ll_err_set(&err, rc, "%s: %s", event->hook, strerror(-rc));
	if (rc) {
		running->pid = 0;
		ll_error("%s: not told: %s", event->name, err.text);
		return;
	}
	running->until_ns = ll_now_ns() + state->options->deadline_ns;
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
	else if (WEXITSTATUS(status) == LL_HOOK_NO_EXEC)
		ll_error("%s: %s cannot be executed", running->name, running->hook);
	else if (WEXITSTATUS(status))
		ll_error("%s: %s failed with status %d", running->name, running->hook, WEXITSTATUS(status));
	else
		ll_info("%s: %s was told", running->name, running->hook);
}

/* What the command has left in its process group ends with it. The command is reaped after that: then its number is
 * free, and may be that of another group. */
static void reap_hooks(struct ll_service *service, int number)
{
	struct notify_state *state = service->data;
	int status;
	(void)number;
	for (int i = 0; i < AT_A_TIME; i++) {
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

static void end_late(struct ll_service *service)
{
	struct notify_state *state = service->data;
	uint64_t now_ns = ll_now_ns();
	service->tick_ns = UINT64_MAX;
	for (int i = 0; i < AT_A_TIME; i++) {
		struct running_hook *running = &state->hooks[i];
		if (!running->pid || running->is_late)
			continue;
		if (now_ns >= running->until_ns) {
			running->is_late = true;
			kill(-running->pid, SIGKILL);
		} else if (running->until_ns < service->tick_ns) {
			service->tick_ns = running->until_ns;
		}
	}
}

static void end_all(struct notify_state *state)
{
	for (int i = 0; i < AT_A_TIME; i++) {
		if (!state->hooks[i].pid)
			continue;
		kill(-state->hooks[i].pid, SIGKILL);
		waitpid(state->hooks[i].pid, NULL, 0);
		ll_error("%s: %s was ended with loadline-notify", state->hooks[i].name, state->hooks[i].hook);
	}
}

/* ---- the socket ---- */

static bool has_room(struct ll_service *service)
{
	return find_free(service->data);
}

static bool read_event(struct ll_service *service, int fd)
{
	struct running_hook *running = find_free(service->data);
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc = ll_message_receive(fd, &message, fds, &count);
	ll_message_close_fds(fds, count);
	if (rc == -EAGAIN)
		return true;
	if (rc || message.header.kind != LL_MESSAGE_EVENT)
		return false;
	start_hook(service->data, running, &message.event);
	if (running->pid && running->until_ns < service->tick_ns)
		service->tick_ns = running->until_ns;
	return true;
}

static int serve_events(const struct options *options, int listen_fd)
{
	struct notify_state state = {.options = options};
	struct ll_service service = {.data = &state,
				     .signals = {SIGCHLD, SIGTERM, SIGINT},
				     .on_signal = reap_hooks,
				     .listen_fd = listen_fd,
				     .connections = CONNECTIONS,
				     .has_room = has_room,
				     .on_packet = read_event,
				     .watched_fd = -1,
				     .tick_ns = UINT64_MAX,
				     .on_tick = end_late};
	int rc = ll_service_init(&service);
	if (!rc)
		rc = ll_service_run(&service);
	end_all(&state);
	return rc;
}

/* ---- the user ---- */

static int become_user(const char *name, uid_t client, struct ll_err *err)
{
	if (geteuid() != 0)
		return 0;
	const struct passwd *entry = getpwnam(name ? name : "loadline-notify");
	if (!entry && !name)
		entry = getpwuid(client);
	if (!entry)
		return ll_err_set(err, -ENOENT, "there is no user %.60s", name ? name : "loadline-notify");
	uid_t uid = entry->pw_uid;
	gid_t gid = entry->pw_gid;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return ll_err_set(err, -errno, "become uid %u: %s", (unsigned)uid, strerror(errno));
	return 0;
}

/* ---- start ---- */

static int run_notify(void *data, struct ll_err *err)
{
	struct options *options = data;
	const char *sim_folder = getenv("LOADLINE_SIM_DIR");
	uid_t client = 0;
	int fd = ll_service_socket_passed(), rc = 0;
	options->rules.owner = sim_folder ? geteuid() : 0;
	if (fd < 0)
		rc = ll_service_client_find(options->client, &client, err);
	if (!rc && fd < 0) {
		rc = ll_service_socket_bind("notify", sim_folder, client, &fd, err);
		if (!rc)
			rc = become_user(options->user, client, err);
	}
	if (rc)
		return rc;
	rc = serve_events(options, fd);
	return rc ? ll_err_set(err, rc, "the socket: %s", strerror(-rc)) : 0;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
	if (strcmp(name, "--from") == 0) {
		if (value[0] != '/' || options->folder_count == LL_HOOK_FOLDERS)
			return false;
		options->rules.folders[options->folder_count++] = value;
	} else if (strcmp(name, "--deadline") == 0) {
		options->deadline_ns = ll_program_seconds(value, SECONDS_MAX);
		return options->deadline_ns;
	} else if (strcmp(name, "--client") == 0) {
		options->client = value;
	} else if (strcmp(name, "--user") == 0) {
		options->user = value;
	} else {
		return false;
	}
	return true;
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	struct options *options = ret_options;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !read_option(options, argv[i], argv[i + 1]))
			return false;
	}
	if (!options->folder_count)
		options->rules.folders[0] = "/etc/loadline";
	return true;
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-notify", LOADLINE_VERSION, help, read_options, run_notify};
	struct options options = {.deadline_ns = DEADLINE_S * LL_NS_PER_S};
	return ll_program_main(&program, argc, argv, &options);
}
