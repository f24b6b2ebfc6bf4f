/*
 * backing.h - plain allocations whose memory can be evicted from the card and resumed at the same addresses.
 *
 * Memory of the driver's cuMemAlloc cannot be separated from its address. So for an evictable program the library makes
 * plain allocations itself: it reserves addresses, makes physical memory, maps the memory, and allows access. An
 * allocation of more than 1 MiB has its own physical memory, in chunks of at most LL_BACKING_CHUNK_BYTES. Smaller
 * allocations share blocks of 2 MiB, as the driver's own small allocations do. The library keeps one empty block per
 * card while there is a context.
 *
 * If a context of one card enables access to a context of another card (cuCtxEnablePeerAccess), the driver lets the
 * first card use all cuMemAlloc memory of the second, allocated before or after. Mapped memory has its own access
 * rights, so the library gives each chunk the rights that peers.h keeps.
 *
 * Each chunk is an extent of kind LL_EXTENT_BACKING. The allocation itself, which the program sees and which is
 * charged, is an extent of kind LL_EXTENT_PLAIN with is_backed, or of kind LL_EXTENT_BLOCK if it was allocated in
 * stream order (movable_pool.h). Any thread may call these functions.
 */
#ifndef LOADLINE_SHIM_MEMORY_BACKING_H
#define LOADLINE_SHIM_MEMORY_BACKING_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

/* The calls for a chunk of this size take 0.05 ms, its copy 5 ms (doc/facts.md). */
#define LL_BACKING_CHUNK_BYTES UINT64_C(0x10000000)

/* Returns whether the driver and the card support such allocations. Asks the driver. */
bool ll_backing_is_possible(ll_cu_device device);

/* Returns whether an allocation of this size has its own memory, which is made chunk by chunk. */
bool ll_backing_has_chunks(uint64_t bytes);

/*
 * Makes an allocation as cuMemAlloc does. The address is a multiple of 512. The caller puts the allocation's extent
 * with the returned serial, which is never 0, into the map. Returns LL_CUDA_ERROR_OUT_OF_MEMORY if the card or the host
 * has no memory.
 *
 * wait: a function that is called when the card has no memory for a chunk. since_ns: when this began (ll_now_ns). It
 * returns true to try again. No lock is held, and the function may let the chunks that exist already be evicted and
 * resumed. NULL: the allocation does not wait. An allocation without chunks never waits.
 */
typedef bool ll_backing_wait(struct ll_device_state *dev, uint64_t since_ns);
ll_cu_result ll_backing_allocate(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
				 ll_cu_deviceptr *ret_address, uint32_t *ret_serial);

/* Returns a number that no other allocation has had; never 0. */
uint32_t ll_backing_new_serial(void);

/* Frees an allocation. The caller has removed its extent from the map. */
void ll_backing_free(const struct ll_extent *plain);

/* Frees all allocations that belong to a context that ends. Their extents stay in the map. */
void ll_backing_free_owned(uint64_t owner);

/* Returns the sum of all chunks of the card, in bytes. One load. */
uint64_t ll_backing_bytes(const struct ll_device_state *dev);

/* Allows another card to use all chunks of this card, including later ones, or withdraws this right. Continues after an
 * error. Returns the first error. */
ll_cu_result ll_backing_set_peer(struct ll_device_state *dev, ll_cu_device peer, bool is_allowed);

/*
 * ll_backing_make makes physical memory for a chunk, maps it at the chunk's address, and allows access to its card and
 * its peers. ll_backing_unmake unmaps the chunk and releases its memory. The code that moves chunks calls them while
 * the program's calls are shut (time/driver_calls.h).
 */
ll_cu_result ll_backing_make(ll_cu_device device, uint64_t address, uint64_t bytes, uint64_t *ret_handle);
void ll_backing_unmake(uint64_t address, uint64_t bytes, uint64_t handle);

/* Writes the new handle of a chunk that was made again into its extent. */
void ll_backing_note(uint64_t address, uint64_t handle);

#endif
