/*
 * contexts.h - the contexts of this process: what each was charged, and which allocations go with it.
 *
 * A context takes memory of the card while it is made, and more when its limits are raised. What it takes is estimated
 * before (footprint.h) and reserved; where another context of the card is current the estimate is then replaced by
 * the difference in free memory, if that lies within half and one and a half of it: other processes allocate meanwhile.
 * Limits of stack, heap and printf are charged when they are set, though the last two are taken by the first kernel
 * that needs them.
 *
 * Each context has a number of its own, which no later one gets, though the driver may give its handle again.
 * Allocations are charged with the number, and go when it goes. Those of contexts that are not known (of green
 * ones) go with the card's primary one.
 *
 * One context of a card is made or ended at a time, as the driver does it too: so the first retain of a primary context
 * can be told from the others.
 */
#ifndef LOADLINE_SHIM_MEMORY_CONTEXTS_H
#define LOADLINE_SHIM_MEMORY_CONTEXTS_H

#include "shim/memory/charge.h"

/* The context's number; 0: not known. */
uint64_t ll_context_owner(const struct ll_device_state *dev, struct ll_cu_context *context);

struct ll_context_change {
	struct ll_device_state *dev; /* NULL: not governed */
	struct ll_charge charge;
	ll_cu_result refusal; /* ours, or then the driver's; LL_CUDA_SUCCESS: none */
	uint64_t free_bytes;  /* before; 0: not known */
	bool is_locked;
};

/*
 * Around making one on that card. The refusal is what the caller shall return: out of memory over the limit, not
 * permitted where limits were asked for and cannot be held (ll_device_state_refuses). The end is by scope, whatever
 * happens between.
 *
 *     LL_CONTEXT_CHANGE(change, ll_context_begin(device));
 *     if (change.refusal)
 *             return change.refusal;
 *     ...
 *     ll_context_made(&change, context);
 */
#define LL_CONTEXT_CHANGE(change, begin)                                                                               \
	struct ll_context_change change __attribute__((cleanup(ll_context_change_end))) = begin
struct ll_context_change ll_context_begin(ll_cu_device device);
void ll_context_made(struct ll_context_change *change, struct ll_cu_context *context);
void ll_context_change_end(struct ll_context_change *change);

/* cuCtxDestroy and its like: ends it by that call of the driver. */
ll_cu_result ll_context_destroy(struct ll_cu_context *context, ll_cu_result (*destroy)(struct ll_cu_context *));

/* cuCtxAttach, and cuCtxDetach: ends it with the last of its uses, of which making it was the first. */
ll_cu_result ll_context_attach(struct ll_cu_context **ret_context, unsigned flags);
ll_cu_result ll_context_detach(struct ll_cu_context *context);

/* The card's primary context. */
ll_cu_result ll_context_retain(struct ll_cu_context **ret_context, ll_cu_device device);
ll_cu_result ll_context_release(ll_cu_device device, ll_cu_result (*release)(ll_cu_device));
ll_cu_result ll_context_reset(ll_cu_device device, ll_cu_result (*reset)(ll_cu_device));

/* Green contexts: the driver makes the card's primary one with the first, and ends it with the last. */
ll_cu_result ll_context_create_green(struct ll_cu_green_context **ret_green, struct ll_cu_resource_desc *resources,
				     ll_cu_device device, unsigned flags);
ll_cu_result ll_context_destroy_green(struct ll_cu_green_context *green);

/* cuCtxSetLimit. */
ll_cu_result ll_context_set_limit(enum ll_cu_limit limit, size_t value);

#endif
