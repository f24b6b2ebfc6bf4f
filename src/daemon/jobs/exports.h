/*
 * exports.h - allocations that processes share with others (protocol/message.h, SHARE). loadlined keeps descriptors of
 * them, and gives copies to processes that have the key.
 */
#ifndef LOADLINE_DAEMON_JOBS_EXPORTS_H
#define LOADLINE_DAEMON_JOBS_EXPORTS_H

#include <stddef.h>

#include "protocol/message.h"

struct ll_connection;
struct ll_share;

struct ll_shares {
	struct ll_share *first;
};

/* Handles SHARE. Takes the descriptors and sets them to -1. It does not take them if there is no memory, or if they do
 * not match the earlier messages. */
void ll_shares_add(struct ll_shares *shares, const struct ll_connection *connection,
		   const struct ll_message_share *message, int *fds, size_t count);

/* Calls count for each shared allocation, with the uid of its connection and the number of its descriptors. */
void ll_shares_count(const struct ll_shares *shares, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data);

/* Handles UNSHARE. */
void ll_shares_remove(struct ll_shares *shares, const struct ll_connection *connection,
		      const struct ll_message_share *message);

/* The connection has ended: closes all that it shared. */
void ll_shares_end(struct ll_shares *shares, const struct ll_connection *connection);

/* Handles OPEN, and replies. */
void ll_shares_open(const struct ll_shares *shares, struct ll_connection *connection,
		    const struct ll_message_share *message);

void ll_shares_fini(struct ll_shares *shares);

#endif
