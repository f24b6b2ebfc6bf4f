/*
 * graph_need.h - computes the most memory that the allocating nodes of a graph can take on a card. Pure arithmetic.
 *
 * Each node has a fixed address range from the time when it is made. If the memory of two nodes is not needed at the
 * same time, they may have the same addresses and then share the memory. The driver takes memory in steps of 32 MiB
 * (doc/facts.md).
 */
#ifndef LOADLINE_SHIM_MEMORY_GRAPH_NEED_H
#define LOADLINE_SHIM_MEMORY_GRAPH_NEED_H

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"

/* The allocation of a node. */
struct ll_graph_block {
	ll_cu_device device;
	uint64_t address, bytes;
};

/* Sorts blocks by card and then by address, as ll_graph_need expects them. */
void ll_graph_need_sort(struct ll_graph_block *blocks, size_t count);

/* Returns the bytes that the blocks of the first block's card take: the sum of their joined address ranges, each
 * rounded up. The blocks are sorted. *ret_count: number of blocks of this card. */
uint64_t ll_graph_need(const struct ll_graph_block *blocks, size_t count, size_t *ret_count);

#endif
