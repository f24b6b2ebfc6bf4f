/*
 * move.h - moves the memory of this process: shuts its calls, copies its memory off the card batch by batch, and copies
 * it back. Only the thread of the link calls it.
 *
 * The bytes of a batch are on the card, on a neighbour (neighbours.h), or in the host (host_pool.h). While one batch is
 * copied, the one before is freed, or the next one is allocated. When a batch is back on the card, the neighbour or the
 * host keeps its bytes until the move ends. So the batch can be freed again without a copy.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_MOVE_H
#define LOADLINE_SHIM_RESIDENCY_MOVE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/device_state.h"

struct ll_move;

/* Makes the move of a card. It exists until the process ends. NULL: no memory. */
struct ll_move *ll_move_new(struct ll_device_state *dev);

/* Tells the host pool how many bytes may be evicted. */
void ll_move_look_ahead(struct ll_move *move, uint64_t bytes);

/* Makes host memory ready for an eviction. 0: it is ready. -EAGAIN: not yet, call again. -ENOSPC: there is none, see
 * why. -EBUSY: the process cannot be evicted, see why. */
int ll_move_prepare(struct ll_move *move, char *why, size_t why_size);

/* Returns the host memory that is ready, in bytes. */
uint64_t ll_move_pool_bytes(const struct ll_move *move);

/*
 * Stops the program: no thread is inside the driver, none can enter, and the card has no work of the program. Returns
 * 0, or -EBUSY and why it cannot stop within wait_ns. Then the program goes on.
 */
int ll_move_suspend(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size);

/* Sets the destination of batches from now on. If the neighbour has no room for a batch, this batch and all later ones
 * go to the host. */
#define LL_MOVE_TO_HOST ((ll_cu_device)-1)
void ll_move_set_destination(struct ll_move *move, ll_cu_device neighbour);

/* Cuts the memory of a stopped program into batches. If it is cut already, nothing changes. -EAGAIN: the program has
 * more memory than was prepared; the next ll_move_prepare is for as much as it has now. (With a neighbour as
 * destination it may have more.) -EBUSY and why: that happened too often, or the process has no memory for the list. */
int ll_move_cut(struct ll_move *move, char *why, size_t why_size);

/* The program goes on. All batches must be on the card. */
void ll_move_resume(struct ll_move *move);

/* Releases what the move has used, memory on a neighbour too. This takes some ms, in which the program runs. The
 * destination of the next move is the host, unless another one is set. */
void ll_move_end(struct ll_move *move);

/* Whether the calls of the program are shut. */
bool ll_move_is_stopped(const struct ll_move *move);

/*
 * Copies one batch. 1: there are more batches.
 *   out: off the card. 0: all batches are off the card. -EIO: the driver cannot copy, and the batch is still on the
 * card. in: back to the card. 0: all batches are on the card. -ENOMEM: the card has no room for the next one. -EIO: the
 * card is lost to the process. on: from the neighbour to the host, while the process is away. 0: no batch is left on
 * the neighbour. -EIO: the driver cannot copy, and the batch is still there. out and on: -EAGAIN: the host memory is
 * not ready yet. -ENOSPC: the host has none.
 */
int ll_move_evict_batch(struct ll_move *move);
int ll_move_resume_batch(struct ll_move *move);
int ll_move_on(struct ll_move *move);

/* Waits for the copy in flight. Call it before the direction changes, or before the move pauses. -EIO as above. */
int ll_move_settle(struct ll_move *move);

/* Stops a resume: frees the batches that are back on the card. */
void ll_move_stay(struct ll_move *move);

/* Whether the card may have room for all memory that is away. */
bool ll_move_may_have_room(const struct ll_move *move);

/* bytes: the memory of the program that is moved. away_bytes: how much of it is not on the card. */
uint64_t ll_move_bytes(const struct ll_move *move);
uint64_t ll_move_away_bytes(const struct ll_move *move);

/* Memory on a neighbour, in bytes. Until the move ends it includes batches that are back on the card. */
uint64_t ll_move_neighbour_bytes(const struct ll_move *move);

/* Free memory of the card, in bytes; 0: the driver does not tell. */
uint64_t ll_move_free_bytes(const struct ll_device_state *dev);

/* Whether the card is lost to a program that is stopped. */
bool ll_move_is_card_lost(const struct ll_move *move);

/* The card is lost: memory in the host is not copied back. The driver reports the loss to the program. */
void ll_move_give_up(struct ll_move *move);

#endif
