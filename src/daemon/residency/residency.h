/*
 * residency.h - decides whose memory is on which card, and which process is evicted or resumed next.
 *
 * rules/residency/residency.h makes the decision for all cards that have jobs in common.
 * rules/residency/residency_units.h says which processes form a unit. loadlined sends the decision to the processes
 * (evictable.h), which move their memory themselves. The processes of a unit are evicted together (gather.h). loadlined
 * has no driver: it requests the free memory of a card from its evictable processes, and only while one of them waits
 * for room.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_RESIDENCY_H
#define LOADLINE_DAEMON_RESIDENCY_RESIDENCY_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/jobs/claims.h"
#include "daemon/jobs/exports.h"
#include "protocol/message.h"

struct ll_connection;
struct ll_evictable;
struct ll_gather;
struct ll_move_request;

/* Free memory of a card, as its processes measure it. */
struct ll_card_room;

struct ll_residency_books {
	struct ll_evictable *evictables;
	struct ll_card_room *rooms;
	struct ll_gather *gathers;        /* processes that are evicted or stopped together */
	struct ll_move_request *requests; /* requests of commands that are not completed */
	struct ll_shares shares;
	uv_timer_t timer;
	uint64_t due_ns; /* when the timer is due, if it is active */
};

int ll_residency_init(struct ll_server *server);
void ll_residency_fini(struct ll_server *server);

/* Handles EVICTABLE: a process connects for one of its claims. Returns 0, or the error of the refusal: -EAGAIN,
 * -ESTALE, -ENOMEM. */
int ll_residency_join(struct ll_server *server, struct ll_connection *connection,
		      const struct ll_message_move *message);

/* Handles a message of the process on that connection. */
void ll_residency_handle(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			 const struct ll_message_move *message);

/* A command requests EVICT, SUSPEND or RESUME. The reply is sent now or later. */
void ll_residency_request(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			  const struct ll_message_move *message);

/* The connection of a process or of a command has ended. */
void ll_residency_disconnect(struct ll_server *server, struct ll_connection *connection);

/* The claim has ended: forgets the state of its memory. */
void ll_residency_end(struct ll_server *server, const struct ll_job_claim *claim);

/* Sets the row's host_bytes, its moves, and its memory on a neighbour; 0 if the claim's process is not evictable. */
void ll_residency_describe(const struct ll_server *server, const struct ll_job_claim *claim,
			   struct ll_message_claim_row *row);

#endif
