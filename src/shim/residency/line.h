/*
 * line.h - the connection of an evictable process to loadlined, for one card. The connection for claims is
 * another one (link/connection.h), because a move takes long, and the thread of the move is inside the driver
 * meanwhile.
 *
 * A program may close descriptors that are not its own. Then its next file gets the same number. So the connection is
 * identified by the inode of its socket. One thread opens, receives and closes; any thread may send.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINE_H
#define LOADLINE_SHIM_RESIDENCY_LINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol/message.h"
#include "shim/link/port.h"

struct ll_line {
	_Atomic int fd; /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t token;       /* of the slot of the process */
	pthread_mutex_t lock; /* held by threads while they send, and while fd changes */
};

void ll_line_init(struct ll_line *line);

/* Connects, and identifies this process. -errno: no loadlined listens, or one of another user does. */
int ll_line_open(struct ll_line *line, const struct ll_port *port);
void ll_line_close(struct ll_line *line);

/* In a forked child: closes the copy of the parent's connection. */
void ll_line_close_in_child(struct ll_line *line);

/* Sends a message, and never waits. -errno: it was not sent. Descriptors stay the caller's. */
int ll_line_say(struct ll_line *line, const union ll_message *message, const int *fds, size_t fd_count);

/* Receives a message. -EAGAIN: there is none. Other errors: the connection is lost. */
int ll_line_receive(struct ll_line *line, union ll_message *ret_message);

/* Waits until there is a message, at most so many ms. */
void ll_line_wait(struct ll_line *line, int ms);

#endif
