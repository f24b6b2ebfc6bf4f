#include "shim/memory/charge.h"

#include <errno.h>

#include "base/clock.h"
#include "shim/held.h"
#include "shim/interpose/real.h"
#include "shim/memory/contexts.h"
#include "shim/spare.h"

#define PAUSE_NS (2 * LL_NS_PER_MS)

struct ll_place ll_place_current(void)
{
	struct ll_cu_context *context;
	struct ll_seat *seat = ll_seat_current(&context);
	return (struct ll_place){.seat = seat, .owner = seat ? ll_context_owner(seat, context) : 0};
}

struct ll_place ll_place_device(ll_cu_device device)
{
	struct ll_seat *seat = ll_seat_take(device);
	return (struct ll_place){.seat = seat, .is_refused = !seat && ll_seat_refuses(device)};
}

struct ll_charge ll_charge_begin(struct ll_place place, uint64_t bytes)
{
	struct ll_charge charge = {.place = place, .is_refused = place.is_refused};
	if (!place.seat)
		return charge;
	int rc = ll_held_reserve(place.seat, bytes);
	if (rc == -ENOMEM && ll_spare_give_up(place.seat))
		rc = ll_held_reserve(place.seat, bytes);
	if (rc == -ENOMEM && ll_spare_of_siblings(place.seat))
		rc = ll_held_reserve(place.seat, bytes);
	charge.is_refused = rc == -ENOMEM;
	if (rc == 0)
		charge.bytes = bytes;
	else
		charge.place.seat = NULL;
	return charge;
}

bool ll_charge_waits(struct ll_seat *seat, uint64_t *since_ns)
{
	uint64_t now_ns = ll_now_ns();
	*since_ns = *since_ns ? *since_ns : now_ns;
	if (!seat || now_ns - *since_ns >= LL_NS_PER_S)
		return false;
	ll_ledger_sweep(seat->ledger);
	uint64_t death_ns = ll_ledger_death_ns(seat->ledger);
	if (!death_ns || ll_now_ns() - death_ns >= LL_NS_PER_S)
		return false;
	ll_sleep_until_ns(now_ns + PAUSE_NS);
	return true;
}

void ll_charge_end(struct ll_charge *charge)
{
	if (charge->place.seat && charge->bytes)
		ll_held_release(charge->place.seat, charge->bytes);
}

void ll_charge_correct(struct ll_charge *charge, uint64_t bytes)
{
	if (!charge->place.seat)
		return;
	if (bytes > charge->bytes)
		ll_held_charge(charge->place.seat, bytes - charge->bytes);
	else
		ll_held_release(charge->place.seat, charge->bytes - bytes);
	charge->bytes = bytes;
}

static void release(const struct ll_size *size)
{
	if (size->seat && size->bytes)
		ll_held_release(size->seat, size->bytes);
}

void ll_charge_keep(struct ll_charge *charge, enum ll_size_kind kind, uint64_t name)
{
	struct ll_size stale;
	struct ll_size size = {.bytes = charge->bytes, .seat = charge->place.seat, .owner = charge->place.owner};
	if (!charge->place.seat)
		return;
	/* Without memory for the row it is not known how much to give back when it is freed: it goes uncharged. */
	if (!ll_sizes_put(kind, name, &size, &stale))
		return;
	charge->bytes = 0;
	release(&stale);
}

bool ll_charge_take(enum ll_size_kind kind, uint64_t name, struct ll_size *ret_size)
{
	return ll_sizes_take(kind, name, ret_size);
}

void ll_charge_freed(enum ll_size_kind kind, uint64_t name, const struct ll_size *size, ll_cu_result status)
{
	/* Meanwhile nobody else can have got that name: the driver still has it. */
	if (status == LL_CUDA_SUCCESS || !ll_sizes_put(kind, name, size, NULL))
		release(size);
}
