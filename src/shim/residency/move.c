#include "shim/residency/move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/memory/movable_pool.h"
#include "shim/memory/pieces.h"
#include "shim/residency/host_pool.h"
#include "shim/residency/neighbours.h"
#include "shim/residency/obstacles.h"
#include "shim/residency/quiet.h"
#include "shim/time/driver_calls.h"

/* A batch ends with the piece that reaches so many bytes. 512 MiB take 10 ms on the bus of an H200, and a piece's calls
 * take 0.1 ms (doc/facts.md). The first batches of a move are an eighth, a quarter, and half of it, so what waits for
 * room begins sooner. */
#define BATCH_BYTES UINT64_C(0x20000000)
enum { SMALL_BATCHES = 3, BATCH_PIECES = 64, STREAMS = 2 };

/* A program that makes its blocks anew has less memory at one moment than at another. */
enum { GROWN_MOST = 8 };

struct batch {
	uint32_t first, count; /* of the pieces */
	uint64_t bytes;
	uint64_t offset; /* in the host's pool */
	bool is_away;    /* it has no memory on the card */
	bool is_stored;  /* its bytes are in the block, or in the host if there is none */
	struct ll_neighbour_block block;
};

/* What a copy is for. */
enum transfer { OUT, IN, ON /* from a neighbour to the host */ };

struct ll_move {
	struct ll_device_state *dev;
	struct ll_host_pool *pool; /* NULL: nothing could leave yet */
	bool is_stopped;
	uint64_t grown_bytes; /* it had so much when it was stopped, and less was prepared */
	unsigned grown_count; /* so often, for one move */
	struct ll_quiet quiet;
	struct ll_piece *pieces;
	uint32_t piece_count;
	struct batch *batches;
	uint32_t batch_count;
	uint64_t bytes;
	ll_cu_device neighbour; /* to which batches leave; LL_MOVE_TO_HOST */
	/* Copies alternate between two streams. A batch is under way in the one of its number. */
	struct ll_cu_context *context;
	struct ll_cu_stream *streams[STREAMS];
	struct batch *under_way; /* NULL: none */
	enum transfer transfer;  /* of that */
};

struct ll_move *ll_move_new(struct ll_device_state *dev)
{
	struct ll_move *move = calloc(1, sizeof *move);
	if (move)
		*move = (struct ll_move){.dev = dev, .neighbour = LL_MOVE_TO_HOST};
	return move;
}

bool ll_move_is_stopped(const struct ll_move *move)
{
	return move->is_stopped;
}

uint64_t ll_move_bytes(const struct ll_move *move)
{
	return move->bytes;
}

/* ---- room in the host ---- */

static struct ll_host_pool *pool_of(struct ll_move *move)
{
	size_t total_bytes;
	if (!move->pool && ll_real()->cuDeviceTotalMem_v2(&total_bytes, move->dev->device) == LL_CUDA_SUCCESS)
		move->pool = ll_host_pool_new(move->dev, total_bytes);
	return move->pool;
}

void ll_move_look_ahead(struct ll_move *move, uint64_t bytes)
{
	if (bytes && pool_of(move))
		ll_host_pool_want(move->pool, bytes);
	else if (move->pool)
		ll_host_pool_want(move->pool, 0);
}

uint64_t ll_move_pool_bytes(const struct ll_move *move)
{
	return move->pool ? ll_host_pool_ready(move->pool) : 0;
}

int ll_move_prepare(struct ll_move *move, char *why, size_t why_size)
{
	if (ll_obstacles_find(move->dev, why, why_size))
		return -EBUSY;
	uint64_t bytes = ll_pieces_bytes(move->dev);
	if (!bytes)
		return 0;
	if (!pool_of(move)) {
		snprintf(why, why_size, "the program may map no memory to take it into");
		return -ENOSPC;
	}
	return ll_host_pool_need(move->pool, bytes > move->grown_bytes ? bytes : move->grown_bytes, why, why_size);
}

void ll_move_set_destination(struct ll_move *move, ll_cu_device neighbour)
{
	move->neighbour = neighbour;
}

/* ---- pieces and batches ---- */

static int list_pieces(struct ll_move *move)
{
	uint32_t count = 0, capacity = 0;
	uint64_t bytes = 0;
	struct ll_piece piece = {0};
	struct ll_extent at = {.kind = LL_PIECES_FIRST};
	while (ll_pieces_next(move->dev, &at, &piece)) {
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			struct ll_piece *pieces = realloc(move->pieces, capacity * sizeof *pieces);
			if (!pieces)
				return -ENOMEM;
			move->pieces = pieces;
		}
		move->pieces[count++] = piece;
		bytes += piece.bytes;
	}
	move->piece_count = count;
	move->bytes = bytes;
	return 0;
}

/* The first ones are small: so what waits for the first room begins soon. */
static uint64_t bytes_of_batch(uint32_t number)
{
	int64_t smaller = (int64_t)SMALL_BATCHES - number;
	return smaller > 0 ? BATCH_BYTES >> smaller : BATCH_BYTES;
}

static int cut_batches(struct ll_move *move)
{
	uint64_t offset = 0;
	move->batches = calloc(move->piece_count ? move->piece_count : 1, sizeof *move->batches);
	if (!move->batches)
		return -ENOMEM;
	for (uint32_t i = 0; i < move->piece_count;) {
		uint64_t most_bytes = bytes_of_batch(move->batch_count);
		struct batch *batch = &move->batches[move->batch_count++];
		batch->first = i;
		batch->offset = offset;
		while (i < move->piece_count && batch->count < BATCH_PIECES && batch->bytes < most_bytes) {
			batch->bytes += move->pieces[i++].bytes;
			batch->count++;
		}
		offset += batch->bytes;
	}
	return 0;
}

/* Of a context of the card; it need not be the program's current one. */
static ll_cu_result open_streams(struct ll_move *move)
{
	struct ll_cu_context *popped;
	ll_cu_result status = LL_CUDA_ERROR_INVALID_CONTEXT;
	move->context = ll_host_pool_context(move->dev);
	if (move->context)
		status = ll_real()->cuCtxPushCurrent_v2(move->context);
	if (status != LL_CUDA_SUCCESS)
		return status;
	for (int i = 0; i < STREAMS && status == LL_CUDA_SUCCESS; i++)
		status = ll_real()->cuStreamCreate(&move->streams[i], LL_CU_STREAM_NON_BLOCKING);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status;
}

static void forget_batches(struct ll_move *move)
{
	for (int i = 0; i < STREAMS; i++) {
		if (move->streams[i])
			ll_real()->cuStreamDestroy_v2(move->streams[i]);
		move->streams[i] = NULL;
	}
	for (uint32_t i = 0; i < move->batch_count; i++)
		ll_neighbour_block_free(&move->batches[i].block);
	free(move->pieces);
	free(move->batches);
	move->pieces = NULL;
	move->batches = NULL;
	move->piece_count = move->batch_count = 0;
	move->bytes = 0;
}

int ll_move_cut(struct ll_move *move, char *why, size_t why_size)
{
	ll_movable_pools_freeze(move->dev); /* what is freed need not move */
	int rc = list_pieces(move);
	if (!rc)
		rc = cut_batches(move);
	uint64_t bytes = move->bytes;
	if (!rc && move->neighbour == LL_MOVE_TO_HOST && bytes > ll_move_pool_bytes(move))
		rc = ++move->grown_count < GROWN_MOST ? -EAGAIN : -ENOSPC;
	if (!rc && move->batch_count && open_streams(move) != LL_CUDA_SUCCESS)
		rc = -EIO;
	if (rc == -ENOSPC)
		snprintf(why, why_size, "it grows faster than memory of the host can be made ready");
	else if (rc)
		snprintf(why, why_size,
			 rc == -EIO ? "the driver gives it no streams for the copies"
				    : "it has no memory for a list of what is to leave");
	if (rc)
		forget_batches(move);
	move->grown_bytes = rc == -EAGAIN ? bytes : 0;
	if (rc != -EAGAIN)
		move->grown_count = 0;
	return rc == -EAGAIN ? rc : rc ? -EBUSY : 0;
}

int ll_move_stop(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size)
{
	if (!move->is_stopped)
		move->is_stopped = ll_quiet_reach(&move->quiet, move->dev, ll_now_ns() + wait_ns, why, why_size) == 0;
	return move->is_stopped ? 0 : -EBUSY;
}

void ll_move_go_on(struct ll_move *move)
{
	bool was_stopped = move->is_stopped;
	ll_movable_pools_thaw(move->dev);
	move->is_stopped = false;
	if (was_stopped)
		ll_driver_calls_open();
}

void ll_move_end(struct ll_move *move)
{
	forget_batches(move);
	move->neighbour = LL_MOVE_TO_HOST;
}

/* ---- copies ---- */

static struct ll_cu_stream *stream_of(const struct ll_move *move, const struct batch *batch)
{
	return move->streams[(batch - move->batches) % STREAMS];
}

/* Bytes of the card, cut where registered steps of the host end. */
static ll_cu_result copy_host(const struct ll_move *move, ll_cu_deviceptr at, uint64_t bytes, uint64_t offset,
			      struct ll_cu_stream *stream, bool is_out)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	while (bytes && status == LL_CUDA_SUCCESS) {
		uint64_t to_end = LL_POOL_STEP_BYTES - offset % LL_POOL_STEP_BYTES;
		uint64_t part = bytes < to_end ? bytes : to_end;
		char *host = ll_host_pool_base(move->pool) + offset;
		status = is_out ? ll_real()->cuMemcpyDtoHAsync_v2(host, at, part, stream)
				: ll_real()->cuMemcpyHtoDAsync_v2(at, host, part, stream);
		at += part;
		offset += part;
		bytes -= part;
	}
	return status;
}

/* offset: in the batch. */
static ll_cu_result copy_piece(const struct ll_move *move, const struct batch *batch, ll_cu_deviceptr at,
			       uint64_t bytes, uint64_t offset, bool is_out)
{
	struct ll_cu_stream *stream = stream_of(move, batch);
	ll_cu_deviceptr aside = batch->block.address + offset;
	if (!batch->block.address)
		return copy_host(move, at, bytes, batch->offset + offset, stream, is_out);
	return is_out ? ll_real()->cuMemcpyDtoDAsync_v2(aside, at, bytes, stream)
		      : ll_real()->cuMemcpyDtoDAsync_v2(at, aside, bytes, stream);
}

/* What the program has made itself may be mapped nowhere, or read-only. */
static ll_cu_result copy_aside(const struct ll_move *move, const struct batch *batch, const struct ll_piece *piece,
			       uint64_t offset, bool is_out)
{
	ll_cu_deviceptr address;
	ll_cu_result status = ll_piece_map_aside(move->dev, piece->handle, piece->bytes, &address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = copy_piece(move, batch, address, piece->bytes, offset, is_out);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuStreamSynchronize(stream_of(move, batch));
	ll_piece_unmap_aside(address, piece->bytes);
	return status;
}

/* The context is current. */
static ll_cu_result begin_copies(const struct ll_move *move, const struct batch *batch, enum transfer transfer)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	uint64_t offset = 0;
	if (transfer == ON)
		return copy_host(move, batch->block.address, batch->bytes, batch->offset, stream_of(move, batch), true);
	for (uint32_t i = 0; i < batch->count && status == LL_CUDA_SUCCESS; i++) {
		const struct ll_piece *piece = &move->pieces[batch->first + i];
		status = piece->kind == LL_EXTENT_PHYSICAL
			     ? copy_aside(move, batch, piece, offset, transfer == OUT)
			     : copy_piece(move, batch, piece->address, piece->bytes, offset, transfer == OUT);
		offset += piece->bytes;
	}
	return status;
}

static int begin_batch(struct ll_move *move, const struct batch *batch, enum transfer transfer)
{
	struct ll_cu_context *popped;
	ll_cu_result status = ll_real()->cuCtxPushCurrent_v2(move->context);
	if (status != LL_CUDA_SUCCESS)
		return -EIO;
	status = begin_copies(move, batch, transfer);
	if (status != LL_CUDA_SUCCESS)
		ll_real()->cuStreamSynchronize(stream_of(move, batch));
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status == LL_CUDA_SUCCESS ? 0 : -EIO;
}

static void free_batch(struct ll_move *move, const struct batch *batch, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ll_piece *piece = &move->pieces[batch->first + i];
		ll_piece_unmake(piece);
		piece->handle = 0;
	}
}

static void put_away(struct ll_move *move, struct batch *batch)
{
	free_batch(move, batch, batch->count);
	batch->is_away = true;
}

static void end_copies(struct ll_move *move, struct batch *batch)
{
	switch (move->transfer) {
	case OUT:
		batch->is_stored = true;
		put_away(move, batch);
		break;
	case IN:
		for (uint32_t i = 0; i < batch->count; i++)
			ll_piece_note(&move->pieces[batch->first + i]);
		break;
	case ON:
		ll_neighbour_block_free(&batch->block);
		break;
	}
}

/* The context need not be current. */
int ll_move_settle(struct ll_move *move)
{
	struct ll_cu_context *popped;
	struct batch *batch = move->under_way;
	if (!batch)
		return 0;
	move->under_way = NULL;
	ll_cu_result status = ll_real()->cuCtxPushCurrent_v2(move->context);
	if (status == LL_CUDA_SUCCESS) {
		status = ll_real()->cuStreamSynchronize(stream_of(move, batch));
		ll_real()->cuCtxPopCurrent_v2(&popped);
	}
	if (status != LL_CUDA_SUCCESS)
		return -EIO;
	end_copies(move, batch);
	return 0;
}

/* ---- out ---- */

static struct batch *next_batch(const struct ll_move *move, bool is_away)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].is_away == is_away && &move->batches[i] != move->under_way)
			return &move->batches[i];
	}
	return NULL;
}

static int find_host_room(struct ll_move *move, const struct batch *batch)
{
	char why[1];
	if (batch->offset + batch->bytes <= ll_move_pool_bytes(move))
		return 0;
	return ll_host_pool_need(move->pool, move->bytes, why, sizeof why) == -ENOSPC ? -ENOSPC : -EAGAIN;
}

/* On the neighbour, or if that has none, in the host: then what leaves later goes there too. */
static int find_room(struct ll_move *move, struct batch *batch)
{
	if (move->neighbour != LL_MOVE_TO_HOST) {
		if (ll_neighbour_block_make(move->dev, move->neighbour, batch->bytes, &batch->block) == LL_CUDA_SUCCESS)
			return 0;
		move->neighbour = LL_MOVE_TO_HOST;
	}
	return find_host_room(move, batch);
}

int ll_move_out(struct ll_move *move)
{
	struct batch *next = next_batch(move, false);
	int rc = next ? find_room(move, next) : 0;
	if (!rc && next)
		rc = begin_batch(move, next, OUT);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return rc ? rc : settled;
	move->under_way = next;
	move->transfer = OUT;
	return next ? 1 : 0;
}

/* ---- on to the host ---- */

static struct batch *next_on_neighbour(const struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct batch *batch = &move->batches[i];
		if (batch->block.address && batch->is_stored && batch != move->under_way)
			return batch;
	}
	return NULL;
}

int ll_move_on(struct ll_move *move)
{
	struct batch *next = next_on_neighbour(move);
	int rc = next ? find_host_room(move, next) : 0;
	if (!rc && next)
		rc = begin_batch(move, next, ON);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return rc ? rc : settled;
	move->under_way = next;
	move->transfer = ON;
	return next ? 1 : 0;
}

/* ---- in ---- */

/* The card has no work of the program, so this waits for nothing. */
bool ll_move_is_card_lost(const struct ll_move *move)
{
	struct ll_cu_context *popped;
	if (!move->context)
		return false;
	if (ll_real()->cuCtxPushCurrent_v2(move->context) != LL_CUDA_SUCCESS)
		return false;
	ll_cu_result status = ll_real()->cuCtxSynchronize();
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status != LL_CUDA_SUCCESS;
}

/* New memory at the old addresses. Nothing is made if it fails. -ENOMEM: the card has none; -EIO: the program's
 * contexts are lost. */
static int make_batch(struct ll_move *move, struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct ll_piece *piece = &move->pieces[batch->first + i];
		ll_cu_result status = ll_piece_make(move->dev, piece);
		if (status != LL_CUDA_SUCCESS) {
			free_batch(move, batch, i);
			return status != LL_CUDA_ERROR_OUT_OF_MEMORY && ll_move_is_card_lost(move) ? -EIO : -ENOMEM;
		}
	}
	batch->is_away = false;
	return 0;
}

int ll_move_in(struct ll_move *move)
{
	struct batch *next = next_batch(move, true);
	int rc = next ? make_batch(move, next) : 0;
	if (!rc && next)
		rc = begin_batch(move, next, IN);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return settled ? settled : rc;
	move->under_way = next;
	move->transfer = IN;
	return next ? 1 : 0;
}

void ll_move_stay(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].is_stored && !move->batches[i].is_away)
			put_away(move, &move->batches[i]);
	}
}

/* ---- what is where ---- */

uint64_t ll_move_away_bytes(const struct ll_move *move)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < move->batch_count; i++)
		bytes += move->batches[i].is_away ? move->batches[i].bytes : 0;
	return bytes;
}

uint64_t ll_move_neighbour_bytes(const struct ll_move *move)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < move->batch_count; i++)
		bytes += move->batches[i].block.bytes;
	return bytes;
}

uint64_t ll_move_free_bytes(const struct ll_device_state *dev)
{
	struct ll_cu_context *popped, *context = ll_host_pool_context(dev);
	size_t free_bytes = 0, total_bytes;
	if (!context || ll_real()->cuCtxPushCurrent_v2(context) != LL_CUDA_SUCCESS)
		return 0;
	if (ll_real()->cuMemGetInfo_v2(&free_bytes, &total_bytes) != LL_CUDA_SUCCESS)
		free_bytes = 0;
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return free_bytes;
}

bool ll_move_may_have_room(const struct ll_move *move)
{
	return ll_move_free_bytes(move->dev) >= ll_move_away_bytes(move);
}

void ll_move_give_up(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		const struct batch *batch = &move->batches[i];
		for (uint32_t j = batch->first; batch->is_away && j < batch->first + batch->count; j++)
			ll_piece_note(&move->pieces[j]); /* it has no handle now */
	}
}
