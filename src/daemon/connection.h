/*
 * connection.h - what a connection is: connection.c has its socket and its life, calls.c what each message does.
 */
#ifndef LOADLINE_DAEMON_CONNECTION_H
#define LOADLINE_DAEMON_CONNECTION_H

#include "daemon/decision_listing.h"
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
	uint32_t uid;     /* of the other side, as seen here */
	bool is_foreign;  /* another user than the daemon's, which is a user's: rights.h */
	struct ll_job *job;
	struct ll_evictable *evictable; /* the process's memory on a card, if it moves by this connection */
	struct ll_user *user;           /* the process of the other side, if it has claims by this connection */
	bool has_pending, is_listing, is_watching;
	bool has_read; /* it has the page of a job */
	struct ll_listing listing;
	bool is_listing_decisions;
	struct ll_decision_listing decision_listing;
	uint64_t watched; /* number of the last job whose page was sent */
	uint32_t watch_serial;
	union ll_message pending;
	int pending_fds[LL_MESSAGE_FDS];
	size_t pending_fd_count;
};

/* Sends an answer, or keeps it until the socket has room. There is one at most: while it waits nothing is read. The
 * descriptors stay the caller's. */
void ll_connection_reply(struct ll_connection *connection, union ll_message *message, const int *fds, size_t count);
void ll_connection_refuse(struct ll_connection *connection, int code, const char *reason);

/* Does what a message says. Descriptors that are kept are set to -1. False: it is wrong here, and the connection ends.
 */
bool ll_call(struct ll_connection *connection, union ll_message *message, int *fds, size_t count);

/* Whether another user may connect. Few of those that have claimed nothing may wait at a time. */
bool ll_connections_have_room(const struct ll_server *server);

/* A job came, or ended: those that watch are told. */
void ll_watchers_look(struct ll_server *server);
void ll_watchers_tell_end(struct ll_server *server, uint64_t job_number);

#endif
