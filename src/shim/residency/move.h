/*
 * move.h - the program's side of a move: its calls are shut, its memory leaves the card batch by batch, and returns.
 * For the link's thread alone.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_MOVE_H
#define LOADLINE_SHIM_RESIDENCY_MOVE_H

#include <stdbool.h>

#include "mover/protocol.h"
#include "shim/device_state.h"

struct ll_move;

/* NULL: no memory. The move is the caller's, for as long as the program lives. */
struct ll_move *ll_move_new(struct ll_device_state *dev);

/*
 * Stops the program: no thread is inside the driver, none can enter, and the card has no work of the program. Then cuts
 * the program's memory into batches, unless it only stops. pool_fd: the pool's file, -1 if it only stops; it stays the
 * caller's. Returns 0 and how much is to go; else -EBUSY and why it cannot stop within wait_ns: then the program goes
 * on.
 */
int ll_move_stop(struct ll_move *move, uint64_t wait_ns, int pool_fd, uint64_t *ret_bytes, uint32_t *ret_batches,
		 char why[LL_MOVER_TEXT_SIZE]);

/* The program goes on. All batches must be on the card. */
void ll_move_go_on(struct ll_move *move);

/* Whether its calls are shut. */
bool ll_move_is_stopped(const struct ll_move *move);

/*
 * Sends what can be sent now: batches that are on the card (OUT), or new memory for those that are in the pool (IN).
 * Returns 0; or -errno: the socket is broken. Also -EMFILE of out: the program has no free descriptors for the handles.
 * Of in: -ENOMEM: the card has no room for the next batch; -EIO: the card is lost. A batch that cannot be sent in is
 * filled from the pool's file by the program itself.
 */
int ll_move_send_out(struct ll_move *move, int fd);
int ll_move_send_in(struct ll_move *move, int fd);

/* The mover's answers. 0, or -EPROTO. Of taken: fd is of the batch's memory on a neighbour card, -1: it has none, and
 * stays the caller's; -EIO: the driver does not take it. Of filled: if the mover has not filled the batch, this does;
 * -EIO: it cannot. */
int ll_move_note_taken(struct ll_move *move, const struct ll_mover_message *message, int fd);
int ll_move_note_moved(struct ll_move *move, const struct ll_mover_message *message);
int ll_move_note_filled(struct ll_move *move, uint32_t number, bool is_filled);

/*
 * The program shall not return yet. Frees what has come back. A batch that is being filled is to be freed when the
 * mover has answered, by ll_move_drop instead of ll_move_note_filled: 0, or -EPROTO.
 */
void ll_move_stay(struct ll_move *move);
int ll_move_drop(struct ll_move *move, uint32_t number);

/* Whether no batch is under way. */
bool ll_move_is_at_rest(const struct ll_move *move);

bool ll_move_is_all_out(const struct ll_move *move);
bool ll_move_is_all_in(const struct ll_move *move);

/* What of the program's memory is not on the card, in bytes. */
uint64_t ll_move_away_bytes(const struct ll_move *move);

/*
 * The mover is gone: brings back what is in the pool, by the program's own mapping of the pool's file, and what is on a
 * neighbour card. Waits for room
 * on the card as long as it takes. Then all batches are on the card, or the card is lost.
 */
void ll_move_bring_back_alone(struct ll_move *move);

/* The card is lost: what is in the pool is not brought back. The program will hear of it from the driver. */
void ll_move_give_up(struct ll_move *move);

/* In a forked child: lets go of the parent's handles. */
void ll_move_close_in_child(struct ll_move *move);

#endif
