#include "mps/servers.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card/mps.h"
#include "card/mps_pipe.h"

struct sim_mps_peer *sim_mps_peer_add(struct sim_mps_daemon *daemon, int fd, enum sim_mps_peer_kind kind)
{
	int i = 0;
	while (i < daemon->peer_count && daemon->peers[i].fd >= 0)
		i++;
	if (i == SIM_MPS_PEERS)
		return NULL;
	daemon->peer_count += i == daemon->peer_count;
	daemon->peers[i] = (struct sim_mps_peer){.fd = fd, .kind = kind, .server = SIM_NONE};
	return &daemon->peers[i];
}

void sim_mps_peer_drop(struct sim_mps_peer *peer)
{
	close(peer->fd);
	peer->fd = -1;
}

/* The server's socket becomes its descriptor 3; all other descriptors are closed. Returns 0 or -errno. */
static int spawn_server(const struct sim_mps_daemon *daemon, int fd, pid_t *ret_pid)
{
	char *words[] = {(char[]){"nvidia-cuda-mps-server"}, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, SIM_MPS_SERVER_FD);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int rc = posix_spawn(ret_pid, daemon->server_path, &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

uint32_t sim_mps_daemon_start_server(struct sim_mps_daemon *daemon, uint32_t uid)
{
	struct sim_mps_server wanted = daemon->defaults;
	int fds[2];
	wanted.uid = uid;
	uint32_t slot = sim_mps_server_new(daemon->w, daemon->proc, &wanted);
	if (slot == SIM_NONE || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return SIM_NONE;
	sim_commit(daemon->w);
	struct sim_mps_peer *peer = sim_mps_peer_add(daemon, fds[0], SIM_MPS_PEER_SERVER);
	pid_t pid;
	int rc = peer ? spawn_server(daemon, fds[1], &pid) : -ENOSPC;
	close(fds[1]);
	if (rc < 0) {
		if (peer)
			sim_mps_peer_drop(peer);
		else
			close(fds[0]);
		sim_mps_server_free(daemon->w, slot);
		return SIM_NONE;
	}
	char text[32];
	snprintf(text, sizeof text, "start %u", slot);
	peer->pid = pid;
	peer->server = slot;
	SIM_EDIT(daemon->w, &daemon->w->mps_servers[slot])->pid = pid;
	peer->generation = daemon->w->mps_servers[slot].generation;
	sim_mps_log("Control", "Starting new server %d for user %u", (int)pid, uid);
	sim_mps_send(peer->fd, text);
	return slot;
}

struct sim_mps_peer *sim_mps_server_peer(struct sim_mps_daemon *daemon, uint32_t server)
{
	for (int i = 0; i < daemon->peer_count; i++) {
		if (daemon->peers[i].fd >= 0 && daemon->peers[i].kind == SIM_MPS_PEER_SERVER &&
		    daemon->peers[i].server == server)
			return &daemon->peers[i];
	}
	return NULL;
}

void sim_mps_daemon_end_server(struct sim_mps_daemon *daemon, uint32_t server)
{
	struct sim_mps_peer *peer = sim_mps_server_peer(daemon, server);
	SIM_EDIT(daemon->w, &daemon->w->mps_servers[server])->is_closing = 1;
	if (peer)
		sim_mps_send(peer->fd, "exit");
}

bool sim_mps_daemon_has_servers(const struct sim_mps_daemon *daemon)
{
	for (int i = 0; i < daemon->peer_count; i++) {
		if (daemon->peers[i].fd >= 0 && daemon->peers[i].kind == SIM_MPS_PEER_SERVER)
			return true;
	}
	return false;
}
