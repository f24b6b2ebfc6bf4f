/*
 * connection.h - the state of a connection. connection.c has its socket, calls.c handles each message.
 */
#ifndef LOADLINE_DAEMON_CORE_CONNECTION_H
#define LOADLINE_DAEMON_CORE_CONNECTION_H

#include "base/strbuf.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/listing.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/queue.h"

struct ll_connection {
	struct ll_server *server;
	struct ll_connection *next;
	struct ll_visitor *visitor; /* of its user */
	uv_poll_t poll;
	int fd;
	int process_fd;   /* of the other side (process.h); -1: unknown */
	uint64_t born_ms; /* on the loop's clock */
	uint32_t role;    /* 0: HELLO has not arrived */
	uint32_t serial;  /* of the message that is being handled */
	uint32_t uid;     /* of the other side, as the daemon sees it */
	bool is_foreign;  /* this is a user's daemon, and the other side is another user (rights.c) */
	struct ll_job *job;
	struct ll_evictable *evictable; /* the process's memory on a card, if this connection moves it */
	struct ll_user *user;           /* the process of the other side, if it has claims on this connection */
	bool has_pending, is_watching;
	bool is_parked;                   /* is not read until its user's groups are known (identity.c) */
	bool has_read;                    /* it has got the page of a job */
	struct ll_report_reading *report; /* it has asked for; NULL: none (reports.c) */
	struct ll_strbuf rows;            /* messages of a reply for which the socket had no room (listing.h) */
	size_t rows_sent;                 /* bytes of them */
	uint32_t row_uid;                 /* ll_connection_row_of */
	uint64_t watched;                 /* number of the last job whose page was sent */
	uint32_t watch_serial;
	union ll_message pending;
	int pending_fds[LL_MESSAGE_FDS];
	size_t pending_fd_count;
	uint32_t sent_fds; /* descriptors that were sent since the peer had read all that was sent before */
};

/* Sends a reply, or keeps it until the socket has room. At most one reply is kept; until it is sent, the connection is
 * not read. The caller keeps its descriptors. */
void ll_connection_reply(struct ll_connection *connection, union ll_message *message, const int *fds, size_t count);
void ll_connection_refuse(struct ll_connection *connection, int code, const char *reason);

/* There may be something to send. */
void ll_connection_look(struct ll_connection *connection);

/* Handles a message. Descriptors that it keeps are set to -1. Returns false if the message is not allowed here; the
 * connection is then closed. */
bool ll_call(struct ll_connection *connection, union ll_message *message, int *fds, size_t count);

/* Does not read the connection until its user's groups are known. They are looked up if what is known is old. */
void ll_connection_park(struct ll_connection *connection);

/* Whether another user may connect. Only a few connections without a claim may wait at a time. */
bool ll_connections_have_room(const struct ll_server *server);

/* A job was added or has ended: tell the watching connections. */
void ll_watchers_look(struct ll_server *server);
void ll_watchers_tell_end(struct ll_server *server, uint64_t job_number);

#endif
