/*
 * pools.h - memory pools. A pool is charged what it has of the card, not what the program has of the pool.
 *
 * A pool grows in steps of 32 MiB. Freed memory goes back to the card when the program waits for it, or stays in the
 * pool (measured: doc/run.md). So the charge of a pool is the size that the driver says it has reserved, which takes
 * 0.06 us to ask. The library corrects the charge around each allocation, at frees, trims and synchronisations, and
 * before it tells the program how much memory is free.
 *
 * An allocation grows a pool by its size, rounded up to steps, or by less. The library reserves that around the
 * driver's call (growth.h), whether the pool has free memory or not: the driver does not tell in which blocks that is.
 * If the limit refuses the reserve, and the pool surely has a gap for the allocation (gaps.h), the driver makes the
 * allocation while no other one is made on that card. Otherwise the pools give up what they keep, and the limit is
 * asked again.
 *
 * If a pool has grown by more than was foreseen, and over the limit, the allocation is taken back and refused. The
 * growth stays charged, and the pool is trimmed until it is within the limit.
 *
 * Pools belong to the process, not to a context. Pools of the host, and of other processes, are not charged. A pool of
 * managed memory is charged what it has reserved, wherever its pages are, to the card that it prefers, or else to the
 * card that was current when it was made. A destroyed pool is charged until its last block is freed.
 *
 * An evictable program's pool of the card's own memory, if it cannot be exported, has a movable pool beside the
 * driver's: all that is allocated from it while no stream is captured is there (movable_pool.h).
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

/* Whether the process has pools or graphs whose charges must be corrected. One load. */
extern _Atomic bool ll_pools_are_used;

/* The program has made a pool. A pool of the host is remembered too; it is charged nothing. */
void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props);

/* For an allocation from that pool; handle NULL: from the pool that the card's streams use. */
struct ll_pool_growth {
	struct ll_pool *pool; /* NULL: not governed */
	uint64_t bytes;
	uint64_t serial;      /* how many have begun; 0: others were being made */
	bool is_alone;        /* no other allocation is made on the card meanwhile */
	ll_cu_result refusal; /* what the hook returns; LL_CUDA_SUCCESS: the driver is to be asked */
};
struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes,
				    struct ll_cu_stream *stream);

/* Ends an allocation after the driver's call, which has put a block of so many bytes at the address; 0 bytes: it has
 * not. False: the pool has grown over the limit, and the block is to be freed. ll_pool_leave ends it if the driver's
 * call did not return. */
bool ll_pool_end(struct ll_pool_growth *growth, ll_cu_deviceptr address, uint64_t bytes);
void ll_pool_leave(struct ll_pool_growth *growth);

/* The pool has grown over the limit, and the block was freed: the pool is trimmed, now and as long as it takes. */
void ll_pool_shed(struct ll_pool *pool);

/* Before the driver frees a block: takes its extent out of the map. False: no block begins at that address. */
bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block);

/* After the driver's call. If the driver refused, the extent is put back. _in: it is freed in the order of a stream. */
void ll_pool_freed(const struct ll_extent *block, ll_cu_result status);
void ll_pool_freed_in(const struct ll_extent *block, ll_cu_result status, struct ll_cu_stream *stream);

/* The program has waited for a stream, as the driver's function without _ptsz takes it; or for something else.
 * last_free is what ll_pools_last_free returned before the wait. */
uint64_t ll_pools_last_free(void);
void ll_pools_waited_for_stream(struct ll_cu_stream *stream, uint64_t last_free);
void ll_pools_waited(void);

/* The stream is about to be destroyed; a context is, with all its streams. Later ones may get their handles. */
void ll_pools_forget_stream(struct ll_cu_stream *stream);
void ll_pools_forget_streams(void);

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

/* The program has added a node that allocates so many bytes to a graph (graph_memory.h). Pools and graphs give up what
 * they keep together. */
void ll_pool_expect_graphs(uint64_t bytes);

/* The driver's trim, for the program, while no thread has a gap of a pool to itself. */
ll_cu_result ll_pool_trim(struct ll_cu_mem_pool *handle, uint64_t keep_bytes);

#endif
