/*
 * host_pool.h - host memory to which the memory of this process on a card is copied when it is evicted.
 *
 * It is memory of the process itself: it counts for the process, and is freed with it. Copies are fast into pages that
 * are registered with the driver, and registering is slow (doc/facts.md). So a thread makes pages ready in advance, in
 * steps, while the host has much free memory. An eviction that needs more makes the rest, while the host has any.
 *
 * A child does not inherit this memory, and a core file does not contain it.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_HOST_POOL_H
#define LOADLINE_SHIM_RESIDENCY_HOST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"

/* The size of a step. Each step is registered with the driver by itself, and a copy must not cross the end of a step.
 */
#define LL_POOL_STEP_BYTES UINT64_C(0x4000000)

struct ll_host_pool;

/* Makes the pool of a card. most_bytes: the memory of the card. The pool exists until the process ends. NULL: no
 * memory. */
struct ll_host_pool *ll_host_pool_new(const struct ll_device_state *dev, uint64_t most_bytes);

/* Up to so many bytes may be evicted. Makes pages for them ready in advance, while half of the host's memory stays
 * free, and frees pages that were not needed for a while. Returns at once. */
void ll_host_pool_want(struct ll_host_pool *pool, uint64_t bytes);

/*
 * An eviction needs so many bytes, until the next call. 0: they are ready. -EAGAIN: not yet, call again. -ENOSPC: the
 * host has no memory for them; why has the reason. At least a sixteenth of the host's memory stays free.
 */
int ll_host_pool_need(struct ll_host_pool *pool, uint64_t bytes, char *why, size_t why_size);

/* Returns the bytes that are ready, and the address of the first. */
uint64_t ll_host_pool_ready(struct ll_host_pool *pool);
char *ll_host_pool_base(const struct ll_host_pool *pool);

/* Returns a context of the card in which memory can be registered; NULL: the program has none. */
struct ll_cu_context *ll_host_pool_context(const struct ll_device_state *dev);

#endif
