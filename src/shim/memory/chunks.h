/*
 * chunks.h - the physical memory of this process that can be moved, chunk by chunk: what is under plain allocations
 * (backing.h), and what the program made itself by cuMemCreate (physical.h).
 *
 * For whoever moves chunks while the program's calls are shut (time/driver_calls.h).
 */
#ifndef LOADLINE_SHIM_MEMORY_CHUNKS_H
#define LOADLINE_SHIM_MEMORY_CHUNKS_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

struct ll_chunk {
	enum ll_extent_kind kind; /* LL_EXTENT_BACKING or LL_EXTENT_PHYSICAL */
	uint64_t address;         /* where it is mapped; of the program's own memory: the handle that the program has */
	uint64_t bytes;
	ll_cu_mem_handle handle; /* the driver's; good while the chunk is on the card */
};

/*
 * Finds the next chunk of the card after the extent *at, and puts its extent there. Begin with an extent that is all
 * zero but for its kind, LL_CHUNKS_FIRST. False: there are no more.
 */
#define LL_CHUNKS_FIRST LL_EXTENT_PHYSICAL
bool ll_chunks_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_chunk *ret_chunk);

/* All chunks of the card, in bytes. Looks at those of the program's own memory. */
uint64_t ll_chunks_bytes(const struct ll_device_state *dev);

/* What is charged for the memory in all chunks of the card. Less than the chunks where small allocations share them. */
uint64_t ll_chunks_charged_bytes(const struct ll_device_state *dev);

/* Unmaps the chunk and lets its memory go; or makes memory for it and maps it with the same rights. make writes the
 * chunk's handle. Its bytes are not set. */
void ll_chunk_unmake(const struct ll_chunk *chunk);
ll_cu_result ll_chunk_make(const struct ll_device_state *dev, struct ll_chunk *chunk);

/* Notes that a chunk which was made again is complete. */
void ll_chunk_note(const struct ll_chunk *chunk);

/* Copies bytes at an address of the host, or of a card, into a chunk that is on the card. A context of the card is
 * current. */
ll_cu_result ll_chunk_fill(const struct ll_device_state *dev, const struct ll_chunk *chunk, uint64_t offset,
			   ll_cu_deviceptr from, uint64_t bytes);

/*
 * Maps memory of any card at an address of the library's own, where the card of dev reads and writes it, for as long as
 * a copy takes. Nothing stays behind if it fails.
 */
ll_cu_result ll_chunk_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address);
void ll_chunk_unmap_aside(ll_cu_deviceptr address, uint64_t bytes);

#endif
