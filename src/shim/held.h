/*
 * held.h - a seat's memory in the ledger: reserved, charged and given back by whichever claim the seat has now.
 *
 * What the process has is kept here too, in parts whose sum it is, so that a claim which others have cleared
 * (ll_claim_is_lost) can be succeeded by one that is charged the same. While that is done all changes wait, some
 * 10 µs, and at most 0.2 s.
 */
#ifndef LOADLINE_SHIM_HELD_H
#define LOADLINE_SHIM_HELD_H

#include <stdint.h>

#include "shim/seat.h"

/* 0; -ENOMEM over the limit, also where the claim is lost, there is no other, and the tenant has a memory limit;
 * -ESTALE where it has none: nothing is charged then. */
int ll_held_reserve(struct ll_seat *seat, uint64_t bytes);

/* It is there already: charged whatever the limit says. */
void ll_held_charge(struct ll_seat *seat, uint64_t bytes);

void ll_held_release(struct ll_seat *seat, uint64_t bytes);

/*
 * Around a change of claims: no reservation or release is half-way in between, unless its thread is stopped. Returns
 * what the process has. One thread at a time.
 */
uint64_t ll_held_freeze(struct ll_seat *seat);
void ll_held_thaw(struct ll_seat *seat);

#endif
