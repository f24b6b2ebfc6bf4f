/*
 * growth.h - charges memory that grows inside the driver: memory pools, and the memory of graphs.
 *
 * The driver decides when a pool takes more memory of the card. So before a call that may make a pool grow, the library
 * reserves the most memory that the call may take. After the call it corrects the charge to the memory that the driver
 * has. Between the two the bytes are pending. So the driver never has more memory than is charged, and no charge
 * exceeds the limit.
 *
 * If the limit refuses this reserve, a call may still be certain to take no new memory. This certainty depends on other
 * calls at the same time. So the card can be closed for calls of this kind: while it is closed, no other such call
 * begins.
 *
 * Each card has one lock for these functions. It is not held while the driver allocates or frees.
 */
#ifndef LOADLINE_SHIM_MEMORY_GROWTH_H
#define LOADLINE_SHIM_MEMORY_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"

enum ll_growth_kind { LL_GROWTH_POOLS, LL_GROWTH_GRAPHS, LL_GROWTH_KINDS };

/* The charge of a pool, or of the memory of a card's graphs. The card's lock guards it. */
struct ll_growth {
	uint64_t charged_bytes; /* includes pending_bytes */
	uint64_t pending_bytes; /* the bytes that calls in the driver may still take */
};

/* Acquire and release the card's lock. The thread cannot be cancelled while it holds the lock, because it calls the
 * driver and these calls may be cancellation points. */
void ll_growth_lock(const struct ll_device_state *dev);
void ll_growth_unlock(const struct ll_device_state *dev);

/* ---- the caller holds the card's lock; functions that wait release it meanwhile ---- */

/* Note the begin and the end of a call that may make memory grow. ll_growth_enter first waits while the card is closed,
 * at most 2 s. */
void ll_growth_enter(const struct ll_device_state *dev, enum ll_growth_kind kind);
void ll_growth_leave(const struct ll_device_state *dev, enum ll_growth_kind kind);

/*
 * Closes the card for calls of this kind, and waits until the calls that have begun have ended. Waits for most_ns at
 * most. Does not wait if the thread itself is in such a call. *ret_calls: number of calls that have not ended. Returns
 * false if another thread has closed the card; then nothing is changed.
 */
bool ll_growth_close(const struct ll_device_state *dev, enum ll_growth_kind kind, uint64_t most_ns,
		     unsigned *ret_calls);
void ll_growth_open(const struct ll_device_state *dev, enum ll_growth_kind kind);

/* ll_growth_wait waits until a call has ended, or for most_ns. ll_growth_tell wakes the threads that wait. */
void ll_growth_wait(const struct ll_device_state *dev, uint64_t most_ns);
void ll_growth_tell(const struct ll_device_state *dev);

/* Returns whether the limit has room for `bytes` now. */
bool ll_growth_has_room(const struct ll_device_state *dev, uint64_t bytes);

/* Reserves the bytes that a call may take. Returns 0, or -ENOMEM if the sum would exceed the limit. Returns -ESTALE as
 * ll_charge_reserve does; then nothing is pending. */
int ll_growth_reserve(struct ll_device_state *dev, struct ll_growth *growth, uint64_t bytes);

/* For a call that takes no new memory. Another thread may make the driver return memory meanwhile, and the call may
 * take it. So this keeps the charge of these bytes until ll_growth_end. */
void ll_growth_hold(struct ll_growth *growth, uint64_t bytes);

/* Call it when a call has ended. Its bytes are no longer pending. Call ll_growth_settle next. */
void ll_growth_end(struct ll_growth *growth, uint64_t bytes);

/* Corrects the charge to has_bytes, the memory that the driver has now. Returns false if this is more than was charged
 * and than the limit allows. The excess is charged in that case too. */
bool ll_growth_settle(struct ll_device_state *dev, struct ll_growth *growth, uint64_t has_bytes);

#endif
