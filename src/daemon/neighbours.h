/*
 * neighbours.h - memory of processes that has gone to another card of the host while nobody uses that card.
 *
 * A process that is to leave its card says what it reads of the cards that NVLink joins to its own, and loadlined names
 * one of them, or the host (control/neighbour.h). From then on the books have its memory there. When somebody comes to
 * that card, loadlined says that it has to go on to the host. A process says each 100 ms how the card is.
 */
#ifndef LOADLINE_DAEMON_NEIGHBOURS_H
#define LOADLINE_DAEMON_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include "control/residency.h"
#include "daemon/residency.h"
#include "protocol/message.h"

/* NEIGHBOUR. What is there goes on to the host if the card is wanted. */
void ll_neighbours_handle(struct ll_server *server, struct ll_evictable *evictable,
			  const struct ll_message_move *message);

/* A process has a claim on the card: what others have moved there goes on to the host. */
void ll_neighbours_clear(struct ll_server *server, const char *uuid);

/* Describes what is on the card of processes of other cards, as one program that is leaving. Returns 1; 0: nothing is
 * there. */
size_t ll_neighbours_describe(const struct ll_residency_books *books, const char *uuid, uint64_t now_ns,
			      struct ll_residency_program *ret_program);

#endif
