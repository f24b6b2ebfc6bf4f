/*
 * gaps.h - the gaps of a memory pool that the library is certain of: blocks that the program has freed, and that nobody
 * has taken since. A pool that has such a gap does not grow for an allocation that fits it.
 *
 * The driver tells how much of a pool is free, but not in which blocks. So the library remembers the free blocks by
 * their addresses. It does not join two of them, and forgets all of them as soon as the pool may have given memory
 * back. It knows of fewer gaps than there are, never of more.
 *
 * Pure data: no lock, no driver. The caller has the pool's lock.
 */
#ifndef LOADLINE_SHIM_MEMORY_GAPS_H
#define LOADLINE_SHIM_MEMORY_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/memory/stream_place.h"

/* More gaps are not remembered. And: a pool's blocks lie so far apart (doc/facts.md). */
enum { LL_GAPS_MOST = 1024, LL_GAPS_BLOCK_BYTES = 512 };

struct ll_gap {
	uint64_t address;
	uint64_t bytes;
	struct ll_stream_place place; /* this stream alone may have it; all zero: any */
	uint64_t number;              /* the caller's; a later gap has a higher one */
	uint32_t expected;            /* nobody may have it yet: the caller's number of the free; else 0 */
};

/* All zero: empty. */
struct ll_gaps {
	struct ll_gap *gaps; /* by address */
	size_t count, capacity;
};

/* A block is about to be freed. expected: a number that no other free has at that time, not 0. */
void ll_gaps_expect(struct ll_gaps *gaps, uint64_t address, uint64_t bytes, uint32_t expected);

/* It was freed in the order of that stream. What nobody has taken since ll_gaps_expect is a gap now, of that number.
 * place NULL: it was not freed, or nobody knows when it may be had. */
void ll_gaps_settle(struct ll_gaps *gaps, uint32_t expected, const struct ll_stream_place *place, uint64_t number);

/* There is a gap for any stream. Nothing is known of that place yet. */
void ll_gaps_add_free(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Where the first gap behind the address begins; if the address lies in one, the address. UINT64_MAX: there is none. */
uint64_t ll_gaps_next(const struct ll_gaps *gaps, uint64_t address);

/* A block was allocated there. What it leaves of a gap stays one. */
void ll_gaps_remove(struct ll_gaps *gaps, uint64_t address, uint64_t bytes);

/* Whether an allocation in that stream fits one. Looks at every gap. */
bool ll_gaps_fit(const struct ll_gaps *gaps, uint64_t bytes, const struct ll_stream_place *place);

/* The program has waited for that stream. What was freed there is for any stream, up to the gap of that number: later
 * ones may have been freed since the wait began. */
void ll_gaps_waited(struct ll_gaps *gaps, const struct ll_stream_place *place, uint64_t last_number);

/* The stream has ended: a later one may get its handle. Its gaps are forgotten. */
void ll_gaps_forget_stream(struct ll_gaps *gaps, const struct ll_cu_stream *handle);

/* Forgets all. And: frees the memory too. */
void ll_gaps_clear(struct ll_gaps *gaps);
void ll_gaps_fini(struct ll_gaps *gaps);

#endif
