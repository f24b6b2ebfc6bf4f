#include "mps/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/fault.h"
#include "card/mps.h"
#include "card/mps_pipe.h"
#include "card/process.h"
#include "card/visible.h"
#include "mps/answer.h"

/* The interval of checks while something waits for an event without a message, such as a killed client or a server's
 * recovery. */
enum { LOOK_AGAIN_MS = 5 };

static int path_in_folder(char *path, size_t size, const char *name, struct ll_err *err)
{
	int n = snprintf(path, size, "%s/%s", sim_mps_pipe_folder(), name);
	if (n < 0 || (size_t)n >= size)
		return ll_err_set(err, -ENAMETOOLONG, "%s: too long a name", sim_mps_pipe_folder());
	return 0;
}

/* Locks the folder for the life of the process. Files of a dead daemon are ignored. */
static int take_folder(struct ll_err *err)
{
	char path[PATH_MAX];
	if (mkdir(sim_mps_pipe_folder(), 0755) < 0 && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", sim_mps_pipe_folder(), strerror(errno));
	int rc = path_in_folder(path, sizeof path, "control_lock", err);
	int fd = rc < 0 ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return rc < 0 ? rc : ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	close(fd);
	return ll_err_set(err, -EBUSY, "An instance of this daemon is already running");
}

static int open_pipe(const char *name, mode_t mode, int *ret_fd, struct ll_err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int rc = path_in_folder(address.sun_path, sizeof address.sun_path, name, err);
	if (rc < 0)
		return rc;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unlink(address.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(address.sun_path, mode) < 0 ||
	    listen(fd, 128) < 0)
		rc = ll_err_set(err, -errno, "%s: %s", address.sun_path, strerror(errno));
	*ret_fd = fd;
	return rc;
}

static int write_pid(struct ll_err *err)
{
	char path[PATH_MAX];
	int rc = path_in_folder(path, sizeof path, "nvidia-cuda-mps-control.pid", err);
	FILE *file = rc < 0 ? NULL : fopen(path, "we");
	if (!file)
		return rc < 0 ? rc : ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	if (path_in_folder(path, sizeof path, "log", err) == 0 && mkfifo(path, 0666) < 0 && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

/* The servers' program is in the same folder as this one. */
static char *find_server(void)
{
	char own[PATH_MAX], *path = NULL;
	ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
	if (n <= 0)
		return NULL;
	own[n] = '\0';
	char *slash = strrchr(own, '/');
	return asprintf(&path, "%.*s/nvidia-cuda-mps-server", (int)(slash - own), own) < 0 ? NULL : path;
}

static void read_defaults(struct sim_mps_daemon *daemon, bool is_partitioned)
{
	struct sim_mps_server *defaults = &daemon->defaults;
	const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	const char *limits = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	const char *priority = getenv("CUDA_MPS_CLIENT_PRIORITY");
	int count = sim_visible_cards(daemon->w, getenv("CUDA_VISIBLE_DEVICES"), defaults->cards);
	defaults->card_count = (uint32_t)count;
	defaults->permille = 1000;
	defaults->is_partitioned = is_partitioned;
	defaults->priority = priority && strcmp(priority, "1") == 0;
	if (percent)
		sim_mps_parse_percent(percent, &defaults->permille);
	sim_mps_parse_limits(daemon->w, limits, defaults->cards, defaults->card_count, defaults->limit_bytes);
}

int sim_mps_daemon_init(struct sim_mps_daemon *daemon, bool is_partitioned, struct ll_err *err)
{
	*daemon = (struct sim_mps_daemon){.force_ns = SIM_NEVER, .server_path = find_server()};
	int rc = sim_world_attach(&daemon->w, err);
	if (rc == 0 && is_partitioned && daemon->w->cuda_version < SIM_MPS_PARTITIONS_SINCE)
		rc = ll_err_set(err, -EINVAL, "nvidia-cuda-mps-control: invalid option -- 'S'");
	if (rc == 0)
		rc = take_folder(err);
	if (rc < 0)
		return rc;
	sim_lock(daemon->w);
	sim_advance_to_now(daemon->w);
	daemon->proc = sim_proc_join(daemon->w);
	if (daemon->proc != SIM_NONE)
		SIM_EDIT(daemon->w, &daemon->w->procs[daemon->proc])->role = SIM_ROLE_MPS_CONTROL;
	read_defaults(daemon, is_partitioned);
	sim_unlock(daemon->w);
	if (daemon->proc == SIM_NONE)
		return ll_err_set(err, -ENOSPC, "too many processes in the simulated world");
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	daemon->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = open_pipe("control", 0666, &daemon->listeners[0], err);
	if (rc == 0)
		rc = open_pipe("control_privileged", 0600, &daemon->listeners[1], err);
	if (rc == 0)
		rc = write_pid(err);
	if (rc < 0)
		return rc;
	sim_mps_log("Control", "Starting control daemon using socket %s/control", sim_mps_pipe_folder());
	sim_mps_log("Control", "To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
		    sim_mps_pipe_folder());
	sim_mps_log("Control", "CUDA MPS Control binary version: %u", daemon->w->cuda_version);
	return 0;
}

static void refuse_client(struct sim_mps_peer *peer, uint32_t status)
{
	char text[32];
	snprintf(text, sizeof text, "refused %u", status);
	sim_mps_send(peer->fd, text);
	sim_mps_peer_drop(peer);
}

static void accept_client(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, uint32_t slot)
{
	char text[64];
	const struct sim_mps_server *server = &daemon->w->mps_servers[slot];
	snprintf(text, sizeof text, "server %u %u", slot, server->generation);
	peer->kind = SIM_MPS_PEER_CLIENT;
	peer->server = slot;
	peer->generation = server->generation;
	sim_mps_send(peer->fd, text);
	const struct sim_mps_peer *own = sim_mps_server_peer(daemon, slot);
	snprintf(text, sizeof text, "client %d", (int)peer->pid);
	if (own)
		sim_mps_send(own->fd, text);
}

/* A daemon has one server at a time, for one user. Clients of another user wait until it is idle and has ended. */
static void settle_client(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer)
{
	struct sim_world *w = daemon->w;
	if (daemon->is_quitting) {
		refuse_client(peer, LL_CUDA_ERROR_MPS_SERVER_NOT_READY);
		return;
	}
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		const struct sim_mps_server *server = &w->mps_servers[i];
		if (!server->is_used || server->control != daemon->proc)
			continue;
		sim_mps_recover(w, i);
		if (server->uid != peer->uid && !server->is_closing && server->state != SIM_MPS_INITIALIZING)
			SIM_EDIT(w, &w->mps_servers[i])->is_closing = 1;
		if (server->uid != peer->uid || server->is_closing || server->state == SIM_MPS_INITIALIZING)
			continue;
		if (server->state == SIM_MPS_FAULT)
			refuse_client(peer, LL_CUDA_ERROR_MPS_SERVER_NOT_READY);
		else
			accept_client(daemon, peer, i);
		return;
	}
	if (!sim_mps_daemon_has_servers(daemon) && sim_mps_daemon_start_server(daemon, peer->uid) == SIM_NONE)
		refuse_client(peer, LL_CUDA_ERROR_MPS_CONNECTION_FAILED);
}

/* Serves clients that wait for a server, and ends servers that wait for their last client. Returns whether some still
 * wait. */
static bool settle_waiting(struct sim_mps_daemon *daemon)
{
	struct sim_world *w = daemon->w;
	bool waits = false;
	for (int i = 0; i < daemon->peer_count; i++) {
		if (daemon->peers[i].fd >= 0 && daemon->peers[i].kind == SIM_MPS_PEER_WAITING)
			settle_client(daemon, &daemon->peers[i]);
		waits |= daemon->peers[i].fd >= 0 && daemon->peers[i].kind == SIM_MPS_PEER_WAITING;
	}
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		const struct sim_mps_server *server = &w->mps_servers[i];
		if (!server->is_used || server->control != daemon->proc || !(server->is_closing || daemon->is_quitting))
			continue;
		waits = true;
		bool is_forced = ll_now_ns() >= daemon->force_ns;
		if (server->state != SIM_MPS_INITIALIZING && (is_forced || sim_mps_client_count(w, i) == 0))
			sim_mps_daemon_end_server(daemon, i);
	}
	return waits;
}

/* A server whose socket is closed has ended or is about to. */
static void bury_server(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer)
{
	int status = 0;
	while (waitpid(peer->pid, &status, 0) < 0 && errno == EINTR)
		;
	sim_mps_log("Control", "Server %d exited with status %d", (int)peer->pid,
		    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	struct sim_world *w = daemon->w;
	sim_lock(w);
	sim_advance_to_now(w);
	struct sim_mps_server *server = &w->mps_servers[peer->server];
	bool was_starting = false;
	if (server->is_used && server->generation == peer->generation) {
		was_starting = server->proc == SIM_NONE;
		if (was_starting)
			sim_mps_server_free(w, peer->server);
		else
			sim_proc_leave(w, server->proc);
	}
	bool has_failed = was_starting || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
	for (int i = 0; has_failed && i < daemon->peer_count; i++) {
		if (daemon->peers[i].fd >= 0 && daemon->peers[i].kind == SIM_MPS_PEER_WAITING)
			refuse_client(&daemon->peers[i], LL_CUDA_ERROR_MPS_CONNECTION_FAILED);
	}
	sim_unlock(w);
}

static void log_answer(const char *text)
{
	while (*text) {
		int length = (int)strcspn(text, "\n");
		sim_mps_log("Control", "%.*s", length, text);
		text += length + (text[length] == '\n');
	}
}

static void run_command(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	peer->due_ns = 0;
	sim_lock(daemon->w);
	sim_advance_to_now(daemon->w);
	sim_mps_answer(daemon, peer, &answer);
	sim_unlock(daemon->w);
	log_answer(answer.buf);
	if (!peer->waits_for_quit)
		sim_mps_send(peer->fd, answer.buf);
}

/* If the scenario makes the command hang, it runs when that time is over. Other peers are served meanwhile. */
static void take_command(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, const char *text)
{
	char function[80] = "mps/";
	snprintf(peer->command, sizeof peer->command, "%.*s", (int)sizeof peer->command - 1, text);
	size_t length = strcspn(text, " \t");
	snprintf(function + 4, sizeof function - 4, "%.*s", (int)(length < 70 ? length : 70), text);
	sim_mps_log("Control", "Cmd:%s", text);
	sim_lock(daemon->w);
	sim_advance_to_now(daemon->w);
	sim_fault_find(daemon->w, function, &peer->due_ns);
	sim_unlock(daemon->w);
	if (peer->due_ns <= ll_now_ns())
		run_command(daemon, peer);
}

static void take_message(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, const char *text)
{
	if (peer->kind == SIM_MPS_PEER_SERVER) {
		sim_mps_log("Control", "NEW SERVER %d: Ready", (int)peer->pid);
		return;
	}
	if (peer->kind == SIM_MPS_PEER_NEW && sscanf(text, "client %u", &peer->uid) == 1) {
		peer->kind = SIM_MPS_PEER_WAITING;
		sim_mps_log("Control", "NEW CLIENT %d from user %u: %s", (int)peer->pid, peer->uid,
			    sim_mps_daemon_has_servers(daemon) ? "Server already exists"
							       : "Server is not ready, push client to pending list");
		return;
	}
	if (peer->kind == SIM_MPS_PEER_NEW)
		sim_mps_log("Control", "NEW UI");
	peer->kind = SIM_MPS_PEER_USER;
	if (peer->due_ns == 0)
		take_command(daemon, peer, text);
}

static void lose_peer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer)
{
	char text[64];
	struct sim_mps_peer *server = sim_mps_server_peer(daemon, peer->server);
	if (peer->kind == SIM_MPS_PEER_SERVER)
		bury_server(daemon, peer);
	else if (peer->kind == SIM_MPS_PEER_USER)
		sim_mps_log("Control", "UI closed");
	if (peer->kind == SIM_MPS_PEER_CLIENT && server && server->generation == peer->generation) {
		snprintf(text, sizeof text, "gone %d", (int)peer->pid);
		sim_mps_send(server->fd, text);
	}
	sim_mps_peer_drop(peer);
}

static void hear_peer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer)
{
	static char text[SIM_MPS_MESSAGE_BYTES];
	if (sim_mps_receive(peer->fd, text, sizeof text))
		take_message(daemon, peer, text);
	else
		lose_peer(daemon, peer);
}

static void accept_peer(struct sim_mps_daemon *daemon, int listener)
{
	struct sockaddr_un nameless;
	struct ucred credentials = {0};
	socklen_t size = sizeof credentials, length = sizeof nameless;
	int fd = accept4(listener, (struct sockaddr *)&nameless, &length, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	sim_mps_log("Control", "Accepting connection...");
	struct sim_mps_peer *peer = sim_mps_peer_add(daemon, fd, SIM_MPS_PEER_NEW);
	if (!peer) {
		close(fd);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0)
		peer->pid = credentials.pid;
}

/* Returns how long poll(2) may wait for messages. */
static int patience_ms(const struct sim_mps_daemon *daemon, bool waits)
{
	uint64_t now_ns = ll_now_ns(), next_ns = waits ? now_ns + LOOK_AGAIN_MS * LL_NS_PER_MS : SIM_NEVER;
	for (int i = 0; i < daemon->peer_count; i++) {
		const struct sim_mps_peer *peer = &daemon->peers[i];
		if (peer->fd >= 0 && peer->due_ns && peer->due_ns < next_ns)
			next_ns = peer->due_ns;
	}
	if (next_ns == SIM_NEVER)
		return -1;
	uint64_t ms = next_ns > now_ns ? (next_ns - now_ns) / LL_NS_PER_MS + 1 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void wait_and_hear(struct sim_mps_daemon *daemon, bool waits)
{
	static struct pollfd polled[SIM_MPS_PEERS + 3];
	int count = daemon->peer_count;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = daemon->peers[i].fd, .events = POLLIN};
	for (int i = 0; i < 2; i++)
		polled[count + i] = (struct pollfd){.fd = daemon->listeners[i], .events = POLLIN};
	polled[count + 2] = (struct pollfd){.fd = daemon->signals, .events = POLLIN};
	if (poll(polled, (nfds_t)count + 3, patience_ms(daemon, waits)) < 0)
		return;
	if (polled[count + 2].revents) {
		daemon->is_quitting = true;
		daemon->force_ns = 0;
	}
	for (int i = 0; i < count; i++) {
		if (polled[i].revents && daemon->peers[i].fd >= 0)
			hear_peer(daemon, &daemon->peers[i]);
	}
	for (int i = 0; i < 2; i++) {
		if (polled[count + i].revents)
			accept_peer(daemon, daemon->listeners[i]);
	}
	for (int i = 0; i < daemon->peer_count; i++) {
		struct sim_mps_peer *peer = &daemon->peers[i];
		if (peer->fd >= 0 && peer->due_ns && peer->due_ns <= ll_now_ns())
			run_command(daemon, peer);
	}
}

static void remove_pipes(void)
{
	static const char *const names[] = {"control", "control_privileged", "log", "nvidia-cuda-mps-control.pid"};
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (path_in_folder(path, sizeof path, names[i], NULL) == 0)
			unlink(path);
	}
}

void sim_mps_daemon_run(struct sim_mps_daemon *daemon)
{
	while (!daemon->is_quitting || sim_mps_daemon_has_servers(daemon)) {
		sim_lock(daemon->w);
		sim_advance_to_now(daemon->w);
		bool waits = settle_waiting(daemon);
		sim_unlock(daemon->w);
		if (daemon->is_quitting && !sim_mps_daemon_has_servers(daemon))
			break;
		wait_and_hear(daemon, waits);
	}
	sim_mps_log("Control", "Exit");
	remove_pipes();
	sim_lock(daemon->w);
	sim_advance_to_now(daemon->w);
	sim_proc_leave(daemon->w, daemon->proc);
	sim_unlock(daemon->w);
	free(daemon->server_path);
}
