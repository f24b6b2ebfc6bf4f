/*
 * movable_pool.h - what the memory pools of an evictable program have of memory that can be moved (backing.h).
 *
 * The driver's pools keep their memory where it is. So the library makes the blocks of such a pool itself: each block
 * is an allocation of backing.h, and an extent of kind LL_EXTENT_BLOCK with is_backed. The driver's pool stays, empty,
 * and has the attributes that the program sets. Only pools of a card's own memory that cannot be exported have a
 * movable pool (pools.h).
 *
 * A block that was freed in the order of a stream is kept for the next allocation of about its size: a larger block by
 * an eighth at most. The same stream may use it at once. Everybody else may when the stream has reached the free, which
 * an event says that was recorded there. What is done goes back to the card
 *
 *     when the program waits for the stream, a context or an event, down to the pool's release threshold
 *     when the pool is trimmed or destroyed
 *     when the limit or the card has no room, all of it
 *     before the program's memory leaves the card, all of it
 *
 * Blocks in use and freed blocks are charged. As the driver's pools, these outlive contexts. Plain allocations that
 * were freed by cuMemFreeAsync wait in a movable pool too, one for each card, from which nobody allocates.
 *
 * Each card has one lock. The calls of the driver under it wait for nothing: queries, and unmapping (doc/facts.md).
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

/* handle: the driver's pool; NULL: for plain allocations. max_bytes: as the program gave it, 0: none. NULL: no memory.
 */
struct ll_movable_pool *ll_movable_pool_new(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					    uint64_t max_bytes);

/* The driver's pool is destroyed. This one ends with its last block. pool may be NULL. */
void ll_movable_pool_end(struct ll_movable_pool *pool);

struct ll_device_state *ll_movable_pool_dev(const struct ll_movable_pool *pool);
struct ll_cu_mem_pool *ll_movable_pool_handle(const struct ll_movable_pool *pool);

/* Before a block is made: its bytes, room_bytes and told_bytes count. False: the pool's maximum refuses it. And: the
 * block was not made, or is gone. */
bool ll_movable_pool_grow(struct ll_movable_pool *pool, const struct ll_extent *block);
void ll_movable_pool_shrink(struct ll_movable_pool *pool, const struct ll_extent *block);

/* Takes the smallest freed block that has the room, and that this stream may use. False: there is none. The block is
 * not in the map of extents. */
bool ll_movable_pool_get_block(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
			       const struct ll_stream_place *place, struct ll_extent *ret_block);

/* A freed block that may be used behind the event alone. */
struct ll_pending_block {
	struct ll_extent block;
	struct ll_stream_place place;
	struct ll_cu_event *event;
};

/* Takes such a block, whose event is the caller's then. False: there is none. */
bool ll_movable_pool_get_pending(struct ll_movable_pool *pool, uint64_t room_bytes, uint64_t bytes,
				 struct ll_pending_block *ret_pending);

/*
 * The block is freed; its extent is not in the map. event: when it may be used, recorded in the stream at `place`, the
 * pool's from now on. NULL: now. place NULL: of no stream. False: there is no memory to note it, nothing is changed.
 */
bool ll_movable_pool_put(struct ll_movable_pool *pool, const struct ll_extent *block,
			 const struct ll_stream_place *place, struct ll_cu_event *event);

/* Gives back what is done while the pool has keep_bytes of the card without it. */
void ll_movable_pool_trim(struct ll_movable_pool *pool, uint64_t keep_bytes);

/* What this pool adds to an attribute of the driver's pool: 0 but for the four sizes. What is reserved is told in steps
 * of 32 MiB, in which a pool of the driver grows; the charge is of the blocks. The sums of the HIGH ones may be more
 * than there ever was at one time, if the driver's pool has memory too. */
uint64_t ll_movable_pool_size(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute);

/* The program has set one of the HIGH attributes to 0. */
void ll_movable_pool_restart_high(struct ll_movable_pool *pool, enum ll_cu_mem_pool_attribute attribute);

/* ---- all pools ---- */

/* How many freed blocks there are. */
extern _Atomic uint32_t ll_movable_pools_freed;

/* Gives back what is done of all pools of the card. False: there was nothing. Any thread. */
bool ll_movable_pools_release(struct ll_device_state *dev);

/* The program has waited: for this stream (its context counts for a default stream alone), or place NULL: for a context
 * or an event. */
void ll_movable_pools_waited(const struct ll_stream_place *place);

/* The stream is about to be destroyed. A later one may get its handle. */
void ll_movable_pools_forget_stream(const struct ll_cu_stream *stream);

/* The context is about to end: its events end with it. And: it has ended, so all its work is done. */
void ll_movable_pools_forget_context(const struct ll_cu_context *context);
void ll_movable_pools_end_context(const struct ll_cu_context *context);

/* For whoever moves the card's memory, while the program's calls are shut. Freeze gives back what is done; until thaw
 * nothing more is given back, by any thread. */
void ll_movable_pools_freeze(struct ll_device_state *dev);
void ll_movable_pools_thaw(struct ll_device_state *dev);

#endif
