/*
 * users.h - the processes that use cards, each with its claims (claims.h).
 *
 * A descriptor identifies a process, and reports its end. The end of a connection does not mean that the process has
 * ended: a program that closes all its descriptors lives, and connects again. After exec, a process connects again too,
 * and does not know its old slots: their claims end. If the new program does not use CUDA, its claims end when the word
 * `life` of one of its slots says so.
 */
#ifndef LOADLINE_DAEMON_JOBS_USERS_H
#define LOADLINE_DAEMON_JOBS_USERS_H

#include "daemon/jobs/claims.h"

struct ll_connection;
struct ll_death_watch;

struct ll_user {
	struct ll_user *next;
	uint64_t number; /* rises with each user */
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none now */
	struct ll_death_watch *watch;
	uint32_t pid; /* as the daemon sees it; 0: not visible */
	struct ll_claim_identity identity;
	unsigned claims;
};

/* A process requests a new slot, or the slot that it has already (LL_MESSAGE_CLAIM). */
struct ll_claim_call {
	struct ll_connection *connection;
	int process_fd; /* copied */
	struct ll_job *job;
	const struct ll_message_claim *message;
};

/* -ESRCH: the process cannot be watched. -ESTALE: the slot is not the process's. -ENOSPC, -ENOMEM, -EMFILE. */
int ll_users_claim(struct ll_server *server, const struct ll_claim_call *call, struct ll_job_claim **ret_claim);

/* The connection of the user has ended. */
void ll_users_disconnect(struct ll_server *server, struct ll_user *user);

/* Releases the user after one of its claims has ended. */
void ll_user_drop(struct ll_user *user);

/* Returns the user of this process; NULL: the process has no claim, or is not visible to the daemon. A page may name a
 * process of another user, so a user of a job over which the connection has rights is preferred. */
struct ll_user *ll_users_find(const struct ll_connection *connection, int process_fd);

/* Stores what the driver's checkpoint did to the process. */
void ll_users_set_checkpoint(const struct ll_user *user, uint32_t state);

/* Finds the processes of the slots of adopted pages. Slots of ended processes are released. The other processes are
 * watched, whether they connect again or not. Returns whether the caller must call it again. */
bool ll_users_adopt(struct ll_server *server, struct ll_job *job);

/* Checks whether processes that cannot be watched have ended, and whether those without a connection have become
 * another program. Returns whether there are any. */
bool ll_users_reap(struct ll_server *server);

/* The periodic check of processes that cannot be watched. Returns whether there are any. */
bool ll_users_tick(struct ll_server *server);

#endif
