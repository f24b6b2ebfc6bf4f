/*
 * contexts.h - the contexts of this process, the charge of each, and the allocations that belong to it.
 *
 * A context takes memory of the card when it is made, and more when its limits are raised. The library estimates this
 * memory first (footprint.h) and reserves it. If another context of the card is current, the library later replaces the
 * estimate by the measured difference in free memory. It does so only if the difference is between 0.5 and 1.5 times
 * the estimate, because other processes may allocate at the same time. The limits of stack, heap and printf are charged
 * when they are set, although the driver allocates the heap and the printf buffer with the first kernel that needs
 * them.
 *
 * The driver may reuse a context's handle. So the library gives each context a number that no later context gets. The
 * number is stored with each allocation, and the allocation's charge ends with the context. Allocations of contexts
 * that the library does not know (those of green contexts) end with the card's primary context.
 *
 * The library makes or ends only one context of a card at a time, as the driver does. So it can distinguish the first
 * retain of a primary context from later ones.
 */
#ifndef LOADLINE_SHIM_MEMORY_CONTEXTS_H
#define LOADLINE_SHIM_MEMORY_CONTEXTS_H

#include "shim/memory/charge.h"

/* Returns the charge target of the calling thread's current context. */
struct ll_charge_target ll_charge_target_current(void);

/* Returns the context's number; 0: the library does not know the context. */
uint64_t ll_context_owner(const struct ll_device_state *dev, struct ll_cu_context *context);

/* Returns the context with that number; NULL: it has ended. Visits every context. */
struct ll_cu_context *ll_context_of_owner(uint64_t owner);

struct ll_context_change {
	struct ll_device_state *dev; /* NULL: not governed */
	struct ll_charge charge;
	ll_cu_result refusal; /* the result that the hook returns: the library's refusal or the driver's error;
				 LL_CUDA_SUCCESS: none */
	uint64_t free_bytes;  /* free memory before the call; 0: not known */
	bool is_locked;
};

/*
 * Use it around the driver's call that makes a context on the card. refusal is the result that the hook returns to the
 * program: out of memory if the limit has no room; not permitted if the user asked for limits that cannot be enforced
 * (ll_device_state_refuses). The change ends with its scope.
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

/* Does cuCtxDestroy and its variants. `destroy` is the driver's function. */
ll_cu_result ll_context_destroy(struct ll_cu_context *context, ll_cu_result (*destroy)(struct ll_cu_context *));

/* Do cuCtxAttach and cuCtxDetach. The context ends with its last use. The call that made it counts as the first use. */
ll_cu_result ll_context_attach(struct ll_cu_context **ret_context, unsigned flags);
ll_cu_result ll_context_detach(struct ll_cu_context *context);

/* Do cuDevicePrimaryCtxRetain, -Release and -Reset for the card's primary context. release and reset are the driver's
 * functions. */
ll_cu_result ll_context_retain(struct ll_cu_context **ret_context, ll_cu_device device);
ll_cu_result ll_context_release(ll_cu_device device, ll_cu_result (*release)(ll_cu_device));
ll_cu_result ll_context_reset(ll_cu_device device, ll_cu_result (*reset)(ll_cu_device));

/* Make and destroy a green context. The driver makes the card's primary context together with the first green context,
 * and ends it with the last one. */
ll_cu_result ll_context_create_green(struct ll_cu_green_context **ret_green, struct ll_cu_resource_desc *resources,
				     ll_cu_device device, unsigned flags);
ll_cu_result ll_context_destroy_green(struct ll_cu_green_context *green);

/* Does cuCtxSetLimit for the current context, and charges the memory that the limit needs. */
ll_cu_result ll_context_set_limit(enum ll_cu_limit limit, size_t value);

#endif
