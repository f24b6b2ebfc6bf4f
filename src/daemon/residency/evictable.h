/*
 * evictable.h - a process whose memory can be evicted: requests of loadlined to it, and its reports.
 *
 * The process moves its memory itself (protocol/message.h, EVICTABLE). It reports its progress, and loadlined keeps the
 * facts for the next decision (rules/residency/residency.h). A process that loses its connection continues its move,
 * and reports its state when it connects again.
 *
 * Private to the room, with what its files know of each other.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_EVICTABLE_H
#define LOADLINE_DAEMON_RESIDENCY_EVICTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/jobs.h"
#include "daemon/residency/residency.h"
#include "protocol/message.h"
#include "rules/residency/residency.h"
#include "rules/residency/residency_units.h"

struct ll_connection;
struct ll_gather;
struct ll_server;

/* A reading of a card, reported by a process. */
struct ll_neighbour_card {
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes, used_bytes;
};

/* The other card on which a process has its memory (neighbours.c), or to which it may be evicted. */
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
	bool is_recalled;                   /* the queue has recalled its job (move_requests.c) */
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
	uint64_t measure_ns;                /* when it was last told to measure its card */
	uint64_t granted_ns;                /* when rule.granted_bytes was granted */
	char why[LL_MOVE_REASON_SIZE];      /* why the eviction failed */
	bool is_told;                       /* its eviction, and not yet that it goes on (events.c) */
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

/* Requests that the process stops, and waits for the eviction or the resume (gather.c). */
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

void ll_evictable_say(const struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value, uint32_t flags);

/* The same, about the card of that UUID; empty: the host, or no card. */
void ll_evictable_say_to(const struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value,
			 uint32_t flags, const char *uuid);

/*
 * gather.c: evicts or suspends several processes together.
 *
 * Ranks of a training wait for each other inside kernels. If one rank is stopped, the kernels of the others may never
 * end. So all ranks are requested to stop at the same time, and memory moves only when all are stopped. A rank may have
 * launched a kernel that needs the next kernel of another rank, which then cannot stop. In that case those that are
 * stopped run for a moment, and all are requested again, each time with a longer wait.
 *
 * A decision (residency.h) gathers the members of a unit. A command gathers the programs that it names. If one of them
 * cannot stop, none is stopped.
 */

/* What is done when all are stopped. */
enum ll_gather_end { LL_GATHER_EVICT, LL_GATHER_SUSPEND };

/*
 * Makes an empty gather. wait_ns: how long stopping may take at the last attempt, 0: 10 s; all attempts before it take
 * at most as long together. is_by_hand: for a command. NULL: no memory.
 */
struct ll_gather *ll_gather_new(struct ll_residency_books *books, enum ll_gather_end end, bool is_by_hand,
				uint64_t wait_ns, uint64_t now_ns);

/* Adds a process that is in no gather. It stays in this one until the gather ends. */
void ll_gather_add(struct ll_gather *gather, struct ll_evictable *evictable);

/* Does the next step of the gather. */
void ll_gather_look(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns);

/* Does the next steps of all gathers. Call it as time passes. */
void ll_gathers_tick(struct ll_residency_books *books, uint64_t now_ns);

/* When ll_gathers_tick is due; UINT64_MAX: only when something changes. */
uint64_t ll_gathers_due_ns(const struct ll_residency_books *books);

/* A process could not stop, or its eviction failed; evictable->why has the reason. */
void ll_gather_fail(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* A command wants another state of one process. Before all are stopped this ends the gather, and all processes go on.
 * After that it removes this process only. */
void ll_gather_remove(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* The process has ended. The gather continues without it. */
void ll_gather_forget(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

void ll_gathers_fini(struct ll_residency_books *books);

/*
 * move_requests.c: the requests of commands about memory (EVICT, SUSPEND, RESUME), and the replies.
 */

/* Ends all requests that wait for the process. code 0: success. */
void ll_move_requests_end(struct ll_residency_books *books, const struct ll_evictable *evictable, int code,
			  const char *why);

/* Tries the requests again whose process was not known yet. */
void ll_move_requests_retry(struct ll_server *server, uint64_t now_ns);

/* When to call that; UINT64_MAX: nothing waits. */
uint64_t ll_move_requests_due_ns(const struct ll_residency_books *books, uint64_t now_ns);

/* Sends PROGRESS, once a second. */
void ll_move_requests_tell(struct ll_residency_books *books, uint64_t now_ns);

/* The connection has ended: drops its requests; NULL: drops all. */
void ll_move_requests_drop(struct ll_residency_books *books, const struct ll_connection *connection);

/* ---- in residency.c ---- */

/* Returns NULL if the claim's process has not connected. */
struct ll_evictable *ll_residency_find(const struct ll_residency_books *books, const struct ll_job_claim *claim);

/* Memory of the card has become free: decides again after the card is measured again. */
void ll_residency_look_anew(struct ll_server *server, const char *uuid);

/* The same for all cards. */
void ll_residency_look_everywhere(struct ll_server *server, uint64_t now_ns);

void ll_residency_set_timer(struct ll_server *server, uint64_t now_ns);

/*
 * neighbours.c: memory that processes have moved to another card of the host, which nobody uses.
 *
 * Before eviction a process reports its readings of the cards that NVLink joins to its own. loadlined chooses one of
 * them, or the host (rules/residency/neighbour.h). From then on the books count the memory on that card. When a program
 * uses that card, loadlined tells the process to copy the memory on to the host. The process reports a reading of the
 * card every 100 ms.
 */

/* Handles NEIGHBOUR. If the card is wanted, its guest memory is sent on to the host. */
void ll_neighbours_handle(struct ll_server *server, struct ll_evictable *evictable,
			  const struct ll_message_move *message);

/* Describes the memory that processes of other cards have on the card, as one program that is being evicted. Returns 1;
 * 0: there is none. */
size_t ll_neighbours_describe(const struct ll_residency_books *books, const char *uuid, uint64_t now_ns,
			      struct ll_residency_program *ret_program);

/*
 * residency_scene.c: the input of a decision about residency: cards, their free memory, and the processes on them.
 */

struct ll_card_room {
	struct ll_card_room *next;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes;
	uint64_t asked_ns; /* when its free memory was last requested; 0: the reply came, or it was never requested */
	uint64_t measured_ns; /* when free_bytes was measured; 0: something has changed since */
	uint64_t number;      /* of the last request; replies to earlier requests are out of date */
	uint64_t again_ns;    /* when the next decision is due; UINT64_MAX: only when something changes */
};

/* The cards that have jobs in common with one, and the processes on them. */
struct ll_residency_scene {
	struct ll_card_room *rooms[LL_RESIDENCY_CARDS];
	uint64_t free_bytes[LL_RESIDENCY_CARDS];
	unsigned room_count;
	struct ll_evictable *
	    *who; /* NULL: memory that processes of other cards have moved to this card (neighbours.c) */
	struct ll_residency_member *members; /* of each of who; in the order of the cards */
	size_t count;
	struct ll_residency_program *programs; /* room for count */
	size_t program_count;
	bool is_settled; /* the memory of the cards is known. It is not while processes connect to a new loadlined, or
			    the driver still frees the memory of a process that has died */
};

/* ---- rooms ---- */

const char *ll_evictable_uuid(const struct ll_evictable *evictable);

/* Returns the room of a card; NULL: it has none yet. */
struct ll_card_room *ll_card_room_find(const struct ll_residency_books *books, const char *uuid);

/* The same, and makes it if there is none; NULL: no memory. */
struct ll_card_room *ll_card_room_get(struct ll_residency_books *books, const char *uuid);

/* Frees the room of a card on which no process can be moved, and to which no memory was moved. */
void ll_card_room_drop_unused(struct ll_residency_books *books, const char *uuid);

/* All memory of a program has been moved: earlier measurements, and replies to earlier requests, are out of date. */
void ll_card_room_request_anew(struct ll_card_room *room);

/* ---- scenes ---- */

/* Makes the scene of the cards that have jobs in common with room. Free it with fini, also after a failure. -ENOMEM. */
int ll_residency_scene_init(struct ll_residency_scene *scene, struct ll_residency_books *books,
			    struct ll_card_room *room, uint64_t now_ns);
void ll_residency_scene_fini(struct ll_residency_scene *scene);

/* Makes the programs of the scene (rules/residency/residency_units.h). */
void ll_residency_scene_join(struct ll_residency_scene *scene, const struct ll_server *server, uint64_t now_ns);

/* Whether the free memory of each card is known. Requests it if it is not. */
bool ll_residency_scene_know_room(const struct ll_residency_scene *scene, const struct ll_residency_books *books,
				  uint64_t now_ns);

#endif
