#include "shim/memory/charge.h"

#include <errno.h>

#include "base/clock.h"
#include "shim/charge_counter.h"
#include "shim/interpose/real.h"
#include "shim/memory/contexts.h"
#include "shim/pool_reserve.h"

#define PAUSE_NS (2 * LL_NS_PER_MS)

struct ll_place ll_place_current(void)
{
	struct ll_cu_context *context;
	struct ll_device_state *dev = ll_device_state_current(&context);
	return (struct ll_place){.dev = dev, .owner = dev ? ll_context_owner(dev, context) : 0};
}

struct ll_place ll_place_device(ll_cu_device device)
{
	struct ll_device_state *dev = ll_device_state_take(device);
	return (struct ll_place){.dev = dev, .is_refused = !dev && ll_device_state_refuses(device)};
}

struct ll_charge ll_charge_begin(struct ll_place place, uint64_t bytes)
{
	struct ll_charge charge = {.place = place, .is_refused = place.is_refused};
	if (!place.dev)
		return charge;
	int rc = ll_charge_counter_reserve(place.dev, bytes);
	if (rc == -ENOMEM && ll_pool_reserve_give_up(place.dev))
		rc = ll_charge_counter_reserve(place.dev, bytes);
	if (rc == -ENOMEM && ll_pool_reserve_of_siblings(place.dev))
		rc = ll_charge_counter_reserve(place.dev, bytes);
	charge.is_refused = rc == -ENOMEM;
	if (rc == 0)
		charge.bytes = bytes;
	else
		charge.place.dev = NULL;
	return charge;
}

bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns)
{
	uint64_t now_ns = ll_now_ns();
	*since_ns = *since_ns ? *since_ns : now_ns;
	if (!dev || now_ns - *since_ns >= LL_NS_PER_S)
		return false;
	uint64_t death_ns = ll_port_sweep(dev->ledger);
	if (!death_ns || ll_now_ns() - death_ns >= LL_NS_PER_S)
		return false;
	ll_sleep_until_ns(now_ns + PAUSE_NS);
	return true;
}

void ll_charge_end(struct ll_charge *charge)
{
	if (charge->place.dev && charge->bytes)
		ll_charge_counter_release(charge->place.dev, charge->bytes);
}

void ll_charge_correct(struct ll_charge *charge, uint64_t bytes)
{
	if (!charge->place.dev)
		return;
	if (bytes > charge->bytes)
		ll_charge_counter_charge(charge->place.dev, bytes - charge->bytes);
	else
		ll_charge_counter_release(charge->place.dev, charge->bytes - bytes);
	charge->bytes = bytes;
}

static void release(const struct ll_size *size)
{
	if (size->dev && size->bytes)
		ll_charge_counter_release(size->dev, size->bytes);
}

void ll_charge_keep(struct ll_charge *charge, enum ll_size_kind kind, uint64_t name)
{
	struct ll_size stale;
	struct ll_size size = {.bytes = charge->bytes, .dev = charge->place.dev, .owner = charge->place.owner};
	if (!charge->place.dev)
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
