/*
 * residency.h - decides whose memory is on which card, and which process is evicted or resumed next.
 *
 * rules/residency/residency.h makes the decision for all cards that have jobs in common.
 * rules/residency/residency_units.h says which processes form a unit. loadlined sends the decision to the processes
 * (evictable.h), which move their memory themselves. The processes of a unit are evicted together (gather.c). loadlined
 * has no driver: it requests the free memory of a card from its evictable processes, and only while one of them waits
 * for room.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_RESIDENCY_H
#define LOADLINE_DAEMON_RESIDENCY_RESIDENCY_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/jobs/jobs.h"
#include "protocol/message.h"

struct ll_card_room;
struct ll_connection;
struct ll_evictable;
struct ll_gather;
struct ll_move_request;

/* Free memory of a card, as its processes measure it. */

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

enum ll_recall_state { LL_RECALL_LEAVING, LL_RECALL_AWAY, LL_RECALL_FAILED };

/* The memory of all processes of the job leaves its cards together, and stays away until ll_residency_return. Call it
 * again until it is away, and from time to time after that: processes may begin meanwhile. FAILED: one could not leave,
 * or has memory that cannot; the next call tries again. */
enum ll_recall_state ll_residency_recall(struct ll_server *server, const struct ll_job *job);
void ll_residency_return(struct ll_server *server, const struct ll_job *job);

/* The connection of a process or of a command has ended. */
void ll_residency_disconnect(struct ll_server *server, struct ll_connection *connection);

/* The claim has ended: forgets the state of its memory. */
void ll_residency_end(struct ll_server *server, const struct ll_job_claim *claim);

/* Sets the row's host_bytes, its moves, and its memory on a neighbour; 0 if the claim's process is not evictable. */
void ll_residency_describe(const struct ll_server *server, const struct ll_job_claim *claim,
			   struct ll_message_claim_row *row);

/* Whether the memory of the claim's process is off the card, or the process stopped, because a command says so; and
 * whether a thread of it waits for room on the card. Of a process that is not evictable both are false. */
void ll_residency_read_waits(const struct ll_server *server, const struct ll_job_claim *claim, bool *ret_is_by_hand,
			     bool *ret_waits);

/* A process has got a claim on the card: memory that others moved there is sent on to the host. */
void ll_neighbours_clear(struct ll_server *server, const char *uuid);

/*
 * memory.c: gives each process of a job its part of the job's memory on a card (rules/residency/grants.h).
 *
 * The memory of an ended process stays in the books until the driver has freed it. A want that fits only after that is
 * replied to after that.
 */

/* The driver frees a process's memory while the kernel ends the process, or executes its next program, which took 93 to
 * 121 ms after a kill (doc/facts.md). */
#define LL_LEAVING_NS UINT64_C(150000000)

/* The time that other processes have to free the reserve of their pools. */
#define LL_RESERVES_NS UINT64_C(50000000)

int ll_memory_init(struct ll_server *server);
void ll_memory_fini(struct ll_server *server);

/* Starts a claim that is new, or that was adopted with a page. */
void ll_memory_begin(struct ll_job_claim *claim);

/* Counts the claim's used memory as leaving, unless the driver has it back (is_freed). Call it before the slot is
 * released. Returns whether the claim used any memory. */
bool ll_memory_release(struct ll_job_claim *claim, bool is_freed);

/* Whether the slot has a want without a reply. */
bool ll_memory_has_want(const struct ll_job_claim *claim);

/* A process has sent WAKE: decides about the card's memory if there is something to decide. */
void ll_memory_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Claims or limits have changed: decides again. */
void ll_memory_settle(struct ll_server *server, struct ll_job_card *card);

/* Adopts what the orders say about memory that the driver had not freed yet. death_ns: when a process last ended on the
 * card. */
void ll_memory_adopt(struct ll_job_card *card, uint64_t death_ns);

uint64_t ll_memory_leaving_bytes(const struct ll_job_card *card);

/* The used memory of its processes, and the memory that is leaving. */
uint64_t ll_memory_used_bytes(const struct ll_job_card *card);

void ll_memory_forget(struct ll_job_card *card);

#endif
