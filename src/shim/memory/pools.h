/*
 * pools.h - memory pools: charged for what they have of the card, not for what the program has of them.
 *
 * A pool grows in steps of 32 MiB and gives freed memory back when somebody waits for it, or keeps it (measured:
 * doc/run.md). So a pool's charge is what the driver says it has reserved (0.06 µs to ask), made true whenever we pass
 * by: around each allocation, at frees, trims and synchronisations, and before the program is told what is free. Before
 * an allocation that the pool has no room for, the growth that may come is reserved: the size, up to full steps. When
 * the limit refuses, what pools keep in reserve is given up first. Should a pool without a large enough gap grow all
 * the same, and over the limit, the allocation is taken back and refused; the pool's growth stays charged until it is
 * trimmed.
 *
 * Pools belong to the process, not to a context. Those of the host and of other processes take nothing of ours. One of
 * managed memory is charged what it has reserved, wherever its pages are, as managed memory is: to the card that it
 * prefers, else to the one that was current when it was made. A destroyed pool is charged until its last block is
 * freed.
 *
 * Memory of graphs has no address of its own at the driver's but one sum per card, asked in the same way once the
 * program has graphs that allocate. A launch takes it, or an upload before. What one graph will take nobody says, only
 * that all together take no more than their nodes. So where that may be more than the limit has room for, a graph is
 * uploaded before it is launched, and refused if that went over the limit: its memory is given back then.
 *
 * One lock per card, not held while the driver allocates or frees.
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
struct ll_pool;

/* Whether there is anything to make true: one load. */
extern _Atomic bool ll_pools_are_used;

/* A pool that the program has made; one of the host is remembered as one that takes nothing. */
void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props);

/* An allocation from that pool, or from the one that a stream of that card takes from (NULL). */
struct ll_pool_growth {
	struct ll_pool *pool; /* NULL: not governed */
	uint64_t bytes;
	bool is_refused;
};
struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes);

/* After the driver's call; false: it has grown over the limit. Also by scope, for a call that did not come back. */
bool ll_pool_end(struct ll_pool_growth *growth);
static inline void ll_pool_leave(struct ll_pool_growth *growth)
{
	ll_pool_end(growth);
}

/* The program has a block of it there. */
void ll_pool_keep(struct ll_pool *pool, ll_cu_deviceptr address, uint64_t bytes);

/* Before the driver frees a block: its extent is taken out. False: no block begins there. */
bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block);

/* After it: if the driver refused, the extent is put again. */
void ll_pool_freed(const struct ll_extent *block, ll_cu_result status);

/* Around the end of a pool. */
struct ll_pool *ll_pool_find(struct ll_cu_mem_pool *handle);
void ll_pool_destroyed(struct ll_pool *pool);

/*
 * Makes all charges of that card true, those of graphs too; or of it and of every other card that has pools, for a
 * stream of one card may take and free memory of another's.
 */
void ll_pool_true_up(struct ll_device_state *dev);
void ll_pool_true_up_all(struct ll_device_state *dev);

/* Of the current context; NULL: there is nothing to make true. */
static inline struct ll_device_state *ll_pool_dev_if_used(void)
{
	struct ll_cu_context *context;
	return atomic_load_explicit(&ll_pools_are_used, memory_order_relaxed) ? ll_device_state_current(&context)
									      : NULL;
}

/* After whatever waits for the card. */
static inline void ll_pool_true_up_if_used(void)
{
	struct ll_device_state *dev = ll_pool_dev_if_used();
	if (dev)
		ll_pool_true_up_all(dev);
}

/* The program has a node of a graph that allocates so much. */
void ll_pool_expect_graphs(uint64_t bytes);

/* Whether that graph has its memory, or the card has room for all that the program's graphs may still take. */
bool ll_pool_has_room_for_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec);

/* After an upload of that graph. False: graphs have more than the limit has room for; what they do not use was given
 * back. */
bool ll_pool_keep_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec);

/* It is destroyed, and its name may be another's. */
void ll_pool_forget_graph(const struct ll_cu_graph_exec *exec);

#endif
