#include "shim/memory/charge.h"

#include <errno.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/memory/exported.h"

#define PAUSE_NS (2 * LL_NS_PER_MS)

struct ll_charge_target ll_charge_target_of_device(ll_cu_device device)
{
	struct ll_charge_target target = {.dev = ll_device_state_get(device)};
	target.refusal = ll_device_state_answer_of(device);
	if (!target.dev && !target.refusal && ll_device_state_refuses(device))
		target.refusal = LL_CUDA_ERROR_OUT_OF_MEMORY;
	return target;
}

enum { TRIES = 3 };

/* Reserves bytes after dead processes are settled. The claim of a dead process may have been cleared just before. If
 * that process carried memory that others hold, another process must carry this charge first. */
static int reserve_after_the_dead(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = 0;
	for (int i = 0; i < TRIES; i++) {
		if (ll_exported_must_settle(dev))
			ll_exported_settle(dev);
		rc = ll_device_state_reserve(dev, bytes);
		if (rc < 0 || !ll_exported_must_settle(dev))
			return rc;
		if (i + 1 < TRIES)
			ll_device_state_release(dev, bytes);
	}
	return rc;
}

int ll_charge_reserve(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = reserve_after_the_dead(dev, bytes);
	return rc == -ENOMEM && ll_exported_settle(dev) ? reserve_after_the_dead(dev, bytes) : rc;
}

struct ll_charge ll_charge_begin(struct ll_charge_target target, uint64_t bytes)
{
	struct ll_charge charge = {.target = target, .refusal = target.refusal};
	if (!target.dev)
		return charge;
	int rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM && ll_device_state_give_up_reserve(target.dev))
		rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM && ll_device_state_request_siblings(target.dev, bytes))
		rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM)
		charge.refusal = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (rc == 0)
		charge.bytes = bytes;
	else
		charge.target.dev = NULL;
	return charge;
}

static bool is_recent(uint64_t death_ns)
{
	return death_ns && ll_now_ns() - death_ns < LL_NS_PER_S;
}

bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns)
{
	uint64_t now_ns = ll_now_ns();
	bool is_first = !*since_ns;
	*since_ns = is_first ? now_ns : *since_ns;
	if (!dev || now_ns - *since_ns >= LL_NS_PER_S)
		return false;
	/* The driver gives up the reserve of its own pools without a request. */
	if (is_first && ll_device_state_settings()->is_evictable && ll_device_state_give_up_reserve(dev))
		return true;
	if (!is_recent(ll_port_death_ns(dev->port)) && !is_recent(ll_port_sweep(dev->port)))
		return false;
	ll_sleep_until_ns(now_ns + PAUSE_NS);
	return true;
}

void ll_charge_end(struct ll_charge *charge)
{
	if (charge->target.dev && charge->bytes)
		ll_device_state_release(charge->target.dev, charge->bytes);
}

void ll_charge_correct(struct ll_charge *charge, uint64_t bytes)
{
	if (!charge->target.dev)
		return;
	if (bytes > charge->bytes)
		ll_device_state_charge(charge->target.dev, bytes - charge->bytes);
	else
		ll_device_state_release(charge->target.dev, charge->bytes - bytes);
	charge->bytes = bytes;
}

void ll_charge_release(const struct ll_extent *extent)
{
	if (extent->dev && extent->charged_bytes)
		ll_device_state_release(extent->dev, extent->charged_bytes);
	if (extent->dev && extent->shared)
		ll_exported_drop(extent->dev, extent->shared);
}

bool ll_charge_put(const struct ll_extent *extent)
{
	struct ll_extent stale;
	int rc;
	while ((rc = ll_extents_put(extent, &stale)) == -EEXIST)
		ll_charge_release(&stale);
	return rc == 0;
}

static void keep_charge(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes,
			uint32_t backed_serial)
{
	struct ll_extent extent = {.kind = kind,
				   .is_backed = backed_serial != 0,
				   .serial = backed_serial,
				   .address = address,
				   .bytes = bytes,
				   .charged_bytes = charge->bytes,
				   .dev = charge->target.dev,
				   .owner = charge->target.owner};
	if (extent.dev && ll_charge_put(&extent))
		charge->bytes = 0;
}

void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes)
{
	keep_charge(charge, kind, address, bytes, 0);
}

void ll_charge_keep_backed(struct ll_charge *charge, uint64_t address, uint64_t bytes, uint32_t serial)
{
	keep_charge(charge, LL_EXTENT_PLAIN, address, bytes, serial);
}

void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status)
{
	/* The driver still has the allocation, so no other one can have its address. */
	if (status == LL_CUDA_SUCCESS || !ll_charge_put(extent))
		ll_charge_release(extent);
}
