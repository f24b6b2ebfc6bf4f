/*
 * connection.h - the process's one connection to loadlined, and the pages that came over it.
 *
 * A program may close descriptors that are not its own, and its next file gets the number. So the connection is known
 * by the socket's inode, and is looked at before each use. If it is gone, the next request connects anew. The slots
 * that the process has are asked for first on a new connection: else loadlined would take it for another program that
 * the process became. A forked child has none of it, and makes its own.
 *
 * Private to this folder. Any thread may call. errno is kept, and no function is a cancellation point.
 */
#ifndef LOADLINE_SHIM_LINK_CONNECTION_H
#define LOADLINE_SHIM_LINK_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/message.h"
#include "protocol/page.h"

struct ll_err;
struct ll_run_settings;

/* What the job shares with loadlined. It stays mapped to the end of the process: streams wait for words of it. */
struct ll_port_pages {
	struct ll_page *page;
	const struct ll_orders *orders;
	dev_t device;
	ino_t inode;                  /* of the page */
	struct ll_port_pages *former; /* of a job that was registered anew; NULL */
};

/* Returns the pages that came last; NULL: none came yet. */
struct ll_port_pages *ll_connection_pages(void);

struct ll_slot_request {
	const struct ll_run_settings *settings; /* stays the caller's, and as it is */
	const char *uuid;                       /* empty: no slot, the pages alone */
	uint64_t slot_token;                    /* as in struct ll_message_claim */
	unsigned slot;
};

struct ll_slot_grant {
	struct ll_port_pages *pages;
	uint64_t token;
	int64_t ahead_ns; /* of the daemon's clock */
	unsigned slot, card;
};

/*
 * Connects if need be, and asks for a slot. wait_ns: for how long to try if nobody serves or answers, or the job is not
 * known. -ESTALE: the slot is another's. -ENOENT: the settings name no place. Other errors: what loadlined refuses, or
 * why it cannot be reached.
 */
int ll_connection_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err);

/* Connects if there is no connection to the daemon with that number, and asks for the slots of all claims (claim.h) by
 * their tokens. One that is not this process's any more is refused from then on. Errors as ll_connection_claim. */
int ll_connection_renew(const struct ll_run_settings *settings, uint64_t instance);

/* Whether there is a connection, and the other side has not ended. Two system calls. */
bool ll_connection_stands(void);

/* Returns when loadlined has seen who ended before the call, or does not answer. */
void ll_connection_sweep(const struct ll_run_settings *settings);

/* Opens another connection to loadlined, the caller's, on which nothing is said yet. The caller blocks forks. -errno.
 */
int ll_connection_open(const struct ll_run_settings *settings, int *ret_fd);

/* Sends LL_MESSAGE_WAKE or ..._LEAVE for a slot, and never waits. -errno: it did not go. */
int ll_connection_tell(enum ll_message_kind kind, unsigned slot, uint64_t token);

#endif
