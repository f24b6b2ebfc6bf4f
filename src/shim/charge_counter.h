/*
 * charge_counter.h - what the process has of a card's memory, and the reservations for it in the ledger.
 *
 * The counter is the sum of several parts, which threads change apart from each other. If others have cleared the claim
 * (ll_claim_is_lost), another claim is charged the sum. While that happens every change waits, for some 10 µs, and for
 * 0.2 s at most.
 */
#ifndef LOADLINE_SHIM_CHARGE_COUNTER_H
#define LOADLINE_SHIM_CHARGE_COUNTER_H

#include <stdint.h>

#include "shim/device_state.h"

/*
 * Reserves bytes in the ledger. 0; -ENOMEM: they would pass the limit, or the claim is lost, there is no other, and the
 * tenant has a memory limit; -ESTALE: the claim is lost and the tenant has no memory limit. Nothing is charged on an
 * error.
 */
int ll_charge_counter_reserve(struct ll_device_state *dev, uint64_t bytes);

/* Charges bytes that the process has already, whatever the limit says. */
void ll_charge_counter_charge(struct ll_device_state *dev, uint64_t bytes);

void ll_charge_counter_release(struct ll_device_state *dev, uint64_t bytes);

/*
 * Before and after a change of claims. In between no reservation or release is half-way, unless its thread is stopped.
 * Freeze returns what the process has. One thread at a time.
 */
uint64_t ll_charge_counter_freeze(struct ll_device_state *dev);
void ll_charge_counter_thaw(struct ll_device_state *dev);

#endif
