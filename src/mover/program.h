/*
 * program.h - what the mover knows of one evictable program, and the program's part of the protocol. Private to
 * src/mover.
 */
#ifndef LOADLINE_MOVER_PROGRAM_H
#define LOADLINE_MOVER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "control/residency.h"
#include "mover/batches.h"

struct ll_mover_program {
	int fd;         /* does not wait; -1: the connection has ended (ll_mover_program_lose) */
	unsigned claim; /* the number of its claim on the card */
	bool is_known;  /* it has said HELLO, and is not disowned */
	bool is_disowned;
	bool is_deaf;     /* its socket is full: it is to be disowned */
	bool was_stopped; /* it was stopped by hand when it was asked to leave */
	bool is_late;     /* it was given up, because it did not become quiet in time */
	char tenant[64];
	struct ll_residency_program rule; /* what the decision needs */
	uint64_t pinned_bytes;            /* memory on the card that cannot be moved */
	uint64_t reserved_bytes;          /* in the pool, and not yet taken */
	struct ll_neighbour *neighbour;   /* of this move: batches go there; NULL: to the pool */
	uint64_t beside_bytes;            /* in blocks on neighbours. Room in the pool stays reserved for them */
	bool has_said_stuck;              /* that these cannot go on to the pool */
	struct ll_mover_batch *batches;
	uint32_t batch_count;
	uint64_t again_ns; /* it had no room: RETURN is to be said again then, if it may go on; 0: no */
	uint64_t begun_ns; /* of the move that goes on */
	uint64_t asked_ns; /* when it was asked to become quiet */
	uint64_t quiet_ns; /* how long it may take to do so; 0: 10 s */
	enum ll_residency_wish wish_before; /* what holds again if it cannot leave */
	uint64_t heard_ns;                  /* when it last did something, or was asked to return */
	uint64_t taken_ns;                  /* of its claim: not that of a later one of the same index; 0: not known */
	uint64_t granted_ns;                /* when it was granted rule.granted_bytes */
	char why[LL_MOVER_TEXT_SIZE];       /* it could not leave */
	struct ll_mover_program *next;
};

/* What a packet of a program has brought about. */
enum ll_mover_event {
	LL_MOVER_EVENT_NONE,
	LL_MOVER_EVENT_DONE,   /* the move that was asked for has ended */
	LL_MOVER_EVENT_STAYED, /* it was returning, and is away again */
	LL_MOVER_EVENT_FAILED, /* the program cannot leave: see why */
};

/* Takes over the connection. NULL: no memory. */
struct ll_mover_program *ll_mover_program_new(int fd);

/*
 * The mover cannot go on with the program. Waits for its copies, and shuts the connection down. The program's places in
 * the pool stay its own until it closes its end, because it takes its memory from there by itself.
 */
void ll_mover_program_disown(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns);

/*
 * The connection has ended. Waits for the program's copies. True: the program has nothing in the pool; free it. False:
 * the program, if it lives, reads its bytes out of the pool now, so its places stay its own. Free it when its process
 * has ended, or when it has connected again: it does so when it has all its memory.
 */
bool ll_mover_program_lose(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns);

/* Gives the program's room in the pool back. */
void ll_mover_program_free(struct ll_mover_program *program, struct ll_mover_pool *pool);

/*
 * Handles one packet. fd_count 0 though the packet has handles: the mover had no room for their descriptors. Returns 0,
 * or -EPROTO if the program does not keep to the protocol: it is to be disowned.
 */
int ll_mover_program_handle(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			    const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
			    enum ll_mover_event *ret_event, struct ll_err *err);

/* Looks after its transfers: tells the program of those that are done. *ret_running: some are under way. */
int ll_mover_program_poll(struct ll_mover_program *program, bool *ret_running, struct ll_err *err);

/* Steps of a decision. leave: the room in the pool is reserved first, also if the memory goes to a neighbour (NULL:
 * none), which does not wait until that room is pinned. Each returns the program's new state by
 * program->rule.state; a refused one sets `why`, and the program stays. */
void ll_mover_program_leave(struct ll_mover_program *program, struct ll_mover_pool *pool,
			    struct ll_neighbour *neighbour, uint64_t now_ns);
void ll_mover_program_stop(struct ll_mover_program *program, uint64_t now_ns);
void ll_mover_program_return(struct ll_mover_program *program, uint64_t now_ns);
void ll_mover_program_stay(struct ll_mover_program *program);
void ll_mover_program_answer_short(struct ll_mover_program *program, enum ll_mover_room room, uint64_t now_ns);

/* Moves what the program has on neighbours that are wanted on to the pool, some batches at a time. */
void ll_mover_program_move_on(struct ll_mover_program *program, const struct ll_transfer_engine *engine);

/* It shall not leave after all. Returns false if it is on its way out already: then it has to leave, and return. */
bool ll_mover_program_cancel(struct ll_mover_program *program, struct ll_mover_pool *pool);

/* After a while: room in the pool may be ready, the card may have room again, or the program does not answer.
 * may_go_on: see ll_residency_may_go_on. */
enum ll_mover_event ll_mover_program_tick(struct ll_mover_program *program, struct ll_mover_pool *pool, bool may_go_on,
					  uint64_t now_ns);

#endif
