/*
 * charge.h - the steps that every hook of an allocating function takes before and after the driver's call.
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
 * The hook reserves the bytes before it calls the driver. If the hook does not keep the charge, the end of the scope
 * returns the bytes. This happens if the driver refused, if the thread was cancelled, or if an exception unwound the
 * scope.
 *
 * If the limit refuses the bytes, this process gives up the memory that its pools keep in reserve
 * (ll_device_state_give_up_reserve), and the hook tries to reserve the bytes again.
 *
 * If the driver does not report the context or the card of the call, the hook returns the driver's error, because the
 * allocation could not be charged.
 *
 * The driver may be out of memory although the limit has room, because a process has just died and its memory is not
 * free yet. So if a process with memory on the card died within the last second, LL_CHARGED_CALL asks the driver again
 * until that memory is free.
 *
 * A process may have no device state of the card, because loadlined does not reply or has no free claim. Then the
 * allocation is refused if the user asked for limits. Otherwise the allocation is made without a charge. If other
 * processes have cleared the claim, the next call that needs it takes a new claim (ll_device_state_retake). While there
 * is no claim, the program continues with the contexts that it has.
 */
#ifndef LOADLINE_SHIM_MEMORY_CHARGE_H
#define LOADLINE_SHIM_MEMORY_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/extents.h"
#include "shim/memory/footprint.h"

/* The target of a charge: the state of a card, and the context whose end frees the memory. */
struct ll_charge_target {
	struct ll_device_state *dev; /* NULL: nothing is charged */
	uint64_t owner;              /* the context's number (contexts.h); 0: the memory stays when contexts end */
	ll_cu_result refusal;        /* if dev is NULL: the user asked for limits, or the card is not known */
};

struct ll_charge {
	struct ll_charge_target target;
	uint64_t bytes;
	ll_cu_result refusal; /* the result that the hook must return; LL_CUDA_SUCCESS: call the driver */
};

/* Returns true if the hook must pass the call to the driver without a charge, because the process is not governed or
 * because the driver itself made the call. Two loads. */
static inline bool ll_charge_passes(void)
{
	return !ll_device_state_is_governed() || ll_reentry_is_inside();
}

/* Returns true if no driver can make this allocation, because ret_answer is NULL or because the bytes exceed any
 * address space. Then the hook passes the call to the driver, and the driver returns its own error. */
static inline bool ll_charge_is_hopeless(const void *ret_answer, uint64_t bytes)
{
	return !ret_answer || bytes >> 57;
}

/* Returns the target for memory of a card, named by its ordinal, that belongs to no context. Takes a claim on the card
 * if the process has none. */
struct ll_charge_target ll_charge_target_of_device(ll_cu_device device);

/* Does the same as ll_device_state_reserve. First it settles exported memory of dead processes, and memory that this
 * process carries although no process uses it any more (exported.h). */
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

/* Returns whether the hook must call the driver again. Waits 2 ms before it returns true, unless the process has given
 * up a reserve of movable memory. Returns false when a second has passed since the first call. *since_ns is 0 before
 * the first call. dev may be NULL. */
bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns);

/* Corrects a charge if the allocation took another size than was reserved. If it took more, the rest is charged even
 * above the limit, because the memory is already allocated. */
void ll_charge_correct(struct ll_charge *charge, uint64_t bytes);

/*
 * Call it when the driver has made the allocation. bytes: its size; 0: address is a handle. Puts its extent into the
 * map. If there is no memory for the extent, the allocation is not charged, because the library could not find the
 * charge when the allocation is freed.
 */
void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes);

/* The same for a plain allocation of memory that can be moved (backing.h). */
void ll_charge_keep_backed(struct ll_charge *charge, uint64_t address, uint64_t bytes, uint32_t serial);

/* Call it after the driver's call that frees an allocation whose extent ll_extents_remove has removed. Returns the
 * charge. If the driver refused, puts the extent into the map again. */
void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status);

/* Puts the extent into the map, and returns the charges of the extents that it overlaps. Returns false if there is no
 * memory for it. */
bool ll_charge_put(const struct ll_extent *extent);

/* Returns the charge of an extent that is no longer in the map. */
void ll_charge_release(const struct ll_extent *extent);

#endif
