#include "shim/residency/move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/memory/movable_pool.h"
#include "shim/residency/move_state.h"
#include "shim/residency/obstacles.h"
#include "shim/time/driver_calls.h"

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

/* The first batches are small, so a program that waits for room begins soon. */
static uint64_t bytes_of_batch(uint32_t number)
{
	int64_t smaller = (int64_t)SMALL_BATCHES - number;
	return smaller > 0 ? BATCH_BYTES >> smaller : BATCH_BYTES;
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
		uint64_t most_bytes = bytes_of_batch(move->batch_count);
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

int ll_move_suspend(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size)
{
	if (!move->is_stopped)
		move->is_stopped = ll_quiet_reach(&move->quiet, move->dev, ll_now_ns() + wait_ns, why, why_size) == 0;
	return move->is_stopped ? 0 : -EBUSY;
}

void ll_move_resume(struct ll_move *move)
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
