/*
 * pools.h - pools of memory, allocations in the order of a stream, and the memory of graphs.
 */
#ifndef LOADLINE_SHIM_MEMORY_POOLS_H
#define LOADLINE_SHIM_MEMORY_POOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"

/* ---- streams ---- */

/* Identifies the stream in which a block of a pool is freed or allocated, or a graph is launched. */

/* All zero: no stream. */
struct ll_stream_place {
	struct ll_cu_context *context; /* the stream's context */
	struct ll_cu_stream *handle;   /* LL_CU_STREAM_LEGACY instead of NULL; NULL: no stream */
	uint64_t thread;               /* for LL_CU_STREAM_PER_THREAD: a number that no other thread gets; else 0 */
};

/* Returns the place of a stream handle, as the driver's function without _ptsz interprets it. The context is found only
 * for a default stream; NULL: there is none. */
struct ll_stream_place ll_stream_place_of(struct ll_cu_stream *stream);

/* Returns whether two places are the same stream. The context is compared only for default streams, because every other
 * handle belongs to one context. Returns false for an empty place, and for a default stream without a known context. */
static inline bool ll_stream_place_is(const struct ll_stream_place *one, const struct ll_stream_place *other)
{
	return one->handle && one->handle == other->handle && one->thread == other->thread &&
	       (!ll_stream_is_default(one->handle) || (one->context && one->context == other->context));
}

/* ---- gaps ---- */

/*
 * The gaps of a memory pool that the library knows: blocks that the program has freed and that were not
 * allocated again. If an allocation fits such a gap, the pool does not grow for it.
 *
 * The driver reports how much of a pool is free, but not which blocks. So the library keeps the addresses of the free
 * blocks. It does not join two of them. It forgets all of them when the pool may have returned memory to the card. It
 * may know fewer gaps than there are, never more.
 *
 * This file uses no lock and does not call the driver. The caller holds the pool's lock.
 */

/* LL_GAPS_MOST: the most gaps that are kept. LL_GAPS_BLOCK_BYTES: the addresses of a pool's blocks are multiples of
 * this (doc/facts.md). */
enum { LL_GAPS_MOST = 1024, LL_GAPS_BLOCK_BYTES = 512 };

struct ll_gap {
	uint64_t address;
	uint64_t bytes;
	struct ll_stream_place place; /* only this stream may use the gap; all zero: any stream may */
	uint64_t number;              /* from the caller; a later gap has a higher number */
	uint32_t expected; /* not 0: no stream may use the gap yet; this is the caller's number of the free */
};

/* All zero: there are no gaps. */
struct ll_gaps {
	struct ll_gap *gaps; /* sorted by address */
	size_t count, capacity;
};

/* Notes that a block is about to be freed. expected: a number that no other free has at this time, not 0. */
void ll_gaps_expect(struct ll_gaps *gaps, uint64_t address, uint64_t bytes, uint32_t expected);

/* Notes that the block was freed in the order of the stream at `place`. The parts that were not allocated since
 * ll_gaps_expect are gaps with this number now. place NULL: the block was not freed, or the library does not know when
 * its memory may be used. Then its gaps are removed. */
void ll_gaps_settle(struct ll_gaps *gaps, uint32_t expected, const struct ll_stream_place *place, uint64_t number);

/* Adds a gap that any stream may use. The library must not know a gap at this address yet. */
void ll_gaps_add_free(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Returns the begin of the first gap after the address. If the address is in a gap, returns the address. UINT64_MAX:
 * there is none. */
uint64_t ll_gaps_next(const struct ll_gaps *gaps, uint64_t address);

/* Notes that a block was allocated at this address. The rest of a gap stays a gap. */
void ll_gaps_remove(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Returns whether an allocation in this stream fits a gap. Visits every gap. */
bool ll_gaps_fit(const struct ll_gaps *gaps, uint64_t bytes, const struct ll_stream_place *place);

/* Notes that the program has waited for the stream. Any stream may now use the gaps of this stream with numbers up to
 * last_number. Later gaps may have been freed after the wait began. */
void ll_gaps_waited(struct ll_gaps *gaps, const struct ll_stream_place *place, uint64_t last_number);

/* Removes the gaps of a stream that has ended, because a later stream may get its handle. */
void ll_gaps_forget_stream(struct ll_gaps *gaps, const struct ll_cu_stream *handle);

/* ll_gaps_clear removes all gaps. ll_gaps_fini also frees the memory. */
void ll_gaps_clear(struct ll_gaps *gaps);
void ll_gaps_fini(struct ll_gaps *gaps);

/* ---- growth ---- */

/*
 * Charges memory that grows inside the driver: memory pools, and the memory of graphs.
 *
 * The driver decides when a pool takes more memory of the card. So before a call that may make a pool grow, the library
 * reserves the most memory that the call may take. After the call it corrects the charge to the memory that the driver
 * has. Between the two the bytes are pending. So the driver never has more memory than is charged, and no charge
 * exceeds the limit.
 *
 * If the limit refuses this reserve, a call may still be certain to take no new memory. This certainty depends on other
 * calls at the same time. So the card can be closed for calls of this kind: while it is closed, no other such call
 * begins.
 *
 * Each card has one lock for these functions. It is not held while the driver allocates or frees.
 */

enum ll_growth_kind { LL_GROWTH_POOLS, LL_GROWTH_GRAPHS, LL_GROWTH_KINDS };

/* The charge of a pool, or of the memory of a card's graphs. The card's lock guards it. */
struct ll_growth {
	uint64_t charged_bytes; /* includes pending_bytes */
	/* The bytes that calls in the driver may still take. Also of a call that takes no new memory: another thread
	 * may make the driver return memory meanwhile, and the call may take it. When a call has ended, its bytes are
	 * subtracted, and ll_growth_settle is next. */
	uint64_t pending_bytes;
};

/* Acquire and release the card's lock. The thread cannot be cancelled while it holds the lock, because it calls the
 * driver and these calls may be cancellation points. */
void ll_growth_lock(const struct ll_device_state *dev);
void ll_growth_unlock(const struct ll_device_state *dev);

/* ---- the caller holds the card's lock; functions that wait release it meanwhile ---- */

/* Note the begin and the end of a call that may make memory grow. ll_growth_enter first waits while the card is closed,
 * at most 2 s. */
void ll_growth_enter(const struct ll_device_state *dev, enum ll_growth_kind kind);
void ll_growth_leave(const struct ll_device_state *dev, enum ll_growth_kind kind);

/*
 * Closes the card for calls of this kind, and waits until the calls that have begun have ended. Waits for most_ns at
 * most. Does not wait if the thread itself is in such a call. *ret_calls: number of calls that have not ended. Returns
 * false if another thread has closed the card; then nothing is changed.
 */
bool ll_growth_close(const struct ll_device_state *dev, enum ll_growth_kind kind, uint64_t most_ns,
		     unsigned *ret_calls);
void ll_growth_open(const struct ll_device_state *dev, enum ll_growth_kind kind);

/* Returns whether the limit has room for `bytes` now. */
bool ll_growth_has_room(const struct ll_device_state *dev, uint64_t bytes);

/* Reserves the bytes that a call may take. Returns 0, or -ENOMEM if the sum would exceed the limit. Returns -ESTALE as
 * ll_charge_reserve does; then nothing is pending. */
int ll_growth_reserve(struct ll_device_state *dev, struct ll_growth *growth, uint64_t bytes);

/* Corrects the charge to has_bytes, the memory that the driver has now. Returns false if this is more than was charged
 * and than the limit allows. The excess is charged in that case too. */
bool ll_growth_settle(struct ll_device_state *dev, struct ll_growth *growth, uint64_t has_bytes);

/* ---- blocks that others have imported ---- */

/*
 * A list of blocks of an exported pool that the program has freed and that other processes have imported. Such
 * blocks stay on the card even if the pool returns its memory. Only pools.c uses this file. It holds the card's lock.
 */

struct ll_lent; /* a list; NULL: empty */

/* True if the process had such a block at some time. Then the charges of pools may change without a call of this
 * process. */
extern _Atomic bool ll_lent_is_any;

/* ---- pools ---- */

/*
 * Charges memory pools. The charge of a pool is the memory that the pool has on the card, not the memory that
 * the program has allocated from the pool.
 *
 * A pool grows in steps of 32 MiB. Freed memory returns to the card when the program waits for it, or stays in the pool
 * (measured: doc/run.md). So the charge of a pool is the reserved size that the driver reports (the query takes 0.06
 * us). The library corrects the charge around each allocation, at frees, trims and synchronisations, and before it
 * reports the free memory to the program.
 *
 * An allocation makes a pool grow by at most its size, rounded up to steps. The library reserves this size around the
 * driver's call (pool_growth.c), even if the pool has free memory, because the driver does not report which blocks are
 * free. If the limit refuses the reserve and the pool has a known gap for the allocation (gaps.c), the allocation is
 * made while no other one is made on the card. Otherwise the pools give up the memory that they keep, and the library
 * tries again.
 *
 * If a pool has grown by more than was reserved, and over the limit, the new block is freed and the allocation is
 * refused. The growth stays charged, and the pool is trimmed until it is within the limit.
 *
 * Pools belong to the process, not to a context. Pools of the host, and of other processes, are not charged. The charge
 * of a pool of managed memory is its reserved size, even if its pages are on the host. The charged card is the pool's
 * preferred card, or else the card that was current when the pool was made. A destroyed pool is charged until its last
 * block is freed.
 *
 * If an evictable program has a pool of the card's own memory that cannot be exported, this pool has a movable pool
 * besides the driver's pool. Allocations from it come from the movable pool, except while a stream is being captured
 * (movable_pool.c).
 */

/* True if the process has pools or graphs whose charges must be corrected. One load. */
extern _Atomic bool ll_pools_are_used;

/* Call it when the program has made a pool. A pool of the host is added too, and is not charged. */
void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props);

/* The reservation for an allocation from a pool. handle NULL: the pool that the card's streams use. */
struct ll_pool_growth {
	struct ll_pool *pool; /* NULL: not governed */
	uint64_t bytes;
	uint64_t serial;      /* the pool's serial at the begin; 0: other allocations were in progress */
	bool is_alone;        /* no other allocation from a pool is made on the card meanwhile */
	ll_cu_result refusal; /* the result that the hook must return; LL_CUDA_SUCCESS: call the driver */
};
struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes,
				    struct ll_cu_stream *stream);

/* Ends an allocation after the driver's call. bytes: size of the new block at the address; 0: the driver made no block.
 * Returns false if the pool has grown over the limit; then the caller must free the block. ll_pool_leave ends the
 * allocation if the driver's call did not return. */
bool ll_pool_end(struct ll_pool_growth *growth, ll_cu_deviceptr address, uint64_t bytes);
void ll_pool_leave(struct ll_pool_growth *growth);

/* Call it when the pool has grown over the limit and the new block was freed. Trims the pool now, and again later until
 * it is within the limit. */
void ll_pool_shed(struct ll_pool *pool);

/* Call it before the driver frees a block. Removes the block's extent from the map. Returns false if no block begins at
 * the address. */
bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block);

/* Call one of these after the driver's call. If the driver refused, the extent is put into the map again.
 * ll_pool_freed_in is for a free in stream order. */
void ll_pool_freed(const struct ll_extent *block, ll_cu_result status);
void ll_pool_freed_in(const struct ll_extent *block, ll_cu_result status, struct ll_cu_stream *stream);

/* Call ll_pools_waited_for_stream when the program has waited for a stream (a handle as the driver's function without
 * _ptsz interprets it), and ll_pools_waited when it has waited for something else. last_free: the value that
 * ll_pools_last_free returned before the wait. */
uint64_t ll_pools_last_free(void);
void ll_pools_waited_for_stream(struct ll_cu_stream *stream, uint64_t last_free);
void ll_pools_waited(void);

/* Call these before a stream, or a context with all its streams, is destroyed, because later streams may get the same
 * handles. */
void ll_pools_forget_stream(struct ll_cu_stream *stream);
void ll_pools_forget_streams(void);

/* Call it when the driver has destroyed a pool. The caller has removed the pool's extent from the map before. */
void ll_pool_destroyed(struct ll_pool *pool);

/* ---- memory that can be moved ---- */

/* Returns the pool's movable pool. handle NULL: the pool that the card's streams use. Returns NULL if the pool's memory
 * cannot be evicted. */
struct ll_movable_pool *ll_pool_movable(const struct ll_device_state *dev, struct ll_cu_mem_pool *handle);

/* The same, but only for a pool that the library already knows. */
struct ll_movable_pool *ll_pool_movable_if_known(struct ll_cu_mem_pool *handle);

/* Returns the card's movable pool for plain allocations that were freed in stream order; NULL: no memory. */
struct ll_movable_pool *ll_pool_of_plain(struct ll_device_state *dev);

/* Call ll_pool_trim_movable when the driver has trimmed the pool. Call ll_pool_set_access when the driver has changed
 * which cards may use the pool's memory; it returns the driver's error if the driver refuses the right to memory that
 * the library made. */
void ll_pool_trim_movable(struct ll_cu_mem_pool *handle, uint64_t keep_bytes);
ll_cu_result ll_pool_set_access(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_access_desc *accesses,
				size_t count);

/* ---- charges ---- */

/* Corrects the charges of all pools and graphs of the card. Then it corrects those of every other card that has pools,
 * because a stream of one card may allocate and free memory of another card. */
void ll_pool_true_up_all(struct ll_device_state *dev);

/* Gives the state of the current context's card; NULL: there is nothing to correct. Returns the driver's error if the
 * driver does not report the card. */
static inline ll_cu_result ll_pool_find_dev_if_used(struct ll_device_state **ret_dev)
{
	struct ll_cu_context *context;
	*ret_dev = NULL;
	return atomic_load_explicit(&ll_pools_are_used, memory_order_relaxed) ? ll_device_state_find(&context, ret_dev)
									      : LL_CUDA_SUCCESS;
}

/* Corrects the charges, if there are any. Call it after a call that waits for the card. */
static inline void ll_pool_true_up_if_used(void)
{
	struct ll_device_state *dev;
	ll_pool_find_dev_if_used(&dev);
	if (dev)
		ll_pool_true_up_all(dev);
}

/* Notes that the program has added a node that allocates `bytes` to a graph (graph_memory.c). Pools and graphs share
 * one function that gives up their memory. */
void ll_pool_expect_graphs(uint64_t bytes);

/* Does cuMemPoolTrimTo for the program, while no thread uses a gap of a pool alone. */
ll_cu_result ll_pool_trim(struct ll_cu_mem_pool *handle, uint64_t keep_bytes);

/* ---- pools whose memory can be evicted ---- */

/*
 * Memory pools of an evictable program, made of memory that can be moved (backing.c).
 *
 * The memory of the driver's pools cannot be moved. So the library makes the blocks of such a pool itself. Each block
 * is an allocation of backing.c, and an extent of kind LL_EXTENT_BLOCK with is_backed. The driver's pool stays empty,
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

/* ---- memory of graphs ---- */

/*
 * Charges the memory of graphs that allocate. The driver reports one sum of this memory for each card.
 *
 * The driver allocates the memory at a launch, or at an upload before it. It does not report how much one graph will
 * take. A graph takes at most the sum of its allocating nodes' address ranges, each range rounded up to 32 MiB. The
 * library computes this sum when the graph is instantiated, and reserves it around each launch (pool_growth.c).
 *
 * A graph that was launched before has its memory and takes no new memory, if four conditions hold: it is launched in
 * the same stream, the driver has returned no graph memory to the card, no graph has moved to another stream, and no
 * graph has kept an allocation after its end. Otherwise the driver may need other memory (CUDA Programming Guide,
 * "Graph Memory Nodes"). If the four conditions hold, the launch reserves nothing.
 *
 * If the limit refuses the reserve, pools and graphs give up the memory that they keep, and the library tries again. If
 * the limit refuses again, the launch is refused.
 */

struct ll_graph_memory;

/* True if the process has graphs that allocate. One load. */
extern _Atomic bool ll_graph_memory_is_used;

/* Notes that the program has added a node that allocates `bytes` to a graph. */
void ll_graph_memory_expect(uint64_t bytes);

/* Returns the memory that an executable graph made from this graph will need. NULL: none, or there is no memory for the
 * object. */
struct ll_graph_memory *ll_graph_memory_of(struct ll_cu_graph *graph);
void ll_graph_memory_free(struct ll_graph_memory **memory);

/* Call it when the driver has made or changed the executable graph. Takes ownership of *memory and sets it to NULL. If
 * there is no memory to keep it, *memory stays the caller's. */
void ll_graph_memory_keep(const struct ll_cu_graph_exec *exec, struct ll_graph_memory **memory);

/* Call it before the executable graph is destroyed, because a later one may get its handle. */
void ll_graph_memory_forget(const struct ll_cu_graph_exec *exec);

/* The reservation around a launch or an upload. */
struct ll_graph_cover {
	struct ll_graph_memory *memory; /* NULL: nothing is reserved */
	struct ll_stream_place place;
	uint64_t epoch;    /* before the driver's call; has it changed since, a graph may have lost its memory */
	size_t entered;    /* number of cards in the driver's call */
	uint64_t reserved; /* one bit for each card with a reservation */
	bool is_certain;   /* the launch takes no new memory */
	bool is_refused;   /* the driver must not be called */
	bool is_over;      /* set at the end: graphs have more memory than was reserved and than the limit allows */
};
struct ll_graph_cover ll_graph_memory_begin(struct ll_graph_memory *memory, struct ll_cu_stream *stream);

/* Returns the memory that the executable graph needs, for ll_graph_memory_begin. */
struct ll_graph_memory *ll_graph_memory_find(const struct ll_cu_graph_exec *exec);

/* Notes that the driver has accepted the launch, or the upload if is_launched is false. */
void ll_graph_memory_note(struct ll_graph_cover *cover, bool is_launched);

/* Ends the reservation. Called when the scope is left in any way. */
void ll_graph_memory_end(struct ll_graph_cover *cover);

/* Corrects the charge of the graphs of all cards. */
void ll_graph_memory_true_up_all(void);

/* Gives up the memory that the card's graphs keep. Returns true if the charge has become less. */
bool ll_graph_memory_release(struct ll_device_state *dev);

/* Does cuDeviceGraphMemTrim for the program. */
ll_cu_result ll_graph_memory_trim(ll_cu_device device);

/* ---- the state of a pool, for pools.c and pool_growth.c alone ---- */

struct ll_pool {
	struct ll_cu_mem_pool *handle;
	struct ll_device_state *dev; /* NULL: the pool takes no memory of a card */
	struct ll_growth growth;
	uint64_t has_bytes; /* the reserved size that the driver last reported */
	struct ll_gaps gaps;
	uint32_t frees;  /* number of the last free, never 0 */
	unsigned calls;  /* number of allocations in progress */
	uint64_t serial; /* number of allocations that have begun */
	uint64_t base;   /* an address where a step of the pool begins; 0: not known */
	bool is_known;   /* no gap was forgotten since the pool was empty */
	uint64_t block_count;
	bool is_destroyed;
	bool is_over;                    /* the pool has more memory than the limit allows, and must return it */
	struct ll_movable_pool *movable; /* NULL: the pool's memory cannot be evicted */
	struct ll_lent *lent;            /* freed blocks that other processes have imported */
	_Atomic uint64_t peers;          /* other cards that may use its memory: one bit for each ordinal */
	struct ll_pool *next;
};

/* The lock of pool_growth.c guards it. */
struct ll_pool_card {
	struct ll_pool *pools;
	struct ll_movable_pool
	    *of_plain;   /* pool of plain allocations that were freed in stream order; NULL: none yet */
	unsigned asking; /* number of threads that ask the driver about streams */
};

/* Locks the card's pools. ll_growth_unlock unlocks them. */
struct ll_pool_card *ll_pool_card_lock(const struct ll_device_state *dev);

/* Returns the cards that have pools, one bit for each. */
uint64_t ll_pool_cards(void);

/* Reads an attribute of the driver's pool. *ret_value is 0 on failure. Returns the driver's error, or LL_CUDA_SUCCESS
 * if the driver does not have the function. */
static inline ll_cu_result ll_pool_read(const struct ll_pool *pool, enum ll_cu_mem_pool_attribute attribute,
					uint64_t *ret_value)
{
	*ret_value = 0;
	ll_cu_result status = ll_real()->cuMemPoolGetAttribute(pool->handle, attribute, ret_value);
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* Finds the streams with gaps of at least `bytes`, and asks the driver which of them have no work left. Any stream may
 * then use the gaps of these streams, unless the program has forbidden such reuse. Returns false if there is no such
 * stream. The caller does not hold the card's lock. */
bool ll_pool_ask_streams(struct ll_pool *pool, uint64_t bytes);

/* Forgets all gaps of the pool, because it may have returned memory to the card. The card's lock is held. */
void ll_pool_forget_gaps(struct ll_pool *pool);

/* Call it when the driver has put a block at this address and the pool has grown by grown_bytes for this block alone.
 * Notes the gap behind the block in the block's last step. The card's lock is held. */
void ll_pool_note_growth(struct ll_pool *pool, uint64_t address, uint64_t bytes, uint64_t grown_bytes);

/* Returns a new number for a block that was just freed. */
uint64_t ll_pools_new_free(void);

#endif
