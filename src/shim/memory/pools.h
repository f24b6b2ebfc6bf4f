/*
 * pools.h - charges memory pools. The charge of a pool is the memory that the pool has on the card, not the memory that
 * the program has allocated from the pool.
 *
 * A pool grows in steps of 32 MiB. Freed memory returns to the card when the program waits for it, or stays in the pool
 * (measured: doc/run.md). So the charge of a pool is the reserved size that the driver reports (the query takes 0.06
 * us). The library corrects the charge around each allocation, at frees, trims and synchronisations, and before it
 * reports the free memory to the program.
 *
 * An allocation makes a pool grow by at most its size, rounded up to steps. The library reserves this size around the
 * driver's call (growth.h), even if the pool has free memory, because the driver does not report which blocks are free.
 * If the limit refuses the reserve and the pool has a known gap for the allocation (gaps.h), the allocation is made
 * while no other one is made on the card. Otherwise the pools give up the memory that they keep, and the library tries
 * again.
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
 * (movable_pool.h).
 */
#ifndef LOADLINE_SHIM_MEMORY_POOLS_H
#define LOADLINE_SHIM_MEMORY_POOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/memory/extents.h"

struct ll_movable_pool;
struct ll_pool;

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

/* Notes that the program has added a node that allocates `bytes` to a graph (graph_memory.h). Pools and graphs share
 * one function that gives up their memory. */
void ll_pool_expect_graphs(uint64_t bytes);

/* Does cuMemPoolTrimTo for the program, while no thread uses a gap of a pool alone. */
ll_cu_result ll_pool_trim(struct ll_cu_mem_pool *handle, uint64_t keep_bytes);

#endif
