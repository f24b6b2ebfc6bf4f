/*
 * ordered.h - memory that is allocated and freed in the order of a stream (cuMemAllocAsync, cuMemFreeAsync), made so
 * that it can be moved (memory/movable_pool.h).
 *
 * These stay with the driver, and are pinned: pools of managed memory and of the host, pools that can be exported,
 * pools of other processes, allocations in a stream that is being captured, and in a stream of a green context.
 *
 * New physical memory can be used at once, so an allocation usually puts nothing into its stream. If the limit or the
 * card has no room, the allocation gets a block that another stream frees but has not reached yet. Then its stream
 * waits for that free.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_ORDERED_H
#define LOADLINE_SHIM_RESIDENCY_ORDERED_H

#include "shim/memory/movable_pool.h"

/*
 * Returns the movable pool of an allocation, and its stream. handle NULL: the pool that dev's streams use. The
 * stream is as the driver's function without _ptsz takes it. NULL: the driver has to make the allocation.
 */
struct ll_movable_pool *ll_ordered_pool(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					struct ll_cu_stream *stream, struct ll_stream_place *ret_place);

/* Allocates a block, charges it, and adds it to the map of extents. If the card has no room, the thread requests room
 * from loadlined, and waits. */
ll_cu_result ll_ordered_allocate(struct ll_movable_pool *pool, const struct ll_stream_place *place,
				 ll_cu_deviceptr *ret_address, size_t bytes);

/* cuMemFreeAsync of a block or a plain allocation with is_backed, whose extent was taken out of the map. Puts it back
 * on an error. In a stream of a green context it waits for the stream. */
ll_cu_result ll_ordered_free(struct ll_extent *block, struct ll_cu_stream *stream);

/* cuMemFree of a block with is_backed, the same. Waits as the driver does; then any stream may have the block. */
ll_cu_result ll_ordered_free_now(const struct ll_extent *block);

/* The program has waited for a stream, or for more than one. Gives back what pools need not keep. `function` is the
 * driver's that waited: giving back counts as a call of it (time/driver_calls.h). */
void ll_ordered_waited_for_stream(const char *function, struct ll_cu_stream *stream);
void ll_ordered_waited(const char *function);

#endif
