/*
 * movable_pool.h - memory pools of an evictable program, made of memory that can be moved (backing.h).
 *
 * The memory of the driver's pools cannot be moved. So the library makes the blocks of such a pool itself. Each block
 * is an allocation of backing.h, and an extent of kind LL_EXTENT_BLOCK with is_backed. The driver's pool stays empty,
 * and keeps the attributes that the program sets. Only pools of a card's own memory that cannot be exported have a
 * movable pool (pools.h).
 *
 * A block that was freed in stream order is kept for a later allocation of about its size: the block may be larger by
 * an eighth at most. The same stream may use the block at once. Other streams may use it when the card has reached an
 * event that was recorded behind the free. Then the block is done. Blocks that are done are returned to the card
 *
 *     when the program waits for the stream, a context or an event, down to the pool's release threshold
 *     when the pool is trimmed or destroyed
 *     when the limit or the card has no room: all of them
 *     before the program's memory is evicted: all of them
 *
 * Blocks in use and freed blocks are charged. Like the driver's pools, movable pools do not end with a context. Each
 * card has one more movable pool for plain allocations that were freed by cuMemFreeAsync. No allocation is made from
 * this pool.
 *
 * Each card has one lock. The driver calls that are made under it are queries and unmapping, which do not wait
 * (doc/facts.md).
 */
#ifndef LOADLINE_SHIM_MEMORY_MOVABLE_POOL_H
#define LOADLINE_SHIM_MEMORY_MOVABLE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/memory/extents.h"
#include "shim/memory/stream_place.h"

struct ll_movable_pool;

/* ---- one pool ---- */

/* Makes a pool. handle: the driver's pool; NULL: the pool is for plain allocations. max_bytes: the maximum that the
 * program gave; 0: none. Returns NULL if there is no memory. */
struct ll_movable_pool *ll_movable_pool_new(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					    uint64_t max_bytes);

/* Call it when the driver's pool is destroyed. The movable pool ends with its last block. pool may be NULL. */
void ll_movable_pool_end(struct ll_movable_pool *pool);

struct ll_device_state *ll_movable_pool_dev(const struct ll_movable_pool *pool);
struct ll_cu_mem_pool *ll_movable_pool_handle(const struct ll_movable_pool *pool);

/* Call ll_movable_pool_grow before a block is made. It adds the block's bytes, room_bytes and told_bytes to the pool's
 * sums. It returns false if the pool's maximum refuses the block. Call ll_movable_pool_shrink if the block was not
 * made, or when it is freed. */
bool ll_movable_pool_grow(struct ll_movable_pool *pool, const struct ll_extent *block);
void ll_movable_pool_shrink(struct ll_movable_pool *pool, const struct ll_extent *block);

/* Takes the smallest freed block that is large enough and that this stream may use now. Returns false if there is none.
 * The block is not in the map of extents. */
bool ll_movable_pool_get_block(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
			       const struct ll_stream_place *place, struct ll_extent *ret_block);

/* A freed block that may only be used behind the event. */
struct ll_pending_block {
	struct ll_extent block;
	struct ll_stream_place place;
	struct ll_cu_event *event;
};

/* Takes such a block. The caller then owns its event. Returns false if there is none. */
bool ll_movable_pool_get_pending(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
				 struct ll_pending_block *ret_pending);

/*
 * Adds a freed block to the pool. Its extent is not in the map. event: recorded behind the free in the stream at
 * `place`; the pool owns it from now on. event NULL: the block may be used now. place NULL: the block belongs to no
 * stream. Returns false if there is no memory; then nothing is changed.
 */
bool ll_movable_pool_put(struct ll_movable_pool *pool, const struct ll_extent *block,
			 const struct ll_stream_place *place, struct ll_cu_event *event);

/* Returns blocks that are done to the card, as long as the pool keeps at least keep_bytes. */
void ll_movable_pool_trim(struct ll_movable_pool *pool, uint64_t keep_bytes);

/* Returns the part that this pool adds to an attribute of the driver's pool. It is 0 for all attributes except the four
 * sizes. The reserved size is rounded up to 32 MiB, because a pool of the driver grows in such steps; the charge is the
 * sum of the blocks. If the driver's pool has memory too, the sum of two HIGH attributes may be more than the pools had
 * at any one time. */
uint64_t ll_movable_pool_size(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute);

/* Call it when the program has set one of the HIGH attributes to 0. */
void ll_movable_pool_restart_high(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute);

/* ---- all pools ---- */

/* The number of freed blocks. */
extern _Atomic uint32_t ll_movable_pools_freed;

/* Returns the blocks that are done, of all pools of the card, to the card. Returns false if there were none. Any thread
 * may call it. */
bool ll_movable_pools_release(struct ll_device_state *dev);

/* Call it when the program has waited for the stream at `place` (its context counts only for a default stream). place
 * NULL: it has waited for a context or an event. */
void ll_movable_pools_waited(const struct ll_stream_place *place);

/* Call it before the stream is destroyed, because a later one may get its handle. */
void ll_movable_pools_forget_stream(const struct ll_cu_stream *stream);

/* Call ll_movable_pools_forget_context before the context ends, because its events end with it. Call
 * ll_movable_pools_end_context when it has ended, so that all its work is done. */
void ll_movable_pools_forget_context(const struct ll_cu_context *context);
void ll_movable_pools_end_context(const struct ll_cu_context *context);

/* For the code that moves the card's memory while the program's calls are shut. ll_movable_pools_freeze returns blocks
 * that are done to the card. Until ll_movable_pools_thaw no thread returns further blocks. */
void ll_movable_pools_freeze(struct ll_device_state *dev);
void ll_movable_pools_thaw(struct ll_device_state *dev);

#endif
