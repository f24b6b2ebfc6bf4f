/*
 * evictable.h - a process whose memory can leave its card: what loadlined asks of it, and what it says.
 *
 * The process moves its memory itself (protocol/message.h, EVICTABLE). It says how far it is, and loadlined keeps what
 * the decision needs (control/residency.h). A process that loses its connection goes on with what it does, and tells
 * the state of things when it connects again.
 *
 * Private to residency.c, gather.c and move_requests.c.
 */
#ifndef LOADLINE_DAEMON_EVICTABLE_H
#define LOADLINE_DAEMON_EVICTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/residency.h"
#include "daemon/claims.h"
#include "protocol/message.h"

struct ll_connection;
struct ll_gather;

/* A card of which a process has said how it is. */
struct ll_neighbour_card {
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes, used_bytes;
};

/* The other card on which a process has its memory (neighbours.h), or to which it may go. */
struct ll_evictable_neighbour {
	char uuid[LL_CARD_UUID_SIZE]; /* empty: none */
	uint64_t bytes;
	unsigned wanted_looks; /* in a row, at which somebody else used it */
	bool is_sent_on;       /* it was told to leave that card */
};

enum { LL_NEIGHBOUR_CARDS = 15 };

struct ll_evictable {
	struct ll_evictable *next;
	struct ll_connection *connection;   /* NULL: it has none now */
	struct ll_job_claim *claim;         /* it ends with this */
	struct ll_residency_program rule;   /* what the decision needs */
	enum ll_residency_wish wish_before; /* what holds again if it cannot leave */
	bool was_stopped;                   /* it was stopped by hand when it was asked to leave */
	struct ll_gather *gather;           /* it stops, or leaves, together with others; NULL: alone */
	bool is_loose;                      /* its job is too large for a card (control/residency_units.h) */
	uint64_t large_since_ns;            /* since when it seems so */
	bool is_held;                       /* it returns, and was told to wait for others then */
	bool is_move;                       /* what it does now moves memory */
	bool is_late;                       /* it was given up, because it did not become quiet in time */
	uint64_t pool_bytes;                /* of the host's memory that it has ready */
	uint32_t moves;                     /* off the card or back on it, that have ended */
	uint64_t begun_ns;                  /* of the move that goes on */
	uint64_t asked_ns;                  /* when it was asked to become quiet, or last said that it prepares */
	uint64_t quiet_ns;                  /* how long it may take to do so; 0: 10 s */
	uint64_t again_ns;             /* it had no room: RESUME is to be said again then, if it may go on; 0: no */
	uint64_t heard_ns;             /* when it last did something, or was asked to return */
	uint64_t granted_ns;           /* when it was granted rule.granted_bytes */
	char why[LL_MOVE_REASON_SIZE]; /* it could not leave */
	struct ll_evictable_neighbour neighbour;
	struct ll_neighbour_card seen[LL_NEIGHBOUR_CARDS]; /* what it says before it asks where to go */
	size_t seen_count;
};

/* What a message of a process has brought about. */
enum ll_evictable_event {
	LL_EVICTABLE_NONE,
	LL_EVICTABLE_DONE,   /* the move that was asked for has ended */
	LL_EVICTABLE_QUIET,  /* it waits, as others of its gather do */
	LL_EVICTABLE_STAYED, /* it was returning, and is away again */
	LL_EVICTABLE_FAILED, /* it cannot leave: see why */
};

/* EVICTABLE: how things are with a process that connects, perhaps again. */
void ll_evictable_begin(struct ll_evictable *evictable, const struct ll_message_move *message, uint64_t now_ns);

/* Any other message of it. */
enum ll_evictable_event ll_evictable_handle(struct ll_evictable *evictable, enum ll_message_kind kind,
					    const struct ll_message_move *message, uint64_t now_ns);

/* Steps of a decision. */
void ll_evictable_evict(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_suspend(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_resume(struct ll_evictable *evictable, uint64_t now_ns);

/* Becomes quiet, and leaves when it is told again (gather.h). */
void ll_evictable_gather(struct ll_evictable *evictable, uint64_t now_ns);

/* Returns, and goes on when it is told so; from AWAY. */
void ll_evictable_resume_held(struct ll_evictable *evictable, uint64_t now_ns);
void ll_evictable_go_on(struct ll_evictable *evictable);
void ll_evictable_stay(struct ll_evictable *evictable);
void ll_evictable_reply_short(struct ll_evictable *evictable, enum ll_move_room room, uint64_t now_ns);

/* It could not leave: it is asked again after a while. begun_ns: of the attempt. */
void ll_evictable_put_off(struct ll_evictable *evictable, uint64_t begun_ns, uint64_t now_ns);

/* What a person asked for cannot be: what held before holds again. */
void ll_evictable_revert_wish(struct ll_evictable *evictable);

/* Whether all of its memory is back, while it waits for others. */
bool ll_evictable_is_back(const struct ll_evictable *evictable);

/* As time passes. may_go_on: one that had no room may try again. */
enum ll_evictable_event ll_evictable_tick(struct ll_evictable *evictable, bool may_go_on, uint64_t now_ns);

/* Whether it waits for room, or moves: time has to be looked at. */
bool ll_evictable_is_waiting(const struct ll_evictable *evictable);
bool ll_evictable_is_moving(const struct ll_evictable *evictable);

/* What it does, or waits for, as a phrase. */
const char *ll_evictable_describe(const struct ll_evictable *evictable);

/* Whether what a person asked for holds. */
bool ll_evictable_is_as_wished(const struct ll_evictable *evictable);

void ll_evictable_say(struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value, uint32_t flags);

#endif
