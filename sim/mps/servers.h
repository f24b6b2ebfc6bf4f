/*
 * servers.h - the state of nvidia-cuda-mps-control: its peers at the pipes, among them the servers that it starts.
 *
 * The world has the state of the cards (card/mps.h). This state is lost after a `quit`. All functions are for one
 * thread.
 */
#ifndef LOADLINE_SIM_MPS_SERVERS_H
#define LOADLINE_SIM_MPS_SERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "card/world.h"

enum { SIM_MPS_PEERS = 1024 };

enum sim_mps_peer_kind {
	SIM_MPS_PEER_NEW,     /* has sent nothing yet */
	SIM_MPS_PEER_USER,    /* sends commands */
	SIM_MPS_PEER_WAITING, /* a program that wants to be a client */
	SIM_MPS_PEER_CLIENT,
	SIM_MPS_PEER_SERVER,
};

struct sim_mps_peer {
	int fd; /* -1: the slot is free */
	enum sim_mps_peer_kind kind;
	pid_t pid;
	uint32_t uid;    /* WAITING */
	uint32_t server; /* CLIENT, SERVER: the server's slot in the world */
	uint32_t generation;
	uint64_t due_ns;     /* USER: end of the time for which its command hangs; 0: it does not hang */
	bool waits_for_quit; /* USER */
	char command[256];
};

struct sim_mps_daemon {
	struct sim_world *w;
	uint32_t proc;
	char *server_path;
	struct sim_mps_server defaults; /* for the next servers */
	bool is_quitting;
	uint64_t force_ns; /* when `quit` ends servers that have clients; SIM_NEVER */
	int listeners[2];  /* control, control_privileged */
	int signals;
	int peer_count;
	struct sim_mps_peer peers[SIM_MPS_PEERS];
};

/* Adds a peer, which then owns fd. NULL: there are too many. */
struct sim_mps_peer *sim_mps_peer_add(struct sim_mps_daemon *daemon, int fd, enum sim_mps_peer_kind kind);

/* Closes the peer's connection and frees its slot. */
void sim_mps_peer_drop(struct sim_mps_peer *peer);

/* Starts a server for a user and returns its slot in the world. SIM_NONE: it cannot be started. The world must be
 * locked. */
uint32_t sim_mps_daemon_start_server(struct sim_mps_daemon *daemon, uint32_t uid);

/* Tells a server to end at once, even if it has clients. The world must be locked. */
void sim_mps_daemon_end_server(struct sim_mps_daemon *daemon, uint32_t server);

/* Returns the peer of this server; NULL: there is none. */
struct sim_mps_peer *sim_mps_server_peer(struct sim_mps_daemon *daemon, uint32_t server);

/* Returns whether a server's process exists: from its start until the daemon has reaped it. */
bool sim_mps_daemon_has_servers(const struct sim_mps_daemon *daemon);

#endif
