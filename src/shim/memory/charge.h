/*
 * charge.h - what every hook that takes device memory does around the driver's call.
 *
 *     if (ll_charge_passes())
 *             return ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     LL_REENTRY_SCOPE();
 *     LL_CHARGE(charge, ll_charge_target_current(), ll_footprint_plain(bytes));
 *     if (charge.refusal)
 *             return charge.refusal;
 *     ll_cu_result status = ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     if (status == LL_CUDA_SUCCESS)
 *             ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes);
 *     return status;
 *
 * The hook reserves the bytes before it asks the driver. If the hook does not keep the charge, the end of
 * the scope gives the bytes back: the driver refused, or the thread was cancelled or thrown through.
 *
 * If the limit refuses the bytes, this process gives up what its pools keep in reserve
 * (ll_device_state_give_up_reserve), and the bytes are reserved once more.
 *
 * If the driver does not say which context or card is meant, the hook returns the driver's own error: what it would do
 * could not be charged to anybody.
 *
 * The driver may be out of memory although the limit has room, because a process has just died and its memory is not
 * free yet. So if a process with memory on the card died within the last second, LL_CHARGED_CALL asks the driver again
 * until that memory is free.
 *
 * A process may have no device state of the card: loadlined does not answer, or has no free claim. Then the allocation
 * is refused if the user asked for limits; else it goes on ungoverned. If other processes have cleared the claim, the
 * next call that needs it takes a claim again (ll_device_state_retake). While there is none, the program goes on with
 * the contexts that it has.
 */
#ifndef LOADLINE_SHIM_MEMORY_CHARGE_H
#define LOADLINE_SHIM_MEMORY_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/extents.h"
#include "shim/memory/footprint.h"

/* Where a charge goes: the state of a card, and the context whose end frees the memory. */
struct ll_charge_target {
	struct ll_device_state *dev; /* NULL: nothing is charged */
	uint64_t owner;              /* the context's number (contexts.h); 0: the memory outlives contexts */
	ll_cu_result refusal; /* dev is NULL: the user asked for limits, or the driver did not say which card it is */
};

struct ll_charge {
	struct ll_charge_target target;
	uint64_t bytes;
	ll_cu_result refusal; /* what the hook returns; LL_CUDA_SUCCESS: the driver is to be asked */
};

/* True: the hook passes the call on, because the process is not governed, or because the driver made the call itself.
 * Two loads. */
static inline bool ll_charge_passes(void)
{
	return !ll_device_state_is_governed() || ll_reentry_is_inside();
}

/* True: no driver can make this allocation, because there is no place for the answer, or because the bytes are more
 * than any address space. The hook passes the call on for the driver's own answer, which a limit need not decide. */
static inline bool ll_charge_is_hopeless(const void *ret_answer, uint64_t bytes)
{
	return !ret_answer || bytes >> 57;
}

/* The target on a card, by its ordinal, for memory that belongs to no context. Takes a claim on the card if the process
 * has none. */
struct ll_charge_target ll_charge_target_of_device(ll_cu_device device);

/* As ll_device_state_reserve, after what died without notice, and what this process carries for nobody any more, was
 * looked at (exported.h). */
int ll_charge_reserve(struct ll_device_state *dev, uint64_t bytes);

#define LL_CHARGE(charge, target, bytes)                                                                               \
	struct ll_charge charge __attribute__((cleanup(ll_charge_end))) = ll_charge_begin(target, bytes)

struct ll_charge ll_charge_begin(struct ll_charge_target target, uint64_t bytes);
void ll_charge_end(struct ll_charge *charge);

#define LL_CHARGED_CALL(status, dev, call)                                                                             \
	ll_cu_result status;                                                                                           \
	uint64_t status##_since_ns = 0;                                                                                \
	do {                                                                                                           \
		status = call;                                                                                         \
	} while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_charge_waits(dev, &status##_since_ns))

/* Whether the driver shall be asked again. Waits 2 ms before it returns true, unless the process has given up a reserve
 * of movable memory. Returns false after a second in all. *since_ns is 0 before the first call. dev may be NULL. */
bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns);

/* Corrects a charge if the card took another size than was reserved. If it took more, the rest is charged whatever the
 * limit says, because the memory is taken already. */
void ll_charge_correct(struct ll_charge *charge, uint64_t bytes);

/*
 * The driver has made the allocation: so many bytes at that address, or 0 bytes if the address is a handle. Puts its
 * extent into the map. If there is no memory for the extent, the allocation goes uncharged, because nobody would know
 * later how much to give back.
 */
void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes);

/* The same for a plain allocation of memory that can be moved (backing.h). */
void ll_charge_keep_backed(struct ll_charge *charge, uint64_t address, uint64_t bytes, uint32_t serial);

/* The driver was asked to free an allocation whose extent ll_extents_remove has taken out. Gives its charge back, or
 * puts the extent back if the driver refused. */
void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status);

/* Puts the extent into the map, and gives back the charges of those in its way. False: there is no memory for it. */
bool ll_charge_put(const struct ll_extent *extent);

/* Gives back the charge of an extent that is not in the map any more. */
void ll_charge_release(const struct ll_extent *extent);

#endif
