/*
 * backing.h - plain allocations whose memory can be taken off the card and put back at the same addresses.
 *
 * The driver's cuMemAlloc ties memory to its address. For an evictable program the library makes plain allocations by
 * itself instead: it reserves addresses, makes physical memory, maps it, and allows access. An allocation of more than
 * 1 MiB has physical memory of its own, cut into chunks of at most LL_BACKING_CHUNK_BYTES. Smaller ones share blocks of
 * 2 MiB, as the driver's own do; one empty block of a card is kept while there is a context.
 *
 * The driver lets a card use cuMemAlloc's memory of another card as soon as a context of the one has enabled access to
 * a context of the other (cuCtxEnablePeerAccess), whether the memory was allocated before or after. Mapped memory has
 * rights of its own, so the library gives each chunk the rights that peers.h knows.
 *
 * Each chunk is an extent of kind LL_EXTENT_BACKING. What the program sees and what is charged is an extent of kind
 * LL_EXTENT_PLAIN with is_backed, or LL_EXTENT_BLOCK if it was allocated in the order of a stream (movable_pool.h). All
 * functions may be called by any thread.
 */
#ifndef LOADLINE_SHIM_MEMORY_BACKING_H
#define LOADLINE_SHIM_MEMORY_BACKING_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

/* A chunk's calls take 0.05 ms, its copy 5 ms (doc/facts.md). */
#define LL_BACKING_CHUNK_BYTES UINT64_C(0x10000000)

/* Whether the driver and the card can do this. Asks the driver. */
bool ll_backing_is_possible(ll_cu_device device);

/* Whether an allocation of so many bytes has memory of its own, which is made chunk by chunk. */
bool ll_backing_has_chunks(uint64_t bytes);

/*
 * As cuMemAlloc: the address is a multiple of 512. The caller keeps the extent, with the serial, which is never 0.
 * LL_CUDA_ERROR_OUT_OF_MEMORY: the card or the host has no memory.
 *
 * wait: called when the card has no memory for a chunk, with the time since when (ll_now_ns). True: try again. It is
 * called without a lock, and may let the chunks that are made already leave the card and return. NULL: the allocation
 * does not wait. One without chunks never does.
 */
typedef bool ll_backing_wait(struct ll_device_state *dev, uint64_t since_ns);
ll_cu_result ll_backing_allocate(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
				 ll_cu_deviceptr *ret_address, uint32_t *ret_serial);

/* A number that no other allocation has had; never 0. */
uint32_t ll_backing_new_serial(void);

/* Frees an allocation whose extent the caller has taken out of the map. */
void ll_backing_free(const struct ll_extent *plain);

/* The context ends: frees all allocations that belong to it. Their extents stay. */
void ll_backing_free_owned(uint64_t owner);

/* All chunks of the card, in bytes. One load. */
uint64_t ll_backing_bytes(const struct ll_device_state *dev);

/* Lets another card use all chunks of this card, those made later too; or not any more. The first error of a chunk; the
 * others are done all the same. */
ll_cu_result ll_backing_set_peer(struct ll_device_state *dev, ll_cu_device peer, bool is_allowed);

/*
 * Makes physical memory for a chunk, maps it at the chunk's address, and allows access to its card and its peers; or
 * unmaps it and lets the memory go. For whoever moves chunks while the program's calls are shut (time/driver_calls.h).
 */
ll_cu_result ll_backing_make(ll_cu_device device, uint64_t address, uint64_t bytes, uint64_t *ret_handle);
void ll_backing_unmake(uint64_t address, uint64_t bytes, uint64_t handle);

/* Notes the handle of a chunk that was made again. */
void ll_backing_note(uint64_t address, uint64_t handle);

#endif
