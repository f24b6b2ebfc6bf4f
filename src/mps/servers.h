/*
 * servers.h - the servers of a daemon and their clients: listing them, and taking a client off its server.
 */
#ifndef LOADLINE_MPS_SERVERS_H
#define LOADLINE_MPS_SERVERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mps/place.h"

struct ll_err;

enum ll_mps_status {
	LL_MPS_UNKNOWN,
	LL_MPS_INITIALIZING,
	LL_MPS_ACTIVE,
	LL_MPS_FAULT, /* a client's fault: no new clients until the affected ones are gone */
};

enum { LL_MPS_CARD_SIZE = 96, LL_MPS_COMMAND_SIZE = 64 };

/* One client on one card; a client on two cards is listed twice. */
struct ll_mps_client {
	pid_t pid, server;
	char card[LL_MPS_CARD_SIZE];       /* the beginning of its UUID, as the daemon shortens it; "" unknown */
	char command[LL_MPS_COMMAND_SIZE]; /* "" unknown */
};

struct ll_mps_server {
	pid_t pid;
	enum ll_mps_status status;
	uid_t user;             /* whose clients it serves; (uid_t)-1: not known */
	double compute_percent; /* limit of later clients; 0: not known */
};

/* Zeroed before first use; fini frees and zeroes. */
struct ll_mps_list {
	struct ll_mps_server *servers;
	size_t server_count;
	struct ll_mps_client *clients; /* ordered by server, then as the daemon lists them */
	size_t client_count;
};

void ll_mps_list_fini(struct ll_mps_list *list);

/* Reads the daemon's servers and clients. The list is emptied first. Errors of ll_mps_ask. A server that ends meanwhile
 * is left out. */
int ll_mps_list_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_list *list,
		     struct ll_err *err);

/* "active", "fault", "initializing", "unknown". */
const char *ll_mps_status_text(enum ll_mps_status status);

/*
 * Sends terminate_client for the server of this client. The client's contexts are destroyed. Its process goes on, and
 * gets an error from its next CUDA call. The command was seen to hang, and refuses callers that come at the same time,
 * so callers take a lock on the pipe folder. There are at most three tries; a try that the daemon refuses because it
 * takes off another client does not count. The call ends within within_ns. Nothing stronger is done instead.
 *
 * -ESRCH: there is no such client; err names those that there are. -ETIMEDOUT: no try was answered. -EIO: the daemon
 * refused; err has its last answer. -EAGAIN: other callers held the lock all the time.
 */
int ll_mps_client_end(const struct ll_mps_place *place, pid_t client, uint64_t within_ns, struct ll_err *err);

#endif
