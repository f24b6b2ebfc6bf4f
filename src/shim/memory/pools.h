/*
 * pools.h - memory pools. A pool is charged what it has of the card, not what the program has of the pool.
 *
 * A pool grows in steps of 32 MiB. Freed memory goes back to the card when the program waits for it, or stays in the
 * pool (measured: doc/run.md). So the charge of a pool is the size that the driver says it has reserved, which takes
 * 0.06 us to ask. The library corrects the charge around each allocation, at frees, trims and synchronisations, and
 * before it tells the program how much memory is free. If a pool has no room for an allocation, the library reserves
 * the growth that may come before it asks the driver: the size, rounded up to steps. If the limit refuses that, the
 * pools give up their reserve first. A pool may still grow over the limit, because it has no gap that is large enough.
 * Then the allocation is taken back and refused, and the pool's growth stays charged until the pool is trimmed.
 *
 * Pools belong to the process, not to a context. Pools of the host, and of other processes, are not charged. A pool of
 * managed memory is charged what it has reserved, wherever its pages are, to the card that it prefers, or else to the
 * card that was current when it was made. A destroyed pool is charged until its last block is freed.
 *
 * The memory of graphs has one sum for each card in the driver. The library asks for it in the same way as soon as the
 * program has graphs that allocate. A launch, or an upload before it, takes the memory. The driver does not tell how
 * much one graph will take; all graphs together take no more than their nodes ask for. If that may be more than the
 * limit has room for, the library uploads a graph before it launches it, and refuses the launch if the upload went over
 * the limit. Then it gives the memory back.
 *
 * An evictable program's pool of the card's own memory, if it cannot be exported, has a movable pool beside the
 * driver's: all that is allocated from it while no stream is captured is there (movable_pool.h).
 *
 * Each card has one lock, which is not held while the driver allocates or frees.
 */
#ifndef LOADLINE_SHIM_MEMORY_POOLS_H
#define LOADLINE_SHIM_MEMORY_POOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/memory/extents.h"

struct ll_cu_graph_exec;
struct ll_movable_pool;
struct ll_pool;

/* Whether the process has pools or graphs whose charges must be corrected. One load. */
extern _Atomic bool ll_pools_are_used;

/* The program has made a pool. A pool of the host is remembered too; it is charged nothing. */
void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props);

/* For an allocation from that pool; handle NULL: from the pool that the card's streams use. */
struct ll_pool_growth {
	struct ll_pool *pool; /* NULL: not governed */
	uint64_t bytes;
	ll_cu_result refusal; /* what the hook returns; LL_CUDA_SUCCESS: the driver is to be asked */
};
struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes);

/* Ends an allocation after the driver's call. False: the pool has grown over the limit. ll_pool_leave does so at the
 * end of a scope, if the driver's call did not return. */
bool ll_pool_end(struct ll_pool_growth *growth);
static inline void ll_pool_leave(struct ll_pool_growth *growth)
{
	ll_pool_end(growth);
}

/* The program has a block of the pool at that address. */
void ll_pool_keep(struct ll_pool *pool, ll_cu_deviceptr address, uint64_t bytes);

/* Before the driver frees a block: takes its extent out of the map. False: no block begins at that address. */
bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block);

/* After the driver's call. If the driver refused, the extent is put back. */
void ll_pool_freed(const struct ll_extent *block, ll_cu_result status);

/* The driver has destroyed a pool, whose extent was taken out of the map before. */
void ll_pool_destroyed(struct ll_pool *pool);

/* ---- memory that can be moved ---- */

/* The pool's movable pool; handle NULL: of the pool that the card's streams use. NULL: its memory stays on the card. */
struct ll_movable_pool *ll_pool_movable(const struct ll_device_state *dev, struct ll_cu_mem_pool *handle);

/* The same of a pool that the library knows already. */
struct ll_movable_pool *ll_pool_movable_if_known(struct ll_cu_mem_pool *handle);

/* The one of the card for plain allocations that were freed in the order of a stream. NULL: no memory. */
struct ll_movable_pool *ll_pool_of_plain(struct ll_device_state *dev);

/* The driver has trimmed the pool. And: it has changed which cards may use the pool's memory; returns its error if it
 * refuses the right to memory of ours. */
void ll_pool_trim_movable(struct ll_cu_mem_pool *handle, uint64_t keep_bytes);
ll_cu_result ll_pool_set_access(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_access_desc *accesses,
				size_t count);

/* ---- charges ---- */

/* Corrects all charges of that card, those of graphs too. Then it corrects those of every other card that has pools,
 * because a stream of one card may allocate and free memory of another card. */
void ll_pool_true_up_all(struct ll_device_state *dev);

/* Gives the state of the current context's card; NULL: there is nothing to correct. Returns the driver's error if it
 * does not say which card that is. */
static inline ll_cu_result ll_pool_find_dev_if_used(struct ll_device_state **ret_dev)
{
	struct ll_cu_context *context;
	*ret_dev = NULL;
	return atomic_load_explicit(&ll_pools_are_used, memory_order_relaxed) ? ll_device_state_find(&context, ret_dev)
									      : LL_CUDA_SUCCESS;
}

/* Corrects the charges, if there are any. To be called after a call that waits for the card. */
static inline void ll_pool_true_up_if_used(void)
{
	struct ll_device_state *dev;
	ll_pool_find_dev_if_used(&dev);
	if (dev)
		ll_pool_true_up_all(dev);
}

/* The program has added a node that allocates so many bytes to a graph. */
void ll_pool_expect_graphs(uint64_t bytes);

/* Whether that graph has its memory, or the card has room for all that the program's graphs may still take. */
bool ll_pool_has_room_for_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec);

/* After an upload of that graph. False: graphs have more than the limit has room for; what they do not use was given
 * back. */
bool ll_pool_keep_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec);

/* The graph is destroyed. A later graph may get its handle. */
void ll_pool_forget_graph(const struct ll_cu_graph_exec *exec);

#endif
