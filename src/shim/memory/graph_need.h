/*
 * graph_need.h - what the allocating nodes of a graph can take of a card at most. Pure arithmetic.
 *
 * Each node has its addresses from its making on. Nodes whose memory is not needed at the same time may have the same
 * addresses, and then they have the same memory. The driver takes memory in steps of 32 MiB (doc/facts.md).
 */
#ifndef LOADLINE_SHIM_MEMORY_GRAPH_NEED_H
#define LOADLINE_SHIM_MEMORY_GRAPH_NEED_H

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"

/* What a node allocates. */
struct ll_graph_block {
	ll_cu_device device;
	uint64_t address, bytes;
};

/* Puts blocks in the order that ll_graph_need takes: by card, then by address. */
void ll_graph_need_sort(struct ll_graph_block *blocks, size_t count);

/* The bytes that the blocks of the first one's card take: each stretch of addresses that hang together, rounded up. The
 * blocks are sorted. *ret_count: how many are of that card. */
uint64_t ll_graph_need(const struct ll_graph_block *blocks, size_t count, size_t *ret_count);

#endif
