/*
 * system_world.h - a world whose loadlined is the system's: it is started by root, runs as an ordinary user and serves
 * all. Tests with it need root, and are one user after the other.
 */
#ifndef LOADLINE_TESTS_DAEMON_SYSTEM_WORLD_H
#define LOADLINE_TESTS_DAEMON_SYSTEM_WORLD_H

#include "protocol/client.h"
#include "world.h"

/* Ordinary users: who need no account. */
enum { FIRST_UID = 61234, SECOND_UID = 61235 };

enum { KEPT_MOST = 16, KEPT_NAME_SIZE = 64 };

struct system_world {
	struct world world; /* the place is the socket file */
	char folder[40];    /* as of a simulated world */
	pid_t daemon;       /* a child of the test */
	/* if the test is the daemon's systemd: the sockets, and what the daemon left with it */
	const char *config; /* path; NULL: none */
	bool is_blind;      /* /proc hides the processes of others from the daemon */
	bool is_kept, is_ready;
	int listen_fd, notify_fd;
	size_t kept;
	int kept_fds[KEPT_MOST];
	char kept_names[KEPT_MOST][KEPT_NAME_SIZE];
};

/* Makes the folder, and starts the daemon. files: how many descriptors it may have; 0: as many as the test. */
void system_world_init(struct system_world *system, unsigned files);

/* The same with a configuration: the file's path, which must stay valid. */
void system_world_init_with(struct system_world *system, const char *config);

/* The same, and the test does what systemd does: it makes the socket, and keeps what the daemon leaves. */
void system_world_init_kept(struct system_world *system);

/* Reads what the daemon has told; returns how many descriptors are kept now. */
size_t system_world_read(struct system_world *system);

/* Ends the daemon, and removes the folder. Jobs are ended before. */
void system_world_fini(struct system_world *system);

/* Kills the daemon, and starts the next one. */
void system_world_restart(struct system_world *system);

/* This process is that user from here on, but may become another again. Processes that it makes meanwhile may not. */
void become(uid_t uid);

/* A job of that user. */
void job_start_as(struct job *job, const struct system_world *system, uid_t uid, const char *name);

/* Connects as that user. Fails the test if it cannot. */
void open_as(struct ll_client *client, const struct system_world *system, uid_t uid);

/* Reads the list as that user; the caller calls ll_list_fini. */
void list_as(struct ll_list *list, const struct system_world *system, uid_t uid);

#endif
