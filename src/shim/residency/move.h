/*
 * move.h - a move of this process's memory: its calls are shut, its memory leaves the card batch by batch, and returns.
 * For the link's thread alone.
 *
 * A batch's bytes are on the card, on a neighbour (neighbours.h), or in the host (host_pool.h). While one batch is
 * copied, the one before is freed, or the next one is made. The neighbour or the host keeps the bytes of a batch that
 * has come back until the move ends: so the batch can be freed again at once.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_MOVE_H
#define LOADLINE_SHIM_RESIDENCY_MOVE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/device_state.h"

struct ll_move;

/* NULL: no memory. The move is the caller's, for as long as the program lives. */
struct ll_move *ll_move_new(struct ll_device_state *dev);

/* Tells the pool of the host what may have to leave. */
void ll_move_look_ahead(struct ll_move *move, uint64_t bytes);

/* Room for all that is to leave. 0: it is there. -EAGAIN: not yet, ask again. -ENOSPC: there is none, see why. -EBUSY:
 * the process cannot leave, see why. */
int ll_move_prepare(struct ll_move *move, char *why, size_t why_size);

/* Host memory that is ready. */
uint64_t ll_move_pool_bytes(const struct ll_move *move);

/*
 * Stops the program: no thread is inside the driver, none can enter, and the card has no work of the program. Returns
 * 0; or -EBUSY and why it cannot stop within wait_ns: then the program goes on.
 */
int ll_move_stop(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size);

/* Where batches go that leave from now on: to a neighbour, and if that has no room for one, it and all later ones to
 * the host. */
#define LL_MOVE_TO_HOST ((ll_cu_device)-1)
void ll_move_set_destination(struct ll_move *move, ll_cu_device neighbour);

/* Of a program that is stopped: cuts what is to leave into batches. -EAGAIN: it has grown beyond what was prepared;
 * then the next preparation is for as much as it had now. What goes to a neighbour may grow. One that was cut already
 * stays so. -EBUSY and why: it grew so
 * too often, or has no memory for that. */
int ll_move_cut(struct ll_move *move, char *why, size_t why_size);

/* The program goes on. All batches must be on the card. */
void ll_move_go_on(struct ll_move *move);

/* Lets go of what the move has needed, memory on a neighbour too: it takes some ms, in which the program runs. The next
 * move goes to the host, unless it is told another destination. */
void ll_move_end(struct ll_move *move);

/* Whether its calls are shut. */
bool ll_move_is_stopped(const struct ll_move *move);

/*
 * Copies one batch. out: 0: all have left; 1: go on; -EIO: the driver cannot copy, and the batch is on the card. in: 0:
 * all are back; 1: go on; -ENOMEM: the card has no room for the next one; -EIO: the card is lost to the process.
 * on: from the neighbour to the host, of a process that is away: 0: nothing is left there; 1: go on; -EIO: the driver
 * cannot copy, and the batch is where it was. Out and on: -EAGAIN: the host's memory is not ready yet; -ENOSPC: the
 * host has none.
 */
int ll_move_out(struct ll_move *move);
int ll_move_in(struct ll_move *move);
int ll_move_on(struct ll_move *move);

/* Before the direction changes, or the move waits: what is under way comes to its end. -EIO as above. */
int ll_move_settle(struct ll_move *move);

/* The program shall not return yet. Frees what has come back. */
void ll_move_stay(struct ll_move *move);

/* Whether the card may have room for all that is away. */
bool ll_move_may_have_room(const struct ll_move *move);

/* What of the program's memory is to be moved, and what is not on the card, in bytes. */
uint64_t ll_move_bytes(const struct ll_move *move);
uint64_t ll_move_away_bytes(const struct ll_move *move);

/* What has memory on a neighbour, in bytes: also of batches that are back, until the move ends. */
uint64_t ll_move_neighbour_bytes(const struct ll_move *move);

/* Memory of the card that nobody has; 0: it cannot be told. */
uint64_t ll_move_free_bytes(const struct ll_device_state *dev);

/* Whether the card is lost to a program that is stopped. */
bool ll_move_is_card_lost(const struct ll_move *move);

/* The card is lost: what is in the host is not brought back. The program will hear of it from the driver. */
void ll_move_give_up(struct ll_move *move);

#endif
