/*
 * users.h - the processes that use cards, each with its claims (claims.h).
 *
 * A process is known by a descriptor of it, which tells its end. The end of its connection says nothing: a program that
 * closes all its descriptors lives, and comes back with a new connection. A new image of the same process (exec) comes
 * with a new connection too, and knows none of the old slots: their claims end.
 */
#ifndef LOADLINE_DAEMON_USERS_H
#define LOADLINE_DAEMON_USERS_H

#include "daemon/claims.h"

struct ll_connection;
struct ll_death_watch;

struct ll_user {
	struct ll_user *next;
	uint64_t number; /* grows */
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none now */
	struct ll_death_watch *watch;
	uint32_t pid; /* as the daemon sees it; 0: not seen */
	struct ll_claim_identity identity;
	unsigned claims;
};

/* A process asks for a slot, or for its own one (LL_MESSAGE_CLAIM). */
struct ll_claim_call {
	struct ll_connection *connection;
	int process_fd; /* copied */
	struct ll_job *job;
	const struct ll_message_claim *message;
};

/* -ESRCH: the process cannot be watched. -ESTALE: the slot is not the process's. -ENOSPC, -ENOMEM, -EMFILE. */
int ll_users_claim(struct ll_server *server, const struct ll_claim_call *call, struct ll_job_claim **ret_claim);

/* A claim of the user has ended. */
void ll_user_drop(struct ll_user *user);

/* The user that this process is. NULL: it has no claim, or is not seen from here. */
struct ll_user *ll_users_find(const struct ll_server *server, int process_fd);

/* The driver's checkpoint did something to the process. */
void ll_users_set_checkpoint(const struct ll_user *user, uint32_t state);

/* Finds the processes of slots that came with the pages: those that have ended meanwhile lose them, the others are
 * watched, whether they come back or not. Returns whether it must be tried again. */
bool ll_users_adopt(struct ll_server *server, struct ll_job *job);

/* Asks the processes that cannot be watched whether they have ended. Returns whether there are any. */
bool ll_users_reap(struct ll_server *server);

/* Looks after what nobody tells: processes that cannot be watched. Returns whether there are any. */
bool ll_users_tick(struct ll_server *server);

#endif
