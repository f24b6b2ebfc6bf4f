/*
 * chunks.h - the physical memory of this process that can be moved, chunk by chunk: the memory of plain allocations
 * (backing.h), and memory that the program made itself by cuMemCreate (physical.h).
 *
 * The code that moves chunks calls these functions while the program's calls are shut (time/driver_calls.h).
 */
#ifndef LOADLINE_SHIM_MEMORY_CHUNKS_H
#define LOADLINE_SHIM_MEMORY_CHUNKS_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

struct ll_chunk {
	enum ll_extent_kind kind; /* LL_EXTENT_BACKING or LL_EXTENT_PHYSICAL */
	uint64_t address; /* the address where the chunk is mapped; for memory of cuMemCreate: the handle that the
			     program has */
	uint64_t bytes;
	ll_cu_mem_handle handle; /* the driver's handle; valid while the chunk is on the card */
};

/*
 * Finds the next chunk of the card after the extent *at, and writes its extent to *at. Begin with an extent that is all
 * zero except for its kind, LL_CHUNKS_FIRST. Returns false if there are no more chunks.
 */
#define LL_CHUNKS_FIRST LL_EXTENT_PHYSICAL
bool ll_chunks_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_chunk *ret_chunk);

/* Returns the sum of all chunks of the card, in bytes. Visits every chunk of memory of cuMemCreate. */
uint64_t ll_chunks_bytes(const struct ll_device_state *dev);

/* Returns the sum of the charges for the memory in all chunks of the card. It is less than ll_chunks_bytes if small
 * allocations share chunks. */
uint64_t ll_chunks_charged_bytes(const struct ll_device_state *dev);

/* ll_chunk_unmake unmaps the chunk and releases its memory. ll_chunk_make makes memory for it, maps the memory with the
 * same rights, and writes the chunk's handle. The contents are undefined. */
void ll_chunk_unmake(const struct ll_chunk *chunk);
ll_cu_result ll_chunk_make(const struct ll_device_state *dev, struct ll_chunk *chunk);

/* Notes that a chunk that was made again is complete. */
void ll_chunk_note(const struct ll_chunk *chunk);

/* Copies bytes from an address of the host or of a card into a chunk that is on the card. A context of the card is
 * current. */
ll_cu_result ll_chunk_fill(const struct ll_device_state *dev, const struct ll_chunk *chunk, uint64_t offset,
			   ll_cu_deviceptr from, uint64_t bytes);

/*
 * Maps memory of any card at an address that the library reserves, for one copy. The card of dev may read and write it
 * there. On failure nothing stays mapped or reserved.
 */
ll_cu_result ll_chunk_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address);
void ll_chunk_unmap_aside(ll_cu_deviceptr address, uint64_t bytes);

#endif
