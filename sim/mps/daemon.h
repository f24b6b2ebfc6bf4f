/*
 * daemon.h - nvidia-cuda-mps-control as a daemon: one thread that waits for users' commands, programs that want to
 * be clients, and its servers. What is true of the cards is in the world (mps.h); what a `quit` forgets is here.
 */
#ifndef LOADLINE_SIM_MPS_DAEMON_H
#define LOADLINE_SIM_MPS_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "card/world.h"

struct ll_err;
struct ll_strbuf;

enum { SIM_MPS_PEERS = 1024 };

enum sim_mps_peer_kind {
	SIM_MPS_PEER_NEW,     /* has not said yet what it is */
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
	uint32_t server; /* CLIENT, SERVER: slot in the world */
	uint32_t generation;
	uint64_t due_ns;     /* USER: its command hangs until then; 0: none does */
	bool waits_for_quit; /* USER */
	char command[256];
};

struct sim_mps_daemon {
	struct sim_world *w;
	uint32_t proc;
	char *server_path;
	/* for servers to come */
	struct sim_mps_server defaults;
	bool is_quitting;
	uint64_t force_ns; /* when quitting stops being patient; SIM_NEVER */
	int listeners[2];  /* control, control_privileged */
	int signals;
	int peer_count;
	struct sim_mps_peer peers[SIM_MPS_PEERS];
};

/*
 * Becomes the daemon of the pipe folder: takes its lock, joins the world, opens the pipes. -EBUSY: there is one
 * already; -EINVAL and others: the folder cannot be used.
 */
int sim_mps_daemon_init(struct sim_mps_daemon *daemon, bool is_partitioned, struct ll_err *err);

/* Until quit or a signal to end. Returns with servers and pipes gone. */
void sim_mps_daemon_run(struct sim_mps_daemon *daemon);

/* Starts a server for a user. SIM_NONE when it cannot. World locked. */
uint32_t sim_mps_daemon_start_server(struct sim_mps_daemon *daemon, uint32_t uid);
/* Tells a server to go at once, its clients notwithstanding. */
void sim_mps_daemon_end_server(struct sim_mps_daemon *daemon, uint32_t server);

/* mps/answer.c: runs one command; the answer is text for the user, "" for none. World locked and advanced. */
void sim_mps_answer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, struct ll_strbuf *answer);

#endif
