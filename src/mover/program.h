/*
 * program.h - what the mover knows of one evictable program, and the program's part of the protocol. Private to
 * src/mover.
 */
#ifndef LOADLINE_MOVER_PROGRAM_H
#define LOADLINE_MOVER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "control/residency.h"
#include "mover/protocol.h"
#include "mover/transfer.h"

struct ll_mover_batch {
	uint64_t bytes;
	struct ll_transfer *transfer; /* NULL: none is under way */
	enum ll_transfer_direction direction;
	struct ll_mover_place places[LL_MOVER_PLACES];
	uint32_t place_count; /* 0: the bytes are not in the pool */
};

struct ll_mover_program {
	int fd;         /* -1: the program is gone, and the structure is to be freed */
	unsigned claim; /* its claim's index in the ledger */
	bool is_known;  /* it has said HELLO */
	char tenant[64];
	struct ll_residency_program rule; /* what the decision needs */
	uint64_t pinned_bytes;            /* memory on the card that cannot be moved */
	uint64_t reserved_bytes;          /* in the pool, and not yet taken */
	struct ll_mover_batch *batches;
	uint32_t batch_count;
	uint64_t again_ns;            /* it had no room: RETURN is to be said again then; 0: no */
	uint64_t begun_ns;            /* of the move that goes on */
	uint64_t grown_ns;            /* when an allocation was refused for want of room last */
	char why[LL_MOVER_TEXT_SIZE]; /* it could not leave */
	struct ll_mover_program *next;
};

/* What a packet of a program has brought about. */
enum ll_mover_event {
	LL_MOVER_EVENT_NONE,
	LL_MOVER_EVENT_DONE,   /* the move that was asked for has ended */
	LL_MOVER_EVENT_FAILED, /* the program cannot leave: see why */
};

/* Takes over the connection. NULL: no memory. */
struct ll_mover_program *ll_mover_program_new(int fd);

/* Gives the program's room in the pool back. */
void ll_mover_program_free(struct ll_mover_program *program, struct ll_mover_pool *pool);

/*
 * Handles one packet. Returns 0, or -EPROTO if the program does not keep to the protocol: it is to be dropped. Else the
 * driver's error: the mover cannot go on.
 */
int ll_mover_program_handle(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			    const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
			    enum ll_mover_event *ret_event, struct ll_err *err);

/* Looks after its transfers: tells the program of those that are done. *ret_running: some are under way. */
int ll_mover_program_poll(struct ll_mover_program *program, struct ll_mover_pool *pool, bool *ret_running,
			  struct ll_err *err);

/* Steps of a decision. leave: the room in the pool is reserved first. Each returns the program's new state by
 * program->rule.state; a refused one sets `why`, and the program stays. */
void ll_mover_program_leave(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns);
void ll_mover_program_stop(struct ll_mover_program *program, uint64_t now_ns);
void ll_mover_program_return(struct ll_mover_program *program, uint64_t now_ns);
void ll_mover_program_answer_short(struct ll_mover_program *program, bool has_room);

/* After a while: room in the pool may be ready, or the card may have room again. */
void ll_mover_program_tick(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns);

#endif
