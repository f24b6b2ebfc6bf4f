/*
 * pool_state.h - the state of a pool, for pools.c and pool_gaps.c. No other file includes it.
 */
#ifndef LOADLINE_SHIM_MEMORY_POOL_STATE_H
#define LOADLINE_SHIM_MEMORY_POOL_STATE_H

#include "shim/interpose/real.h"
#include "shim/memory/gaps.h"
#include "shim/memory/growth.h"
#include "shim/memory/lent.h"
#include "shim/memory/pools.h"

struct ll_pool {
	struct ll_cu_mem_pool *handle;
	struct ll_device_state *dev; /* NULL: the pool takes no memory of a card */
	struct ll_growth growth;
	uint64_t has_bytes; /* the reserved size that the driver last reported */
	struct ll_gaps gaps;
	uint32_t frees;  /* number of the last free, never 0 */
	unsigned calls;  /* number of allocations in progress */
	uint64_t serial; /* number of allocations that have begun */
	uint64_t base;   /* an address where a step of the pool begins; 0: not known */
	bool is_known;   /* no gap was forgotten since the pool was empty */
	uint64_t block_count;
	bool is_destroyed;
	bool is_over;                    /* the pool has more memory than the limit allows, and must return it */
	struct ll_movable_pool *movable; /* NULL: the pool's memory cannot be evicted */
	struct ll_lent *lent;            /* freed blocks that other processes have imported */
	_Atomic uint64_t peers;          /* other cards that may use its memory: one bit for each ordinal */
	struct ll_pool *next;
};

/* The lock of growth.h guards it. */
struct ll_pool_card {
	struct ll_pool *pools;
	struct ll_movable_pool
	    *of_plain;   /* pool of plain allocations that were freed in stream order; NULL: none yet */
	unsigned asking; /* number of threads that ask the driver about streams */
};

/* Locks the card's pools. ll_growth_unlock unlocks them. */
struct ll_pool_card *ll_pool_card_lock(const struct ll_device_state *dev);

/* Returns the cards that have pools, one bit for each. */
uint64_t ll_pool_cards(void);

/* Reads an attribute of the driver's pool. *ret_value is 0 on failure. Returns the driver's error, or LL_CUDA_SUCCESS
 * if the driver does not have the function. */
static inline ll_cu_result ll_pool_read(const struct ll_pool *pool, enum ll_cu_mem_pool_attribute attribute,
					uint64_t *ret_value)
{
	*ret_value = 0;
	ll_cu_result status = ll_real()->cuMemPoolGetAttribute(pool->handle, attribute, ret_value);
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* Finds the streams with gaps of at least `bytes`, and asks the driver which of them have no work left. Any stream may
 * then use the gaps of these streams, unless the program has forbidden such reuse. Returns false if there is no such
 * stream. The caller does not hold the card's lock. */
bool ll_pool_ask_streams(struct ll_pool *pool, uint64_t bytes);

/* Forgets all gaps of the pool, because it may have returned memory to the card. The card's lock is held. */
void ll_pool_forget_gaps(struct ll_pool *pool);

/* Call it when the driver has put a block at this address and the pool has grown by grown_bytes for this block alone.
 * Notes the gap behind the block in the block's last step. The card's lock is held. */
void ll_pool_note_growth(struct ll_pool *pool, uint64_t address, uint64_t bytes, uint64_t grown_bytes);

/* Returns a new number for a block that was just freed. */
uint64_t ll_pools_new_free(void);

#endif
