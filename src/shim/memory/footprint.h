/*
 * footprint.h - computes how much memory of the card an allocation takes. Pure arithmetic; all sizes are in bytes.
 *
 * The numbers were measured on an H200, driver 580 (doc/facts.md). If a size overflows, the result is UINT64_MAX, which
 * no limit allows.
 */
#ifndef LOADLINE_SHIM_MEMORY_FOOTPRINT_H
#define LOADLINE_SHIM_MEMORY_FOOTPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_memory.h"

#define LL_FOOTPRINT_BLOCK_BYTES UINT64_C(0x200000)         /* 2 MiB, the card's page */
#define LL_FOOTPRINT_POOL_STEP_BYTES UINT64_C(0x2000000)    /* 32 MiB, a pool's step */
#define LL_FOOTPRINT_POOL_BLOCK_BYTES UINT64_C(512)         /* a block of a pool takes a multiple of this */
#define LL_FOOTPRINT_GREEN_CONTEXT_BYTES UINT64_C(0xa00000) /* 10 MiB */

/* Rounds up to a multiple of unit, which is a power of two. 0 stays 0. */
uint64_t ll_footprint_round(uint64_t bytes, uint64_t unit);

/*
 * Returns the size of a plain allocation. An allocation of up to 1 MiB takes its own size, rounded up to 512 bytes. A
 * larger one takes blocks of 2 MiB. Small allocations share blocks of 2 MiB. So for each context the driver may use up
 * to one block more than the sum of these sizes, and also the gaps that freed allocations leave.
 */
uint64_t ll_footprint_plain(uint64_t bytes);

/* Returns the size of an allocation of cuMemAllocPitch with rows of width_bytes. Each row begins at a multiple of 512
 * bytes. */
uint64_t ll_footprint_pitched(uint64_t width_bytes, uint64_t height);

/*
 * Returns the size of an array, or of a mipmap with this number of levels (an array has 1). The hardware stores it in
 * tiles with rows of 64 bytes. The number of rows is rounded up to a tile: up to 128 rows, or 8 rows by 16 planes in
 * three dimensions. Returns 0 if the array takes no memory when it is made (a sparse one is mapped later), or if no
 * driver accepts its shape.
 */
uint64_t ll_footprint_array(const struct ll_cu_array3d_descriptor *shape, unsigned levels);

struct ll_footprint_card {
	unsigned sm_count;
	unsigned threads_per_sm;
};

/*
 * Returns the size of a new context: 2 MiB for each SM, and a stack for each thread that the card can run at the same
 * time. For an H200 with the default stack of 1024 bytes this is 528 MiB (measured: 526.8); without stacks 264 MiB
 * (measured: 262.8). For an A100 it is 432 MiB, for a T4 120 MiB.
 */
uint64_t ll_footprint_context(const struct ll_footprint_card *card, uint64_t stack_bytes);

/* Returns the size of a context's stacks. */
uint64_t ll_footprint_stacks(const struct ll_footprint_card *card, uint64_t stack_bytes);

#endif
