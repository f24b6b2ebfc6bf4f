/*
 * pool.h - the memory of the host to which programs' memory is moved: a file without a name (memfd), mapped, and pinned
 * for the card.
 *
 * Pinning is slow: 4 GB/s on the host of an H200, where the copies run at 55 GB/s (doc/facts.md). So a thread pins
 * ahead of need, in steps, up to what ll_mover_pool_want says. The pool never grows beyond its budget, nor so far that
 * the host would be short of memory.
 *
 * Room is first reserved, then taken: a move begins only when its room is reserved. All functions but new and free may
 * be called from one thread only.
 */
#ifndef LOADLINE_MOVER_POOL_H
#define LOADLINE_MOVER_POOL_H

#include <stdint.h>

#include "driver/library.h"
#include "mover/protocol.h"

/* Pinned in one piece: a copy must not cross the end of one. */
#define LL_MOVER_POOL_STEP_BYTES UINT64_C(0x4000000)

struct ll_mover_pool;

/* What the host can give: half of its memory, and no more than the process's control group allows, in whole steps; 0:
 * less than one step. */
uint64_t ll_mover_pool_default_budget(void);

/* context: in which memory is pinned; it outlives the pool. budget_bytes is rounded down to whole steps. */
int ll_mover_pool_new(const struct ll_cuda *cuda, struct ll_cu_context *context, uint64_t budget_bytes,
		      struct ll_mover_pool **ret_pool, struct ll_err *err);
void ll_mover_pool_free(struct ll_mover_pool *pool); /* NULL is fine */

int ll_mover_pool_fd(const struct ll_mover_pool *pool); /* of the file; the pool's */
uint64_t ll_mover_pool_budget(const struct ll_mover_pool *pool);
uint64_t ll_mover_pool_pinned(const struct ll_mover_pool *pool);

/* The address where the place's bytes are in this process. */
char *ll_mover_pool_at(const struct ll_mover_pool *pool, uint64_t offset);

/* Has so many bytes pinned, as far as budget and host allow. Returns at once. A host that was short of memory is asked
 * again after a second. */
void ll_mover_pool_want(struct ll_mover_pool *pool, uint64_t bytes);

/*
 * Reserves room for a move, and has it pinned. 0: the room is pinned. -EAGAIN: it is reserved, and being pinned; ask
 * ll_mover_pool_is_ready. -ENOSPC: the budget has no room for it, nothing is reserved; or the host is short of memory.
 */
int ll_mover_pool_reserve(struct ll_mover_pool *pool, uint64_t bytes);
void ll_mover_pool_unreserve(struct ll_mover_pool *pool, uint64_t bytes);

/* 0: what is reserved is pinned. -EAGAIN: not yet. -ENOSPC: the host is short of memory. */
int ll_mover_pool_is_ready(const struct ll_mover_pool *pool);

/* Takes places for so many reserved bytes, in the order of the file, or the largest first if they would be more than
 * LL_MOVER_PLACES. -ENOBUFS: they are too many even so. -ENOSPC: so much is not free. Nothing is taken then. give: they
 * are free again, and not reserved. */
int ll_mover_pool_take(struct ll_mover_pool *pool, uint64_t bytes, struct ll_mover_place ret_places[LL_MOVER_PLACES],
		       uint32_t *ret_count);
void ll_mover_pool_give(struct ll_mover_pool *pool, const struct ll_mover_place *places, uint32_t count);

#endif
