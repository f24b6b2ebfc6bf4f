/*
 * neighbours.h - memory that processes have moved to another card of the host, which nobody uses.
 *
 * Before eviction a process reports its readings of the cards that NVLink joins to its own. loadlined chooses one of
 * them, or the host (rules/residency/neighbour.h). From then on the books count the memory on that card. When a program
 * uses that card, loadlined tells the process to copy the memory on to the host. The process reports a reading of the
 * card every 100 ms.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_NEIGHBOURS_H
#define LOADLINE_DAEMON_RESIDENCY_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/residency/residency.h"
#include "protocol/message.h"
#include "rules/residency/residency.h"

/* Handles NEIGHBOUR. If the card is wanted, its guest memory is sent on to the host. */
void ll_neighbours_handle(struct ll_server *server, struct ll_evictable *evictable,
			  const struct ll_message_move *message);

/* A process has got a claim on the card: memory that others moved there is sent on to the host. */
void ll_neighbours_clear(struct ll_server *server, const char *uuid);

/* Describes the memory that processes of other cards have on the card, as one program that is being evicted. Returns 1;
 * 0: there is none. */
size_t ll_neighbours_describe(const struct ll_residency_books *books, const char *uuid, uint64_t now_ns,
			      struct ll_residency_program *ret_program);

#endif
