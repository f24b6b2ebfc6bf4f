/*
 * evictable.h - a process whose memory can be evicted: requests of loadlined to it, and its reports.
 *
 * The process moves its memory itself (protocol/message.h, EVICTABLE). It reports its progress, and loadlined keeps the
 * facts for the next decision (rules/residency/residency.h). A process that loses its connection continues its move,
 * and reports its state when it connects again.
 *
 * Private to residency.c, gather.c and move_requests.c.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_EVICTABLE_H
#define LOADLINE_DAEMON_RESIDENCY_EVICTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/claims.h"
#include "protocol/message.h"
#include "rules/residency/residency.h"

struct ll_connection;
struct ll_gather;

/* A reading of a card, reported by a process. */
struct ll_neighbour_card {
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes, used_bytes;
};

/* The other card on which a process has its memory (neighbours.h), or to which it may be evicted. */
struct ll_evictable_neighbour {
	char uuid[LL_CARD_UUID_SIZE]; /* empty: none */
	uint64_t bytes;
	unsigned wanted_looks; /* number of readings in a row at which other programs used it */
	bool is_sent_on;       /* the process has the command to copy that memory on to the host */
};

enum { LL_NEIGHBOUR_CARDS = 15 };

struct ll_evictable {
	struct ll_evictable *next;
	struct ll_connection *connection;   /* NULL: none now */
	struct ll_job_claim *claim;         /* the evictable ends with its claim */
	struct ll_residency_program rule;   /* input of the decision */
	enum ll_residency_wish wish_before; /* the wish before the last command; it holds again if the command fails */
	bool was_stopped;                   /* it was suspended by hand when the eviction was requested */
	struct ll_gather *gather;           /* it is stopped or evicted together with others; NULL: alone */
	bool is_loose;                      /* its job is too large for a card (rules/residency/residency_units.h) */
	uint64_t large_since_ns;            /* since when the job seems too large */
	bool is_held;                       /* RESUMING: it waits for others when its memory is back */
	bool is_move;                       /* its present step moves memory */
	bool is_late;                       /* it did not stop in time, and is not waited for */
	uint64_t pool_bytes;                /* host memory that it has ready */
	uint32_t moves;                     /* number of moves that have ended */
	uint64_t begun_ns;                  /* start of the present move */
	uint64_t asked_ns;                  /* when its stop was requested, or it last reported progress of preparing */
	uint64_t quiet_ns;                  /* how long stopping may take; 0: 10 s */
	uint64_t again_ns;                  /* it had no room: when to send RESUME again, if it may go on; 0: never */
	uint64_t heard_ns;                  /* when it last reported something, or RESUME was sent */
	uint64_t granted_ns;                /* when rule.granted_bytes was granted */
	char why[LL_MOVE_REASON_SIZE];      /* why the eviction failed */
	bool is_told;                       /* its eviction, and not yet that it goes on (events.h) */
	uint64_t told_ns;                   /* when; 0: never */
	struct ll_evictable_neighbour neighbour;
	struct ll_neighbour_card seen[LL_NEIGHBOUR_CARDS]; /* its readings before it requests a destination */
	size_t seen_count;
};

/* The effect of a message of a process. */
enum ll_evictable_event {
	LL_EVICTABLE_NONE,
	LL_EVICTABLE_DONE,   /* the requested move has ended */
	LL_EVICTABLE_QUIET,  /* it is stopped, and waits for the others of its gather */
	LL_EVICTABLE_STAYED, /* it was resuming, and is away again */
	LL_EVICTABLE_FAILED, /* the eviction failed: see why */
};

/* Handles EVICTABLE, the state of a process that connects for the first time or again. */
void ll_evictable_begin(struct ll_evictable *evictable, const struct ll_message_move *message, uint64_t now_ns);

/* Handles any other message of the process. */
enum ll_evictable_event ll_evictable_handle(struct ll_evictable *evictable, enum ll_message_kind kind,
					    const struct ll_message_move *message, uint64_t now_ns);

/* Carry out steps of a decision. */
void ll_evictable_evict(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_suspend(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_resume(struct ll_evictable *evictable, uint64_t now_ns);

/* Requests that the process stops, and waits for the eviction or the resume (gather.h). */
void ll_evictable_gather(struct ll_evictable *evictable, uint64_t now_ns);

/* resume_held: resumes a process that is AWAY; it then waits until go_on. stay: it frees what is back, and stays away.
 * reply_short: replies to its request for room. */
void ll_evictable_resume_held(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_resume_fully(struct ll_evictable *evictable);
void ll_evictable_stay(struct ll_evictable *evictable);
void ll_evictable_reply_short(struct ll_evictable *evictable, enum ll_move_room room, uint64_t now_ns);

/* Its eviction failed: the next one is requested after a while. begun_ns: start of the failed one. */
void ll_evictable_put_off(struct ll_evictable *evictable, uint64_t begun_ns, uint64_t now_ns);

/* A command failed: the wish before it holds again. */
void ll_evictable_revert_wish(struct ll_evictable *evictable);

/* Whether all of its memory is back while it waits for others. */
bool ll_evictable_is_back(const struct ll_evictable *evictable);

/* Call it as time passes. may_go_on: a resuming process that had no room may try again. */
enum ll_evictable_event ll_evictable_tick(struct ll_evictable *evictable, bool may_go_on, uint64_t now_ns);

/* Whether it waits for room, or moves. Then ll_evictable_tick must be called. */
bool ll_evictable_is_waiting(const struct ll_evictable *evictable);
bool ll_evictable_is_moving(const struct ll_evictable *evictable);

/* Returns a phrase: what the process does or waits for. */
const char *ll_evictable_describe(const struct ll_evictable *evictable);

/* Whether the wish of the last command is fulfilled. */
bool ll_evictable_is_as_wished(const struct ll_evictable *evictable);

void ll_evictable_say(struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value, uint32_t flags);

#endif
