/*
 * pool_state.h - what pools.c and pool_gaps.c know of a pool. No other file includes it.
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
	struct ll_device_state *dev; /* NULL: the pool takes nothing of a card */
	struct ll_growth growth;
	uint64_t has_bytes; /* what the driver said last */
	struct ll_gaps gaps;
	uint32_t frees;  /* their number, but never 0 */
	unsigned calls;  /* allocations that are being made */
	uint64_t serial; /* how many have begun */
	uint64_t base;   /* where a step begins; 0: not known */
	bool is_known;   /* no gap was forgotten since it was empty */
	uint64_t block_count;
	bool is_destroyed;
	bool is_over;                    /* it has more than the limit has room for, and is to give it back */
	struct ll_movable_pool *movable; /* NULL: its memory stays on the card */
	struct ll_lent *lent;            /* freed blocks that other processes have imported */
	_Atomic uint64_t peers;          /* cards that may use its memory too: a bit for each ordinal */
	struct ll_pool *next;
};

/* The lock of growth.h guards it. */
struct ll_pool_card {
	struct ll_pool *pools;
	struct ll_movable_pool
	    *of_plain;   /* plain allocations that were freed in the order of a stream; NULL: none yet */
	unsigned asking; /* threads that ask the driver about streams */
};

/* ll_growth_unlock unlocks it. */
struct ll_pool_card *ll_pool_card_lock(const struct ll_device_state *dev);

/* Cards that have pools, a bit for each. */
uint64_t ll_pool_cards(void);

/* *ret_value is 0 if the driver does not say. Returns its error, or LL_CUDA_SUCCESS if it lacks the function. */
static inline ll_cu_result ll_pool_read(const struct ll_pool *pool, enum ll_cu_mem_pool_attribute attribute,
					uint64_t *ret_value)
{
	*ret_value = 0;
	ll_cu_result status = ll_real()->cuMemPoolGetAttribute(pool->handle, attribute, ret_value);
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* Asks the driver which streams have reached their frees of blocks that are large enough: their gaps are for any stream
 * then, unless the program has forbidden that. False: none has. The card's lock is not held. */
bool ll_pool_ask_streams(struct ll_pool *pool, uint64_t bytes);

/* The pool may have given memory back. The card's lock is held. */
void ll_pool_forget_gaps(struct ll_pool *pool);

/* The driver has put a block there, and the pool has grown by so many bytes for it alone: notes the gap behind the
 * block in its last step. The card's lock is held. */
void ll_pool_note_growth(struct ll_pool *pool, uint64_t address, uint64_t bytes, uint64_t grown_bytes);

/* The number of a block that was just freed. */
uint64_t ll_pools_new_free(void);

#endif
