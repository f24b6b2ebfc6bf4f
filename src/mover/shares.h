/*
 * shares.h - allocations that programs share with others: the mover keeps their descriptors, and hands copies out.
 * Private to src/mover.
 */
#ifndef LOADLINE_MOVER_SHARES_H
#define LOADLINE_MOVER_SHARES_H

#include <stddef.h>

#include "mover/protocol.h"

struct ll_mover_program;
struct ll_mover_share;

/* Of the mover: a list. */
struct ll_mover_shares {
	struct ll_mover_share *first;
};

/* A packet of SHARE. The descriptors are the list's from now on; they are closed if there is no memory for them, or if
 * the packet does not fit what came before. */
void ll_mover_shares_add(struct ll_mover_shares *shares, const struct ll_mover_program *program,
			 const struct ll_mover_message *message, const int *fds, size_t fd_count);

/* UNSHARE. */
void ll_mover_shares_remove(struct ll_mover_shares *shares, const struct ll_mover_program *program,
			    const struct ll_mover_message *message);

/* The program's connection has ended: all that it shares. NULL: of all programs. */
void ll_mover_shares_end(struct ll_mover_shares *shares, const struct ll_mover_program *program);

/* Answers OPEN on the socket. -ENOENT: the key is not known, or not all of its packets have come: nothing was said. */
int ll_mover_shares_answer(const struct ll_mover_shares *shares, const struct ll_mover_message *message, int fd);

#endif
