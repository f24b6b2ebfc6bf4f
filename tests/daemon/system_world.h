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

struct system_world {
	struct world world; /* the place is the socket file */
	char folder[40];    /* as of a simulated world */
	pid_t daemon;       /* a child of the test */
};

/* Makes the folder, and starts the daemon. files: how many descriptors it may have; 0: as many as the test. */
void system_world_init(struct system_world *system, unsigned files);

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
