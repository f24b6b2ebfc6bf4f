#include "shim/residency/move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/memory/pools.h"
#include "shim/residency/residency.h"
#include "shim/slices/card_time.h"
#include "shim/time/driver_calls.h"

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
	bool is_stopped;           /* its calls are shut */
	bool is_quiet;             /* is_stopped: and the card has no work of it */
	bool is_off;               /* is_stopped: its contexts are off the card, maybe in the midst of their work */
	uint64_t grown_bytes;      /* memory of the program when it was stopped, if less was prepared */
	unsigned grown_count;      /* how often that happened in one move */
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

/* A batch ends with the chunk that reaches so many bytes. 512 MiB take 10 ms on the bus of an H200, and a chunk's calls
 * take 0.1 ms (doc/facts.md). The first batches of a move are an eighth, a quarter, and half of it, so a program
 * that waits for room begins sooner. */
#define BATCH_BYTES UINT64_C(0x20000000)
enum { SMALL_BATCHES = 3, BATCH_CHUNKS = 64 };

/* A program that makes its blocks anew has less memory at one moment than at another. */
enum { GROWN_MOST = 8 };

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
	uint64_t bytes = ll_chunks_bytes(move->dev);
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

/* ---- chunks and batches ---- */

static int list_chunks(struct ll_move *move)
{
	uint32_t count = 0, capacity = 0;
	uint64_t bytes = 0;
	struct ll_chunk chunk = {0};
	struct ll_extent at = {.kind = LL_CHUNKS_FIRST};
	while (ll_chunks_next(move->dev, &at, &chunk)) {
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			struct ll_chunk *chunks = realloc(move->chunks, capacity * sizeof *chunks);
			if (!chunks)
				return -ENOMEM;
			move->chunks = chunks;
		}
		move->chunks[count++] = chunk;
		bytes += chunk.bytes;
	}
	move->chunk_count = count;
	move->bytes = bytes;
	return 0;
}

static int cut_batches(struct ll_move *move)
{
	uint64_t offset = 0;
	size_t most = move->chunk_count ? move->chunk_count : 1;
	move->batches = calloc(most, sizeof *move->batches);
	move->blocks = calloc(most, sizeof *move->blocks);
	if (!move->batches || !move->blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < move->chunk_count;) {
		/* The first batches are small, so a program that waits for room begins soon. */
		int64_t smaller = (int64_t)SMALL_BATCHES - move->batch_count;
		uint64_t most_bytes = smaller > 0 ? BATCH_BYTES >> smaller : BATCH_BYTES;
		struct ll_move_batch *batch = &move->batches[move->batch_count++];
		batch->first = i;
		batch->offset = offset;
		while (i < move->chunk_count && batch->count < BATCH_CHUNKS && batch->bytes < most_bytes) {
			batch->bytes += move->chunks[i++].bytes;
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
	for (int i = 0; i < LL_MOVE_STREAMS && status == LL_CUDA_SUCCESS; i++)
		status = ll_real()->cuStreamCreate(&move->streams[i], LL_CU_STREAM_NON_BLOCKING);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status;
}

static void forget_batches(struct ll_move *move)
{
	for (int i = 0; i < LL_MOVE_STREAMS; i++) {
		if (move->streams[i])
			ll_real()->cuStreamDestroy_v2(move->streams[i]);
		move->streams[i] = NULL;
	}
	for (uint32_t i = 0; i < move->batch_count; i++)
		ll_neighbour_block_free(&move->blocks[i].memory);
	free(move->chunks);
	free(move->batches);
	free(move->blocks);
	move->chunks = NULL;
	move->batches = NULL;
	move->blocks = NULL;
	move->chunk_count = move->batch_count = 0;
	move->bytes = 0;
}

int ll_move_cut(struct ll_move *move, char *why, size_t why_size)
{
	if (move->batches) /* it has waited for others since, and could not change */
		return 0;
	ll_movable_pools_freeze(move->dev); /* what is freed need not move */
	int rc = list_chunks(move);
	if (!rc)
		rc = cut_batches(move);
	uint64_t bytes = move->bytes;
	if (!rc && move->neighbour == LL_MOVE_TO_HOST && bytes > ll_move_pool_bytes(move))
		rc = ++move->grown_count < GROWN_MOST ? -EAGAIN : -ENOSPC;
	if (!rc && move->batch_count && open_streams(move) != LL_CUDA_SUCCESS)
		rc = -EIO;
	if (rc)
		snprintf(why, why_size,
			 rc == -ENOSPC ? "it grows faster than memory of the host can be made ready"
			 : rc == -EIO  ? "the driver gives it no streams for the copies"
				       : "it has no memory for a list of what is to leave");
	if (rc)
		forget_batches(move);
	move->grown_bytes = rc == -EAGAIN ? bytes : 0;
	if (rc != -EAGAIN)
		move->grown_count = 0;
	return rc == -EAGAIN ? rc : rc ? -EBUSY : 0;
}

int ll_move_suspend(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size)
{
	if (move->is_quiet)
		return 0;
	if (move->is_stopped) {
		ll_move_go_on_card(move);
		ll_driver_calls_open();
	}
	move->is_quiet = ll_quiet_reach(&move->quiet, move->dev, ll_now_ns() + wait_ns, why, why_size) == 0;
	move->is_stopped = move->is_quiet;
	return move->is_stopped ? 0 : -EBUSY;
}

int ll_move_stop_at_once(struct ll_move *move)
{
	if (move->is_quiet || move->is_off)
		return 0;
	if (!move->is_stopped)
		ll_driver_calls_shut();
	move->is_off = ll_card_time_stop(move->dev->card_time) == 0;
	if (!move->is_off && !move->is_stopped)
		ll_driver_calls_open();
	move->is_stopped |= move->is_off;
	return move->is_off ? 0 : -ENOTSUP;
}

void ll_move_go_on_card(struct ll_move *move)
{
	if (move->is_off)
		ll_card_time_go_on(move->dev->card_time);
	move->is_off = false;
}

void ll_move_resume(struct ll_move *move)
{
	bool was_stopped = move->is_stopped;
	ll_movable_pools_thaw(move->dev);
	ll_move_go_on_card(move);
	move->is_stopped = move->is_quiet = false;
	if (was_stopped)
		ll_driver_calls_open();
}

void ll_move_end(struct ll_move *move)
{
	forget_batches(move);
	move->neighbour = LL_MOVE_TO_HOST;
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
		bytes += move->blocks[i].memory.bytes;
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
		const struct ll_move_batch *batch = &move->batches[i];
		for (uint32_t j = batch->first; batch->is_away && j < batch->first + batch->count; j++)
			ll_chunk_note(&move->chunks[j]); /* it has no handle now */
	}
}

/* ---- copies: out, in, and from a neighbour on to the host ---- */

/* Memory on a neighbour is made for so many batches at a time: the driver takes half as long for larger ones
 * (doc/facts.md). The first batch has a block of its own: its copy begins sooner. */
enum { BLOCK_BATCHES = 4 };

static struct ll_cu_stream *stream_of(const struct ll_move *move, const struct ll_move_batch *batch)
{
	return move->streams[(batch - move->batches) % LL_MOVE_STREAMS];
}

/* Copies bytes of the card in several calls, because a call must not cross the end of a registered step of the host. */
static ll_cu_result copy_host(const struct ll_move *move, ll_cu_deviceptr at, uint64_t bytes, uint64_t offset,
			      struct ll_cu_stream *stream, bool is_out)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	while (bytes && status == LL_CUDA_SUCCESS) {
		uint64_t to_end = ll_host_pool_step_end(offset) - offset;
		uint64_t length = bytes < to_end ? bytes : to_end;
		char *host = ll_host_pool_base(move->pool) + offset;
		status = is_out ? ll_real()->cuMemcpyDtoHAsync_v2(host, at, length, stream)
				: ll_real()->cuMemcpyHtoDAsync_v2(at, host, length, stream);
		at += length;
		offset += length;
		bytes -= length;
	}
	return status;
}

static ll_cu_deviceptr address_in_block(const struct ll_move_batch *batch)
{
	return batch->block->memory.address + batch->block_offset;
}

/* offset: in the batch. */
static ll_cu_result copy_chunk(const struct ll_move *move, const struct ll_move_batch *batch, ll_cu_deviceptr at,
			       uint64_t bytes, uint64_t offset, bool is_out)
{
	struct ll_cu_stream *stream = stream_of(move, batch);
	if (!batch->block)
		return copy_host(move, at, bytes, batch->offset + offset, stream, is_out);
	ll_cu_deviceptr aside = address_in_block(batch) + offset;
	return is_out ? ll_real()->cuMemcpyDtoDAsync_v2(aside, at, bytes, stream)
		      : ll_real()->cuMemcpyDtoDAsync_v2(at, aside, bytes, stream);
}

/* Memory that the program has made itself may be unmapped, or mapped read-only. So it is mapped at another address. */
static ll_cu_result copy_aside(const struct ll_move *move, const struct ll_move_batch *batch,
			       const struct ll_chunk *chunk, uint64_t offset, bool is_out)
{
	ll_cu_deviceptr address;
	ll_cu_result status = ll_chunk_map_aside(move->dev, chunk->handle, chunk->bytes, &address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = copy_chunk(move, batch, address, chunk->bytes, offset, is_out);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuStreamSynchronize(stream_of(move, batch));
	ll_chunk_unmap_aside(address, chunk->bytes);
	return status;
}

/* The context is current. */
static ll_cu_result begin_copies(const struct ll_move *move, const struct ll_move_batch *batch,
				 enum ll_transfer transfer)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	uint64_t offset = 0;
	if (transfer == LL_TRANSFER_ON)
		return copy_host(move, address_in_block(batch), batch->bytes, batch->offset, stream_of(move, batch),
				 true);
	for (uint32_t i = 0; i < batch->count && status == LL_CUDA_SUCCESS; i++) {
		const struct ll_chunk *chunk = &move->chunks[batch->first + i];
		status =
		    chunk->kind == LL_EXTENT_PHYSICAL
			? copy_aside(move, batch, chunk, offset, transfer == LL_TRANSFER_OUT)
			: copy_chunk(move, batch, chunk->address, chunk->bytes, offset, transfer == LL_TRANSFER_OUT);
		offset += chunk->bytes;
	}
	return status;
}

static int begin_batch(struct ll_move *move, const struct ll_move_batch *batch, enum ll_transfer transfer)
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

static void free_batch(struct ll_move *move, const struct ll_move_batch *batch, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ll_chunk *chunk = &move->chunks[batch->first + i];
		ll_chunk_unmake(chunk);
		chunk->handle = 0;
	}
}

static void put_away(struct ll_move *move, struct ll_move_batch *batch)
{
	free_batch(move, batch, batch->count);
	batch->is_away = true;
}

static void release_block(struct ll_move_batch *batch)
{
	if (--batch->block->users == 0)
		ll_neighbour_block_free(&batch->block->memory);
	batch->block = NULL;
}

static void end_copies(struct ll_move *move, struct ll_move_batch *batch)
{
	switch (move->transfer) {
	case LL_TRANSFER_OUT:
		batch->is_stored = true;
		put_away(move, batch);
		break;
	case LL_TRANSFER_IN:
		for (uint32_t i = 0; i < batch->count; i++)
			ll_chunk_note(&move->chunks[batch->first + i]);
		break;
	case LL_TRANSFER_ON:
		release_block(batch);
		break;
	}
}

/* The context need not be current. */
int ll_move_settle(struct ll_move *move)
{
	struct ll_cu_context *popped;
	struct ll_move_batch *batch = move->in_flight;
	if (!batch)
		return 0;
	move->in_flight = NULL;
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

static struct ll_move_batch *next_batch(const struct ll_move *move, bool is_away)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].is_away == is_away && &move->batches[i] != move->in_flight)
			return &move->batches[i];
	}
	return NULL;
}

/* Begins the copy of the next batch (NULL: there is none), and ends the one before. rc: an error that prevents it. */
static int begin_next(struct ll_move *move, struct ll_move_batch *next, enum ll_transfer transfer, int rc)
{
	if (!rc && next)
		rc = begin_batch(move, next, transfer);
	int settled = ll_move_settle(move);
	if (settled && (!rc || transfer == LL_TRANSFER_IN))
		return settled;
	if (rc)
		return rc;
	move->in_flight = next;
	move->transfer = transfer;
	return next ? 1 : 0;
}

static int find_host_room(struct ll_move *move, const struct ll_move_batch *batch)
{
	char why[1];
	if (batch->offset + batch->bytes <= ll_move_pool_bytes(move))
		return 0;
	return ll_host_pool_need(move->pool, move->bytes, why, sizeof why) == -ENOSPC ? -ENOSPC : -EAGAIN;
}

/* Makes a block for the batch and some batches that follow. */
static bool make_block(struct ll_move *move, struct ll_move_batch *first)
{
	struct ll_move_block *block = &move->blocks[first - move->batches];
	struct ll_move_batch *end = move->batches + move->batch_count, *next = first;
	uint64_t bytes = 0;
	while (next < end && next < first + (first == move->batches ? 1 : BLOCK_BATCHES))
		bytes += next++->bytes;
	if (ll_neighbour_block_make(move->dev, move->neighbour, bytes, &block->memory) != LL_CUDA_SUCCESS)
		return false;
	bytes = 0;
	for (struct ll_move_batch *batch = first; batch < next; batch++) {
		batch->block = block;
		batch->block_offset = bytes;
		bytes += batch->bytes;
		block->users++;
	}
	return true;
}

int ll_move_evict_batch(struct ll_move *move)
{
	struct ll_move_batch *next = next_batch(move, false);
	int rc = 0;
	/* If the neighbour has no room for the batch, this batch and all later ones go to the host. */
	if (next && !next->block && (move->neighbour == LL_MOVE_TO_HOST || !make_block(move, next))) {
		move->neighbour = LL_MOVE_TO_HOST;
		rc = find_host_room(move, next);
	}
	return begin_next(move, next, LL_TRANSFER_OUT, rc);
}

/* ---- on to the host ---- */

/* Batches that have never been off the card release their blocks on the neighbour. */
static struct ll_move_batch *next_on_neighbour(const struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct ll_move_batch *batch = &move->batches[i];
		if (!batch->block || batch == move->in_flight)
			continue;
		if (batch->is_stored)
			return batch;
		release_block(batch);
	}
	return NULL;
}

int ll_move_on(struct ll_move *move)
{
	struct ll_move_batch *next = next_on_neighbour(move);
	int rc = next ? find_host_room(move, next) : 0;
	return begin_next(move, next, LL_TRANSFER_ON, rc);
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

/* Makes new memory at the old addresses. On failure nothing is made. -ENOMEM: the card has none; -EIO: the program's
 * contexts are lost. */
static int make_batch(struct ll_move *move, struct ll_move_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct ll_chunk *chunk = &move->chunks[batch->first + i];
		ll_cu_result status = ll_chunk_make(move->dev, chunk);
		if (status != LL_CUDA_SUCCESS) {
			free_batch(move, batch, i);
			return status != LL_CUDA_ERROR_OUT_OF_MEMORY && ll_move_is_card_lost(move) ? -EIO : -ENOMEM;
		}
	}
	batch->is_away = false;
	return 0;
}

int ll_move_resume_batch(struct ll_move *move)
{
	struct ll_move_batch *next = next_batch(move, true);
	int rc = next ? make_batch(move, next) : 0;
	return begin_next(move, next, LL_TRANSFER_IN, rc);
}

void ll_move_stay(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].is_stored && !move->batches[i].is_away)
			put_away(move, &move->batches[i]);
	}
}
