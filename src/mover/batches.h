/*
 * batches.h - the batches of one program's move, as the mover knows them: where their bytes are. Private to src/mover.
 */
#ifndef LOADLINE_MOVER_BATCHES_H
#define LOADLINE_MOVER_BATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "mover/neighbours.h"
#include "mover/protocol.h"
#include "mover/transfer.h"

struct ll_err;

struct ll_mover_batch {
	uint64_t bytes;
	struct ll_transfer *transfer;         /* NULL: none is under way */
	enum ll_transfer_direction direction; /* of the last one: IN from when the program has made memory again */
	struct ll_mover_place places[LL_MOVER_PLACES];
	uint32_t place_count;             /* 0: it has none in the pool */
	struct ll_neighbour_block *block; /* its bytes are there; NULL: they are in the pool, if they are stored */
	bool is_moving_on;                /* from the block to the places: the program knows only the block yet */
	bool is_told; /* TAKEN was said: the program may have no other copy of the bytes than the stored one */
};

static inline bool ll_mover_batch_is_stored(const struct ll_mover_batch *batch)
{
	return batch->place_count || batch->block;
}

/* Gives their places back, and frees their blocks. Waits for copies. */
void ll_mover_batches_free(struct ll_mover_batch *batches, uint32_t count, struct ll_mover_pool *pool);

/* Waits for copies, and tells nobody. */
void ll_mover_batches_stop(struct ll_mover_batch *batches, uint32_t count);

/* Whether any is being copied off the card or back; whether TAKEN was said of any. */
bool ll_mover_batches_are_copied(const struct ll_mover_batch *batches, uint32_t count);
bool ll_mover_batches_are_told(const struct ll_mover_batch *batches, uint32_t count);

/* Whether TAKEN was said of all, and there are some: the bytes of the whole program are stored. */
bool ll_mover_batches_are_all_told(const struct ll_mover_batch *batches, uint32_t count);

/* The program has let go of all memory that it had made again. */
void ll_mover_batches_note_away(struct ll_mover_batch *batches, uint32_t count);

/* Bytes for which the program has no memory on the card; for which it has memory again. Both are stored. */
uint64_t ll_mover_batches_left(const struct ll_mover_batch *batches, uint32_t count);
uint64_t ll_mover_batches_came(const struct ll_mover_batch *batches, uint32_t count);

/* The sum of the sizes of OUT or IN. 0: one of them is 0, or they are more than most_bytes. */
uint64_t ll_mover_batch_bytes(const struct ll_mover_message *message, uint64_t most_bytes);

/* Begins to move what is in the block on to the places, which the caller has taken. Errors as ll_transfer_new; the
 * block stays as it was. */
int ll_mover_batch_move_on(struct ll_mover_batch *batch, const struct ll_transfer_engine *engine, struct ll_err *err);

/* Gives up the batch's move from the block to the pool, if there is one: waits for the copy. Returns the bytes of its
 * places, which are given back. */
uint64_t ll_mover_batch_stay_on(struct ll_mover_batch *batch, struct ll_mover_pool *pool);

/* Begins to copy the handles of OUT or IN. fd_count 0: the mover had no room for their descriptors. Errors as
 * ll_transfer_new; -EMFILE. */
int ll_mover_batch_begin(struct ll_mover_batch *batch, enum ll_transfer_direction direction,
			 const struct ll_transfer_engine *engine, const struct ll_mover_message *message,
			 const int *fds, size_t fd_count, struct ll_err *err);

#endif
