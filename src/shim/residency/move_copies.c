/* Copies batches: out, in, and from a neighbour on to the host. */
#include "shim/residency/move.h"

#include <errno.h>

#include "shim/interpose/real.h"
#include "shim/residency/move_state.h"

/* Memory on a neighbour is made for so many batches at a time: the driver takes half as long for larger ones
 * (doc/facts.md). The first batch has a block of its own: its copy begins sooner. */
enum { BLOCK_BATCHES = 4 };

/* ---- copies ---- */

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
		uint64_t to_end = LL_POOL_STEP_BYTES - offset % LL_POOL_STEP_BYTES;
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

/* Finds room for the batch on the neighbour. If the neighbour has none, this batch and all later ones go to the host.
 */
static int find_room(struct ll_move *move, struct ll_move_batch *batch)
{
	if (batch->block)
		return 0;
	if (move->neighbour != LL_MOVE_TO_HOST && make_block(move, batch))
		return 0;
	move->neighbour = LL_MOVE_TO_HOST;
	return find_host_room(move, batch);
}

int ll_move_evict_batch(struct ll_move *move)
{
	struct ll_move_batch *next = next_batch(move, false);
	int rc = next ? find_room(move, next) : 0;
	if (!rc && next)
		rc = begin_batch(move, next, LL_TRANSFER_OUT);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return rc ? rc : settled;
	move->in_flight = next;
	move->transfer = LL_TRANSFER_OUT;
	return next ? 1 : 0;
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
	if (!rc && next)
		rc = begin_batch(move, next, LL_TRANSFER_ON);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return rc ? rc : settled;
	move->in_flight = next;
	move->transfer = LL_TRANSFER_ON;
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
	if (!rc && next)
		rc = begin_batch(move, next, LL_TRANSFER_IN);
	int settled = ll_move_settle(move);
	if (rc || settled)
		return settled ? settled : rc;
	move->in_flight = next;
	move->transfer = LL_TRANSFER_IN;
	return next ? 1 : 0;
}

void ll_move_stay(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].is_stored && !move->batches[i].is_away)
			put_away(move, &move->batches[i]);
	}
}
