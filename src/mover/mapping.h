/*
 * mapping.h - physical memory of the card or of a neighbour, mapped in a row in the mover; and how it is let go.
 *
 * To unmap memory and release it takes 1 ms for 512 MiB, as long as the copy to a neighbour (doc/facts.md). So a thread
 * of its own does that, the releaser, while other memory is mapped and copied.
 */
#ifndef LOADLINE_MOVER_MAPPING_H
#define LOADLINE_MOVER_MAPPING_H

#include <stdint.h>

#include "driver/library.h"
#include "mover/protocol.h"

struct ll_mapping {
	ll_cu_deviceptr address;
	uint64_t bytes;        /* reserved at the address; 0: nothing is */
	uint64_t mapped_bytes; /* from the beginning */
	uint32_t count;
	ll_cu_mem_handle handles[LL_MOVER_BATCH_HANDLES];
};

/* Reserves addresses. The mapping was all zero. */
ll_cu_result ll_mapping_reserve(struct ll_mapping *mapping, const struct ll_cuda *cuda, uint64_t bytes);

/* Maps the handle behind what is mapped already. The mapping has the handle from now on, also if this fails. */
ll_cu_result ll_mapping_add(struct ll_mapping *mapping, const struct ll_cuda *cuda, ll_cu_mem_handle handle,
			    uint64_t bytes);

/* Lets the device use all that is mapped. */
ll_cu_result ll_mapping_allow(const struct ll_mapping *mapping, const struct ll_cuda *cuda, ll_cu_device device);

struct ll_releaser;

/* Starts the thread. NULL: there is no memory for it, or no thread. The context outlives it. */
struct ll_releaser *ll_releaser_new(const struct ll_cuda *cuda, struct ll_cu_context *context);

/* Unmaps and releases all that it was given, and ends. NULL is fine. */
void ll_releaser_free(struct ll_releaser *releaser);

/* Unmaps the memory and releases its handles soon; at once if there is no memory for the note. No copy may use it. The
 * mapping is all zero then. */
void ll_releaser_put(struct ll_releaser *releaser, struct ll_mapping *mapping);

/* Waits until all is let go that it was given. */
void ll_releaser_wait(struct ll_releaser *releaser);

#endif
