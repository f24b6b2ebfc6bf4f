/*
 * charge.h - what every hook that takes device memory does around the driver's call.
 *
 *     if (ll_charge_passes())
 *             return ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     LL_REENTRY_SCOPE();
 *     LL_CHARGE(charge, ll_place_current(), ll_footprint_plain(bytes));
 *     if (charge.is_refused)
 *             return LL_CUDA_ERROR_OUT_OF_MEMORY;
 *     ll_cu_result status = ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     if (status == LL_CUDA_SUCCESS)
 *             ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes);
 *     return status;
 *
 * The bytes are reserved in the ledger before the driver is asked. What is not kept by the end of the scope is given
 * back: the driver refused, or the thread was cancelled or thrown through.
 *
 * Where the driver is out of memory although the limit has room, and somebody on the card has died with memory within
 * the last second, it is asked again until the dead one's memory is free: LL_CHARGED_CALL instead of the bare call.
 *
 * When the limit refuses, what the process itself keeps in reserve is given up first (pool_reserve.h), and it is asked
 * once more.
 *
 * With no place on a card (no ledger, no claim free) it is refused where limits were asked for, and else goes on
 * ungoverned. A claim that was cleared from outside is taken again by the next that needs it (charge_counter.h); while
 * none is to be had, the program goes on with the contexts that it has.
 */
#ifndef LOADLINE_SHIM_MEMORY_CHARGE_H
#define LOADLINE_SHIM_MEMORY_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/extents.h"
#include "shim/memory/footprint.h"

/* Who is to be charged: a device state, and the context that the memory goes with. */
struct ll_place {
	struct ll_device_state *dev; /* NULL: nobody */
	uint64_t owner;              /* contexts.h; 0: the memory outlives contexts */
	bool is_refused;             /* device state is NULL, and limits were asked for */
};

struct ll_charge {
	struct ll_place place;
	uint64_t bytes;
	bool is_refused;
};

/* Nothing is governed, or the call is the driver's own: one load each. */
static inline bool ll_charge_passes(void)
{
	return !ll_device_state_is_governed() || ll_reentry_is_inside();
}

/* That of the calling thread's current context. */
struct ll_place ll_place_current(void);

/* On a card by its ordinal, of no context. The device state is taken if there is none. */
struct ll_place ll_place_device(ll_cu_device device);

#define LL_CHARGE(charge, place, bytes)                                                                                \
	struct ll_charge charge __attribute__((cleanup(ll_charge_end))) = ll_charge_begin(place, bytes)

struct ll_charge ll_charge_begin(struct ll_place place, uint64_t bytes);
void ll_charge_end(struct ll_charge *charge);

#define LL_CHARGED_CALL(status, dev, call)                                                                             \
	ll_cu_result status;                                                                                           \
	uint64_t status##_since_ns = 0;                                                                                \
	do {                                                                                                           \
		status = call;                                                                                         \
	} while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_charge_waits(dev, &status##_since_ns))

/* Whether it is worth asking again; waits 2 ms before it says so, and for a second in all. device state may be NULL. */
bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns);

/* The card took another size than was reserved: more is charged without asking, for it is there already. */
void ll_charge_correct(struct ll_charge *charge, uint64_t bytes);

/*
 * The driver has made the allocation: bytes at that address, or 0 bytes where the address is a handle. Its extent is
 * put into the map. Without memory for the extent nobody knows later how much to give back: the allocation goes
 * uncharged.
 */
void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes);

/* The driver was asked to free what ll_extents_take has taken out. The charge is given back, or, if the driver refused,
 * the extent is put again. */
void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status);

/* Puts the extent into the map, and gives back the charges of those in its way. False: there is no memory for it. */
bool ll_charge_put(const struct ll_extent *extent);

/* Gives back the charge of an extent that is out of the map. */
void ll_charge_release(const struct ll_extent *extent);

#endif
