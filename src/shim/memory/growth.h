/*
 * growth.h - charges of memory that grows inside the driver: memory pools, and the memory of graphs.
 *
 * The driver decides by itself when a pool takes more of the card. So a call that may make it grow first reserves the
 * most that it may take, and the charge is corrected to what the driver has after the call. In between the bytes are
 * pending. So the driver never has more than is charged, and no charge passes the limit.
 *
 * If the limit refuses that reserve, a call may still be certain to take nothing new. Whether it is certain depends on
 * what other calls do at the same time, so the card can be closed: no other call of that kind begins meanwhile.
 *
 * Each card has one lock for all of this. It is not held while the driver allocates or frees.
 */
#ifndef LOADLINE_SHIM_MEMORY_GROWTH_H
#define LOADLINE_SHIM_MEMORY_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"

enum ll_growth_kind { LL_GROWTH_POOLS, LL_GROWTH_GRAPHS, LL_GROWTH_KINDS };

/* What a pool, or the memory of a card's graphs, is charged. The card's lock guards it. */
struct ll_growth {
	uint64_t charged_bytes; /* pending_bytes included */
	uint64_t pending_bytes; /* what calls that are in the driver may still take */
};

/* The thread cannot be cancelled while it has the lock: it calls the driver, and these calls may be cancellation
 * points. */
void ll_growth_lock(const struct ll_device_state *dev);
void ll_growth_unlock(const struct ll_device_state *dev);

/* ---- the card's lock is held; functions that wait let go of it meanwhile ---- */

/* A call that may make something grow begins, and ends. It first waits while the card is closed. */
void ll_growth_enter(const struct ll_device_state *dev, enum ll_growth_kind kind);
void ll_growth_leave(const struct ll_device_state *dev, enum ll_growth_kind kind);

/*
 * Closes the card for calls of that kind, and waits until those that have begun have ended: for most_ns in all, and not
 * at all if the thread is in such a call itself. *ret_calls: how many have not ended. False: another thread has it
 * closed, and nothing is changed.
 */
bool ll_growth_close(const struct ll_device_state *dev, enum ll_growth_kind kind, uint64_t most_ns,
		     unsigned *ret_calls);
void ll_growth_open(const struct ll_device_state *dev, enum ll_growth_kind kind);

/* Waits until a call has ended, or for most_ns. And: tells those that wait so. */
void ll_growth_wait(const struct ll_device_state *dev, uint64_t most_ns);
void ll_growth_tell(const struct ll_device_state *dev);

/* Whether the limit has room for so many bytes now. */
bool ll_growth_has_room(const struct ll_device_state *dev, uint64_t bytes);

/* Reserves bytes that a call may take. 0; -ENOMEM: they would pass the limit. Returns -ESTALE as
 * ll_charge_reserve does; then nothing is pending. */
int ll_growth_reserve(struct ll_device_state *dev, struct ll_growth *growth, uint64_t bytes);

/* A call takes nothing new, but for what somebody else may make the driver give back meanwhile: the charge does not get
 * less by that. */
void ll_growth_hold(struct ll_growth *growth, uint64_t bytes);

/* Such a call has ended: its bytes are pending no more. ll_growth_settle is to follow. */
void ll_growth_end(struct ll_growth *growth, uint64_t bytes);

/* Corrects the charge: the driver has so many bytes now. False: it has more than was charged, and than the limit has
 * room for. The rest is charged all the same. */
bool ll_growth_settle(struct ll_device_state *dev, struct ll_growth *growth, uint64_t has_bytes);

#endif
