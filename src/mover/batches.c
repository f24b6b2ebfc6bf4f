#include "mover/batches.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "mover/pool.h"

void ll_mover_batches_stop(struct ll_mover_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		ll_transfer_free(batches[i].transfer);
		batches[i].transfer = NULL;
	}
}

void ll_mover_batches_free(struct ll_mover_batch *batches, uint32_t count, struct ll_mover_pool *pool)
{
	ll_mover_batches_stop(batches, count);
	for (uint32_t i = 0; i < count; i++) {
		ll_mover_pool_give(pool, batches[i].places, batches[i].place_count);
		ll_neighbour_block_free(batches[i].block);
	}
	free(batches);
}

bool ll_mover_batches_are_copied(const struct ll_mover_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (batches[i].transfer && !batches[i].is_moving_on)
			return true;
	}
	return false;
}

bool ll_mover_batches_are_told(const struct ll_mover_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (batches[i].is_told)
			return true;
	}
	return false;
}

bool ll_mover_batches_are_all_told(const struct ll_mover_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!batches[i].is_told)
			return false;
	}
	return count > 0;
}

void ll_mover_batches_note_away(struct ll_mover_batch *batches, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		batches[i].direction = LL_TRANSFER_OUT;
}

static uint64_t sum_told(const struct ll_mover_batch *batches, uint32_t count, enum ll_transfer_direction direction)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (batches[i].is_told && batches[i].direction == direction)
			bytes += batches[i].bytes;
	}
	return bytes;
}

uint64_t ll_mover_batches_left(const struct ll_mover_batch *batches, uint32_t count)
{
	return sum_told(batches, count, LL_TRANSFER_OUT);
}

uint64_t ll_mover_batches_came(const struct ll_mover_batch *batches, uint32_t count)
{
	return sum_told(batches, count, LL_TRANSFER_IN);
}

uint64_t ll_mover_batch_bytes(const struct ll_mover_message *message, uint64_t most_bytes)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < message->count; i++) {
		if (!message->handle_bytes[i] || message->handle_bytes[i] > most_bytes - bytes)
			return 0;
		bytes += message->handle_bytes[i];
	}
	return bytes;
}

static struct ll_transfer_store store_of(const struct ll_mover_batch *batch)
{
	return (struct ll_transfer_store){batch->block ? batch->block->memory.address : 0, batch->places,
					  batch->place_count};
}

int ll_mover_batch_move_on(struct ll_mover_batch *batch, const struct ll_transfer_engine *engine, struct ll_err *err)
{
	int rc = ll_transfer_new_to_host(engine, store_of(batch), &batch->transfer, err);
	batch->is_moving_on = rc == 0;
	return rc;
}

uint64_t ll_mover_batch_stay_on(struct ll_mover_batch *batch, struct ll_mover_pool *pool)
{
	if (!batch->is_moving_on)
		return 0;
	ll_transfer_free(batch->transfer);
	batch->transfer = NULL;
	ll_mover_pool_give(pool, batch->places, batch->place_count);
	batch->place_count = 0;
	batch->is_moving_on = false;
	return batch->bytes;
}

int ll_mover_batch_begin(struct ll_mover_batch *batch, enum ll_transfer_direction direction,
			 const struct ll_transfer_engine *engine, const struct ll_mover_message *message,
			 const int *fds, size_t fd_count, struct ll_err *err)
{
	batch->direction = direction;
	if (!fd_count)
		return ll_err_set(err, -EMFILE, "the mover has no free descriptor");
	return ll_transfer_new(engine, direction, fds, message->handle_bytes, message->count, store_of(batch),
			       &batch->transfer, err);
}
