#include "shim/memory/pools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/guest.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"

enum { CARDS = 64, CLASSES = 64 };

/* A freed block may be larger than the requested size by 1 / WASTE_DIVISOR of it. */
enum { WASTE_DIVISOR = 8 };

struct freed {
	struct ll_extent block;       /* bytes: the part that still counts as used */
	struct ll_stream_place place; /* the stream of the free; all zero: none, or the stream has ended */
	struct ll_cu_event *event;    /* NULL: the block is done, or its context is about to end */
	bool is_done;
	struct freed *next;
};

struct ll_movable_pool {
	struct ll_device_state *dev;
	struct ll_cu_mem_pool *handle;
	uint64_t max_bytes;
	uint64_t reserved_bytes;              /* size of all blocks on the card */
	uint64_t told_bytes, told_high_bytes; /* the size that the blocks would take in a pool of the driver */
	uint64_t used_bytes, used_high_bytes; /* sum of the sizes that the program asked for */
	uint64_t block_count;
	bool is_destroyed;
	struct freed *freed[CLASSES]; /* one list for each highest bit of the block's size */
	struct ll_movable_pool *next;
};

static struct card {
	pthread_mutex_t lock; /* guards the card's pools */
	struct ll_movable_pool *pools;
	bool is_frozen;
} cards[CARDS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t pooled_cards; /* one bit for each card that has pools */

_Atomic uint32_t ll_movable_pools_freed;

static void init_cards(void)
{
	memset(cards, 0, sizeof cards);
	for (size_t i = 0; i < CARDS; i++)
		pthread_mutex_init(&cards[i].lock, NULL);
}

/* Forgets all pools, because the child has no memory of the parent on the card. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	init_cards();
	atomic_store(&pooled_cards, 0);
	atomic_store(&ll_movable_pools_freed, 0);
}

static void init_once(void)
{
	static struct ll_fork_item fork_item = {.in_child = forget_in_child};
	init_cards();
	ll_fork_add(&fork_item);
}

static void leave_relaxed(const enum ll_cu_capture_mode *before)
{
	ll_stream_exchange_capture_mode(*before);
}

/* Locks the card of this number until the end of the scope. Meanwhile the thread's queries do not make another thread's
 * capture invalid. */
#define LOCK_CARD(card, number)                                                                                        \
	LL_SCOPE_NO_CANCEL;                                                                                            \
	pthread_once(&once, init_once);                                                                                \
	struct card *card __attribute__((unused)) = &cards[number];                                                    \
	enum ll_cu_capture_mode mode_ __attribute__((cleanup(leave_relaxed), unused)) =                                \
	    ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);                                        \
	LL_SCOPE_LOCK(&card->lock)

/* ---- freed blocks; the card's lock is held ---- */

static unsigned class_of(uint64_t room_bytes)
{
	return 63 - (unsigned)__builtin_clzll(room_bytes | 1);
}

static void settle_freed(struct ll_movable_pool *pool, struct freed *freed)
{
	if (freed->event)
		ll_real()->cuEventDestroy_v2(freed->event);
	freed->event = NULL;
	freed->is_done = true;
	pool->used_bytes -= freed->block.bytes;
	freed->block.bytes = 0;
}

/* Returns whether the block is done. If the context has failed, the query of the event returns an error, and the block
 * stays until the context ends. */
static bool is_done(struct ll_movable_pool *pool, struct freed *freed)
{
	if (!freed->is_done && freed->event && ll_real()->cuEventQuery(freed->event) == LL_CUDA_SUCCESS)
		settle_freed(pool, freed);
	return freed->is_done;
}

static struct freed *unlink_freed(struct freed **link)
{
	struct freed *freed = *link;
	*link = freed->next;
	atomic_fetch_sub(&ll_movable_pools_freed, 1);
	return freed;
}

/* Returns the link to the smallest block that fits, or NULL. place NULL: finds only blocks whose stream has not reached
 * the free. */
static struct freed **find_best(struct ll_movable_pool *pool, uint64_t room_bytes, const struct ll_stream_place *place)
{
	uint64_t most_bytes = room_bytes + room_bytes / WASTE_DIVISOR;
	struct freed **best = NULL;
	for (unsigned i = class_of(room_bytes); i <= class_of(most_bytes); i++) {
		for (struct freed **link = &pool->freed[i], *freed; (freed = *link); link = &freed->next) {
			uint64_t has_bytes = freed->block.room_bytes;
			if (has_bytes < room_bytes || has_bytes > most_bytes ||
			    (best && has_bytes >= (*best)->block.room_bytes))
				continue;
			if (place ? ll_stream_place_is(place, &freed->place) || is_done(pool, freed)
				  : freed->event != NULL)
				best = link;
		}
	}
	return best;
}

/* Releases blocks that are done, the largest first, as long as keep_bytes are left. A block that was exported as a DMA
 * buffer is always released, because the program's memory cannot be moved while such a block exists. place: releases
 * only blocks of this stream; NULL: of all streams. */
static bool release_pool(struct ll_movable_pool *pool, uint64_t keep_bytes, const struct ll_stream_place *place)
{
	bool is_less = false;
	for (unsigned i = cards[pool->dev->device].is_frozen ? 0 : CLASSES; i-- > 0;) {
		for (struct freed **link = &pool->freed[i], *freed; (freed = *link);) {
			bool is_of_other = place && freed->place.handle && !ll_stream_place_is(place, &freed->place);
			bool is_extra =
			    freed->block.is_exported || pool->reserved_bytes - freed->block.room_bytes >= keep_bytes;
			if (is_of_other || !is_extra || !is_done(pool, freed)) {
				link = &freed->next;
				continue;
			}
			unlink_freed(link);
			freed->block.bytes = freed->block.room_bytes; /* the size with which the block was made */
			ll_backing_free(&freed->block);
			ll_charge_release(&freed->block);
			pool->reserved_bytes -= freed->block.room_bytes;
			pool->told_bytes -= freed->block.told_bytes;
			pool->block_count--;
			free(freed);
			is_less = true;
		}
	}
	return is_less;
}

/* Frees a destroyed pool if it has no more blocks. */
static void end_if_empty(struct card *card, struct ll_movable_pool *pool)
{
	struct ll_movable_pool **link = &card->pools;
	if (!pool->is_destroyed || pool->block_count)
		return;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	free(pool);
}

/* ---- one pool ---- */

struct ll_movable_pool *ll_movable_pool_new(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					    uint64_t max_bytes)
{
	struct ll_movable_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return NULL;
	LOCK_CARD(card, dev->device);
	*pool = (struct ll_movable_pool){.dev = dev, .handle = handle, .next = card->pools};
	pool->max_bytes = max_bytes ? ll_footprint_round(max_bytes, LL_FOOTPRINT_POOL_STEP_BYTES) : UINT64_MAX;
	card->pools = pool;
	atomic_fetch_or(&pooled_cards, UINT64_C(1) << dev->device);
	return pool;
}

void ll_movable_pool_end(struct ll_movable_pool *pool)
{
	if (!pool)
		return;
	LOCK_CARD(card, pool->dev->device);
	pool->is_destroyed = true;
	release_pool(pool, 0, NULL);
	end_if_empty(card, pool);
}

struct ll_device_state *ll_movable_pool_dev(const struct ll_movable_pool *pool)
{
	return pool->dev;
}

struct ll_cu_mem_pool *ll_movable_pool_handle(const struct ll_movable_pool *pool)
{
	return pool->handle;
}

/* The card's lock is held. */
static void use_bytes(struct ll_movable_pool *pool, uint64_t bytes)
{
	pool->used_bytes += bytes;
	if (pool->used_high_bytes < pool->used_bytes)
		pool->used_high_bytes = pool->used_bytes;
}

bool ll_movable_pool_grow(struct ll_movable_pool *pool, const struct ll_extent *block)
{
	LOCK_CARD(card, pool->dev->device);
	if (block->room_bytes > pool->max_bytes)
		return false;
	if (pool->reserved_bytes > pool->max_bytes - block->room_bytes)
		release_pool(pool, 0, NULL);
	if (pool->reserved_bytes > pool->max_bytes - block->room_bytes)
		return false;
	pool->block_count++;
	pool->reserved_bytes += block->room_bytes;
	pool->told_bytes += block->told_bytes;
	if (pool->told_high_bytes < pool->told_bytes)
		pool->told_high_bytes = pool->told_bytes;
	use_bytes(pool, block->bytes);
	return true;
}

void ll_movable_pool_shrink(struct ll_movable_pool *pool, const struct ll_extent *block)
{
	LOCK_CARD(card, pool->dev->device);
	pool->block_count--;
	pool->reserved_bytes -= block->room_bytes;
	pool->told_bytes -= block->told_bytes;
	pool->used_bytes -= block->bytes;
	end_if_empty(card, pool);
}

/* The card's lock is held. */
static struct ll_extent take_freed(struct ll_movable_pool *pool, struct freed **link, uint64_t bytes)
{
	struct freed *freed = unlink_freed(link);
	settle_freed(pool, freed);
	struct ll_extent block = freed->block;
	free(freed);
	block.bytes = bytes;
	block.serial = ll_backing_new_serial();
	block.is_synced = false;
	use_bytes(pool, bytes);
	return block;
}

bool ll_movable_pool_get_block(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
			       const struct ll_stream_place *place, struct ll_extent *ret_block)
{
	LOCK_CARD(card, pool->dev->device);
	struct freed **best = find_best(pool, room_bytes, place);
	if (best)
		*ret_block = take_freed(pool, best, bytes);
	return best != NULL;
}

bool ll_movable_pool_get_pending(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
				 struct ll_pending_block *ret_pending)
{
	LOCK_CARD(card, pool->dev->device);
	struct freed **best = find_best(pool, room_bytes, NULL);
	if (!best)
		return false;
	ret_pending->place = (*best)->place;
	ret_pending->event = (*best)->event;
	(*best)->event = NULL;
	ret_pending->block = take_freed(pool, best, bytes);
	return true;
}

bool ll_movable_pool_put(struct ll_movable_pool *pool, const struct ll_extent *block,
			 const struct ll_stream_place *place, struct ll_cu_event *event)
{
	struct freed *freed = calloc(1, sizeof *freed);
	if (!freed)
		return false;
	LOCK_CARD(card, pool->dev->device);
	struct freed **first = &pool->freed[class_of(block->room_bytes)];
	*freed = (struct freed){.block = *block, .event = event, .next = *first};
	if (place)
		freed->place = *place;
	if (!event)
		settle_freed(pool, freed);
	*first = freed;
	atomic_fetch_add(&ll_movable_pools_freed, 1);
	if (pool->is_destroyed) {
		release_pool(pool, 0, NULL);
		end_if_empty(card, pool);
	}
	return true;
}

void ll_movable_pool_trim(struct ll_movable_pool *pool, uint64_t keep_bytes)
{
	LOCK_CARD(card, pool->dev->device);
	release_pool(pool, keep_bytes, NULL);
}

uint64_t ll_movable_pool_size(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute)
{
	LOCK_CARD(card, pool->dev->device);
	switch (attribute) {
	case LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return ll_footprint_round(pool->told_bytes, LL_FOOTPRINT_POOL_STEP_BYTES);
	case LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return ll_footprint_round(pool->told_high_bytes, LL_FOOTPRINT_POOL_STEP_BYTES);
	case LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		for (unsigned i = 0; i < CLASSES; i++) {
			for (struct freed *freed = pool->freed[i]; freed; freed = freed->next)
				is_done(pool, freed);
		}
		return pool->used_bytes;
	case LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return pool->used_high_bytes;
	default:
		return 0;
	}
}

void ll_movable_pool_restart_high(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute)
{
	LOCK_CARD(card, pool->dev->device);
	if (attribute == LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		pool->told_high_bytes = pool->told_bytes;
	else if (attribute == LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		pool->used_high_bytes = pool->used_bytes;
}

/* ---- all pools ---- */

/* Releases blocks of all pools of the card. keeps: the pools keep as much as the release thresholds of the driver's
 * pools say. The card's lock is held. */
static bool release_card(struct card *card, bool keeps, const struct ll_stream_place *place)
{
	bool is_less = false;
	for (struct ll_movable_pool *pool = card->pools, *next; pool; pool = next) {
		uint64_t keep_bytes = 0;
		next = pool->next;
		if (keeps && pool->handle && !pool->is_destroyed &&
		    ll_real()->cuMemPoolGetAttribute(pool->handle, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_bytes) !=
			LL_CUDA_SUCCESS)
			keep_bytes = 0;
		is_less |= release_pool(pool, keep_bytes, place);
		end_if_empty(card, pool);
	}
	return is_less;
}

bool ll_movable_pools_release(struct ll_device_state *dev)
{
	if (!atomic_load(&ll_movable_pools_freed))
		return false;
	LOCK_CARD(card, dev->device);
	return release_card(card, false, NULL);
}

void ll_movable_pools_waited(const struct ll_stream_place *place)
{
	for (uint64_t left = atomic_load(&pooled_cards); left; left &= left - 1) {
		LOCK_CARD(card, __builtin_ctzll(left));
		release_card(card, true, place);
	}
}

/* Forgets the stream of a freed block, if it is of this stream; NULL: if it is of this context. A context that is about
 * to end takes the events along. When it has ended (is_over), all its work is done. */
static void forget_stream_of(struct ll_movable_pool *pool, struct freed *freed, const struct ll_cu_stream *stream,
			     const struct ll_cu_context *context, bool is_over)
{
	if (stream ? freed->place.handle != stream : freed->place.context != context)
		return;
	if (is_over && !freed->is_done && !freed->event)
		settle_freed(pool, freed);
	if (!stream && !is_over) {
		if (!freed->event)
			return;
		ll_real()->cuEventDestroy_v2(freed->event);
		freed->event = NULL;
	}
	freed->place.handle = NULL;
}

static void forget_streams(const struct ll_cu_stream *stream, const struct ll_cu_context *context, bool is_over)
{
	uint64_t left = atomic_load(&ll_movable_pools_freed) ? atomic_load(&pooled_cards) : 0;
	for (; left; left &= left - 1) {
		LOCK_CARD(card, __builtin_ctzll(left));
		for (struct ll_movable_pool *pool = card->pools; pool; pool = pool->next) {
			for (unsigned i = 0; i < CLASSES; i++) {
				for (struct freed *freed = pool->freed[i]; freed; freed = freed->next)
					forget_stream_of(pool, freed, stream, context, is_over);
			}
		}
	}
}

void ll_movable_pools_forget_stream(const struct ll_cu_stream *stream)
{
	if (!ll_stream_is_default(stream))
		forget_streams(stream, NULL, false);
}

void ll_movable_pools_forget_context(const struct ll_cu_context *context)
{
	forget_streams(NULL, context, false);
}

void ll_movable_pools_end_context(const struct ll_cu_context *context)
{
	forget_streams(NULL, context, true);
}

void ll_movable_pools_freeze(struct ll_device_state *dev)
{
	LOCK_CARD(card, dev->device);
	release_card(card, false, NULL);
	card->is_frozen = true;
}

void ll_movable_pools_thaw(struct ll_device_state *dev)
{
	LOCK_CARD(card, dev->device);
	card->is_frozen = false;
}
