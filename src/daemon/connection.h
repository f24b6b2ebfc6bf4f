/*
 * connection.h - what a connection is. For connection.c.
 */
#ifndef LOADLINE_DAEMON_CONNECTION_H
#define LOADLINE_DAEMON_CONNECTION_H

#include "daemon/listing.h"
#include "daemon/server.h"

struct ll_connection {
	struct ll_server *server;
	struct ll_connection *next;
	uv_poll_t poll;
	int fd;
	int process_fd;   /* of the other side (process.h); -1: unknown */
	uint64_t born_ms; /* on the loop's clock */
	uint32_t role;    /* 0: it has not said HELLO */
	uint32_t serial;  /* of the message that is being answered */
	struct ll_job *job;
	bool has_pending, is_listing;
	struct ll_listing listing;
	union ll_message pending;
};

#endif
