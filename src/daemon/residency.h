/*
 * residency.h - whose memory is on which card, and who leaves or returns next.
 *
 * control/residency.h decides, for all cards that have jobs in common; control/residency_units.h says which processes
 * are one. What is decided is told to the processes (evictable.h), which move their memory themselves. Those that are
 * one leave by gather.h. loadlined has no driver: how much of a card is free is asked of its evictable processes, and
 * only while one of them waits for room.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_H
#define LOADLINE_DAEMON_RESIDENCY_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/claims.h"
#include "daemon/shares.h"
#include "protocol/message.h"

struct ll_connection;
struct ll_evictable;
struct ll_gather;
struct ll_move_request;

/* Memory of a card that nobody has, as its processes measure it. */
struct ll_card_room;

struct ll_residency_books {
	struct ll_evictable *evictables;
	struct ll_card_room *rooms;
	struct ll_gather *gathers;        /* who leaves, or stops, together */
	struct ll_move_request *requests; /* of commands, which wait for their end */
	struct ll_shares shares;
	uv_timer_t timer;
};

int ll_residency_init(struct ll_server *server);
void ll_residency_fini(struct ll_server *server);

/* EVICTABLE: a process connects for one of its claims. 0, or why it is refused: -EAGAIN, -ESTALE, -ENOMEM. */
int ll_residency_join(struct ll_server *server, struct ll_connection *connection,
		      const struct ll_message_move *message);

/* What the process says on that connection. */
void ll_residency_handle(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			 const struct ll_message_move *message);

/* A command asks for EVICT, SUSPEND or RESUME. It is answered now or later. */
void ll_residency_request(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			  const struct ll_message_move *message);

/* The connection has ended: of a process, or of a command. */
void ll_residency_disconnect(struct ll_server *server, struct ll_connection *connection);

/* The claim has ended, and with it what is known of its memory. */
void ll_residency_end(struct ll_server *server, const struct ll_job_claim *claim);

/* Sets the row's host_bytes, moves, and what is on a neighbour; 0 if the claim's process is not evictable. */
void ll_residency_describe(const struct ll_server *server, const struct ll_job_claim *claim,
			   struct ll_message_claim_row *row);

#endif
