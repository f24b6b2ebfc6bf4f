/*
 * connection.h - the process's only connection to loadlined, and the pages that it received over this connection.
 *
 * A program may close descriptors that are not its own, and the next file that it opens may get the same number. So the
 * library checks the socket's inode before each use of the connection. If the connection is gone, the next request
 * connects again. On a new connection the library first asks for the slots that the process has. Otherwise loadlined
 * would assume that the process has become another program (by exec). A forked child does not use the parent's
 * connection and makes its own.
 *
 * Only files of this folder include it. Any thread may call these functions. They do not change errno, and they are not
 * cancellation points.
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

/* The pages that the job shares with loadlined. They stay mapped until the process ends, because streams wait for words
 * of them. */
struct ll_port_pages {
	struct ll_page *page;
	const struct ll_orders *orders;
	dev_t device;
	ino_t inode;                  /* inode of the page's file */
	struct ll_port_pages *former; /* older pages, if the job was registered again; NULL: none */
};

/* Returns the last pages that loadlined sent; NULL: it has sent none yet. */
struct ll_port_pages *ll_connection_pages(void);

struct ll_slot_request {
	const struct ll_run_settings *settings; /* owned by the caller, must not change */
	const char *uuid;                       /* empty: the request is for the pages and not for a slot */
	uint64_t slot_token;                    /* see struct ll_message_claim */
	unsigned slot;
};

struct ll_slot_grant {
	struct ll_port_pages *pages;
	uint64_t token;
	int64_t ahead_ns; /* the daemon's clock minus the process's clock */
	unsigned slot, card;
};

/*
 * Connects if necessary, and asks for a slot. wait_ns: the longest time to try if no loadlined serves or replies, or if
 * the job is not known yet. Returns -ESTALE if the slot belongs to another process, and -ENOENT if the settings name no
 * place. Other errors: loadlined refused the request, or it cannot be reached.
 */
int ll_connection_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err);

/* Connects if there is no connection to the daemon with this instance number, and asks for the slots of all claims
 * (claim.h) by their tokens. A claim whose slot no longer belongs to this process is refused from then on. Returns the
 * same errors as ll_connection_claim. */
int ll_connection_renew(const struct ll_run_settings *settings, uint64_t instance);

/* Returns whether there is a connection and the other side has not ended. Two system calls. */
bool ll_connection_stands(void);

/* Waits until loadlined has noticed all processes that ended before the call, or does not reply. */
void ll_connection_sweep(const struct ll_run_settings *settings);

/* Opens another connection to loadlined, which the caller owns. No message was sent on it yet. The caller blocks forks.
 * Returns 0 or -errno; -EAGAIN: loadlined is flooded with connections, and the caller may try again. */
int ll_connection_open(const struct ll_run_settings *settings, int *ret_fd);

/* Sends LL_MESSAGE_WAKE or LL_MESSAGE_LEAVE for a slot. Never waits. Returns -errno if the message was not sent. */
int ll_connection_tell(enum ll_message_kind kind, unsigned slot, uint64_t token);

#endif
