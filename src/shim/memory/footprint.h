/*
 * footprint.h - what the card takes for what a program asks for. Arithmetic alone; bytes everywhere.
 *
 * Measured on an H200, driver 580 (doc/facts.md). Sizes that overflow are UINT64_MAX: no card has that, and no limit
 * lets it through.
 */
#ifndef LOADLINE_SHIM_MEMORY_FOOTPRINT_H
#define LOADLINE_SHIM_MEMORY_FOOTPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_memory.h"

#define LL_FOOTPRINT_BLOCK_BYTES UINT64_C(0x200000)         /* 2 MiB, the card's page */
#define LL_FOOTPRINT_POOL_STEP_BYTES UINT64_C(0x2000000)    /* 32 MiB, a pool's step */
#define LL_FOOTPRINT_GREEN_CONTEXT_BYTES UINT64_C(0xa00000) /* 10 MiB */

/* Up to the next multiple of unit, a power of two; 0 stays 0. */
uint64_t ll_footprint_round(uint64_t bytes, uint64_t unit);

/*
 * A plain allocation: up to 1 MiB what was asked, in steps of 512 bytes; more in blocks of 2 MiB. Small ones share
 * blocks of 2 MiB, so the card has up to one block more per context than they say, and what freeing leaves between
 * them.
 */
uint64_t ll_footprint_plain(uint64_t bytes);

/* Rows of width_bytes, as cuMemAllocPitch places them: each begins at a multiple of 512 bytes. */
uint64_t ll_footprint_pitched(uint64_t width_bytes, uint64_t height);

/*
 * An array or a mipmap of that many levels (an array has 1). The hardware keeps it in tiles: rows of 64 bytes; their
 * number is rounded to tiles of up to 128 rows, in three dimensions 8 rows by 16 planes. 0: it takes nothing when it is
 * made (sparse, mapped later), or is of a shape that no driver takes.
 */
uint64_t ll_footprint_array(const struct ll_cu_array3d_descriptor *shape, unsigned levels);

struct ll_footprint_card {
	unsigned sm_count;
	unsigned threads_per_sm;
};

/*
 * A context while it is made: 2 MiB for each SM, and a stack for each thread that the card can hold. An H200 with the
 * default stack of 1024 bytes: 528 MiB, where 526.8 were measured; 264 with no stack, where 262.8 were. An A100 comes
 * to 432 MiB, a T4 to 120.
 */
uint64_t ll_footprint_context(const struct ll_footprint_card *card, uint64_t stack_bytes);

/* The stacks alone. */
uint64_t ll_footprint_stacks(const struct ll_footprint_card *card, uint64_t stack_bytes);

#endif
