/*
 * line.h - the connection of an evictable process to loadlined, for one card. It is apart from the connection of its
 * claims (link/connection.h), because a move takes long, and its thread is inside the driver meanwhile.
 *
 * A program may close descriptors that are not its own, and its next file gets the number. So the connection is known
 * by the socket's inode. One thread opens, receives and closes; any thread says something.
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
	uint64_t token;       /* of the slot that it is about */
	pthread_mutex_t lock; /* held by threads while they send, and while fd changes */
};

void ll_line_init(struct ll_line *line);

/* Connects, and says who this is. -errno: nobody serves, or another user does. */
int ll_line_open(struct ll_line *line, const struct ll_port *port);
void ll_line_close(struct ll_line *line);

/* In a forked child: its copy is the parent's. */
void ll_line_close_in_child(struct ll_line *line);

/* Never waits. -errno: it did not go. Descriptors stay the caller's. */
int ll_line_say(struct ll_line *line, const union ll_message *message, const int *fds, size_t fd_count);

/* -EAGAIN: there is no message. Other errors: the connection is of no use any more. */
int ll_line_receive(struct ll_line *line, union ll_message *ret_message);

/* Until there is a message, and no longer than so many ms. */
void ll_line_wait(struct ll_line *line, int ms);

#endif
