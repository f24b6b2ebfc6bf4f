/*
 * move_state.h - the inside of a move (move.h). move.c prepares it and cuts it into batches, move_copies.c copies them.
 *
 * Private to these two.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_MOVE_STATE_H
#define LOADLINE_SHIM_RESIDENCY_MOVE_STATE_H

#include "shim/memory/chunks.h"
#include "shim/residency/host_pool.h"
#include "shim/residency/move.h"
#include "shim/residency/neighbours.h"
#include "shim/residency/quiet.h"

enum { LL_MOVE_STREAMS = 2 };

/* Memory on a neighbour. */
struct ll_move_block {
	struct ll_neighbour_block memory;
	uint32_t users; /* number of batches that use it */
};

struct ll_move_batch {
	uint32_t first, count; /* range of `chunks` */
	uint64_t bytes;
	uint64_t offset; /* in the host's pool */
	bool is_away;    /* the batch has no memory on the card */
	bool is_stored;  /* its bytes are in the block, or, without a block, in the host */
	struct ll_move_block *block;
	uint64_t block_offset;
};

/* The direction of a copy. */
enum ll_transfer {
	LL_TRANSFER_OUT,
	LL_TRANSFER_IN,
	LL_TRANSFER_ON, /* from a neighbour to the host */
};

struct ll_move {
	struct ll_device_state *dev;
	struct ll_host_pool *pool; /* NULL: not made yet */
	bool is_stopped;
	uint64_t grown_bytes; /* memory of the program when it was stopped, if less was prepared */
	unsigned grown_count; /* how often that happened in one move */
	struct ll_quiet quiet;
	struct ll_chunk *chunks;
	uint32_t chunk_count;
	struct ll_move_batch *batches;
	struct ll_move_block *blocks; /* one for each batch; a block has the index of its first batch */
	uint32_t batch_count;
	uint64_t bytes;
	ll_cu_device neighbour; /* destination of batches, or LL_MOVE_TO_HOST */
	/* Copies alternate between two streams. A batch uses the stream of its index. */
	struct ll_cu_context *context;
	struct ll_cu_stream *streams[LL_MOVE_STREAMS];
	struct ll_move_batch *in_flight; /* NULL: none */
	enum ll_transfer transfer;       /* of in_flight */
};

#endif
