/*
 * gaps.h - the gaps of a memory pool that the library knows: blocks that the program has freed and that were not
 * allocated again. If an allocation fits such a gap, the pool does not grow for it.
 *
 * The driver reports how much of a pool is free, but not which blocks. So the library keeps the addresses of the free
 * blocks. It does not join two of them. It forgets all of them when the pool may have returned memory to the card. It
 * may know fewer gaps than there are, never more.
 *
 * This file uses no lock and does not call the driver. The caller holds the pool's lock.
 */
#ifndef LOADLINE_SHIM_MEMORY_GAPS_H
#define LOADLINE_SHIM_MEMORY_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/memory/stream_place.h"

/* LL_GAPS_MOST: the most gaps that are kept. LL_GAPS_BLOCK_BYTES: the addresses of a pool's blocks are multiples of
 * this (doc/facts.md). */
enum { LL_GAPS_MOST = 1024, LL_GAPS_BLOCK_BYTES = 512 };

struct ll_gap {
	uint64_t address;
	uint64_t bytes;
	struct ll_stream_place place; /* only this stream may use the gap; all zero: any stream may */
	uint64_t number;              /* from the caller; a later gap has a higher number */
	uint32_t expected; /* not 0: no stream may use the gap yet; this is the caller's number of the free */
};

/* All zero: there are no gaps. */
struct ll_gaps {
	struct ll_gap *gaps; /* sorted by address */
	size_t count, capacity;
};

/* Notes that a block is about to be freed. expected: a number that no other free has at this time, not 0. */
void ll_gaps_expect(struct ll_gaps *gaps, uint64_t address, uint64_t bytes, uint32_t expected);

/* Notes that the block was freed in the order of the stream at `place`. The parts that were not allocated since
 * ll_gaps_expect are gaps with this number now. place NULL: the block was not freed, or the library does not know when
 * its memory may be used. Then its gaps are removed. */
void ll_gaps_settle(struct ll_gaps *gaps, uint32_t expected, const struct ll_stream_place *place, uint64_t number);

/* Adds a gap that any stream may use. The library must not know a gap at this address yet. */
void ll_gaps_add_free(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Returns the begin of the first gap after the address. If the address is in a gap, returns the address. UINT64_MAX:
 * there is none. */
uint64_t ll_gaps_next(const struct ll_gaps *gaps, uint64_t address);

/* Notes that a block was allocated at this address. The rest of a gap stays a gap. */
void ll_gaps_remove(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Returns whether an allocation in this stream fits a gap. Visits every gap. */
bool ll_gaps_fit(const struct ll_gaps *gaps, uint64_t bytes, const struct ll_stream_place *place);

/* Notes that the program has waited for the stream. Any stream may now use the gaps of this stream with numbers up to
 * last_number. Later gaps may have been freed after the wait began. */
void ll_gaps_waited(struct ll_gaps *gaps, const struct ll_stream_place *place, uint64_t last_number);

/* Removes the gaps of a stream that has ended, because a later stream may get its handle. */
void ll_gaps_forget_stream(struct ll_gaps *gaps, const struct ll_cu_stream *handle);

/* ll_gaps_clear removes all gaps. ll_gaps_fini also frees the memory. */
void ll_gaps_clear(struct ll_gaps *gaps);
void ll_gaps_fini(struct ll_gaps *gaps);

#endif
