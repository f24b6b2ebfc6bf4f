/*
 * move_state.h - what a move is (move.h): move.c prepares it and cuts it into batches, move_copies.c copies them.
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

/* On a neighbour. */
struct ll_move_block {
	struct ll_neighbour_block memory;
	uint32_t users; /* batches that have their part of it */
};

struct ll_move_batch {
	uint32_t first, count; /* of the chunks */
	uint64_t bytes;
	uint64_t offset; /* in the host's pool */
	bool is_away;    /* it has no memory on the card */
	bool is_stored;  /* its bytes are in the block, or in the host if there is none */
	struct ll_move_block *block;
	uint64_t block_offset;
};

/* What a copy is for. */
enum ll_transfer {
	LL_TRANSFER_OUT,
	LL_TRANSFER_IN,
	LL_TRANSFER_ON, /* from a neighbour to the host */
};

struct ll_move {
	struct ll_device_state *dev;
	struct ll_host_pool *pool; /* NULL: nothing could leave yet */
	bool is_stopped;
	uint64_t grown_bytes; /* it had so much when it was stopped, and less was prepared */
	unsigned grown_count; /* so often, for one move */
	struct ll_quiet quiet;
	struct ll_chunk *chunks;
	uint32_t chunk_count;
	struct ll_move_batch *batches;
	struct ll_move_block *blocks; /* as many as batches: the one of the first batch that is in it */
	uint32_t batch_count;
	uint64_t bytes;
	ll_cu_device neighbour; /* to which batches leave; LL_MOVE_TO_HOST */
	/* Copies alternate between two streams. A batch is under way in the one of its number. */
	struct ll_cu_context *context;
	struct ll_cu_stream *streams[LL_MOVE_STREAMS];
	struct ll_move_batch *in_flight; /* NULL: none */
	enum ll_transfer transfer;       /* of that */
};

#endif
