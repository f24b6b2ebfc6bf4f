/*
 * host_pool.h - the memory of the host to which this process's memory on a card goes when it leaves.
 *
 * It is memory of the process itself: it counts where the process counts, and goes with it. Copies are fast into pages
 * that are registered with the driver, and registering is slow (doc/facts.md). So a thread makes pages ready ahead of
 * need, in steps, as far as the host has plenty. A move that needs more makes the rest, as far as the host has any.
 *
 * Nothing of it is inherited by a child or written to a core file.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_HOST_POOL_H
#define LOADLINE_SHIM_RESIDENCY_HOST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"

/* Registered in one piece: a copy must not cross the end of one. */
#define LL_POOL_STEP_BYTES UINT64_C(0x4000000)

struct ll_host_pool;

/* most_bytes: of the card. The pool is the caller's for as long as the process lives. NULL: no memory. */
struct ll_host_pool *ll_host_pool_new(const struct ll_device_state *dev, uint64_t most_bytes);

/* So many bytes may have to leave. Makes them ready ahead while that leaves half of the host's memory free, and gives
 * back what was not needed for a while. Returns at once. */
void ll_host_pool_want(struct ll_host_pool *pool, uint64_t bytes);

/*
 * A move needs so many bytes, until it needs another number. 0: they are ready. -EAGAIN: not yet, ask again. -ENOSPC:
 * the host has no memory for them; why says it. Only a sixteenth of the host's memory stays free.
 */
int ll_host_pool_need(struct ll_host_pool *pool, uint64_t bytes, char *why, size_t why_size);

uint64_t ll_host_pool_ready(struct ll_host_pool *pool);
char *ll_host_pool_base(const struct ll_host_pool *pool);

/* A context of the card, to register memory in; NULL: it has none. */
struct ll_cu_context *ll_host_pool_context(const struct ll_device_state *dev);

#endif
