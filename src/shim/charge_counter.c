#include "shim/charge_counter.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "ledger/port.h"

#define PAUSE_NS (20 * LL_NS_PER_US)
#define LONGEST_NS (200 * LL_NS_PER_MS)

static struct ll_charge_counter_part *own_part(struct ll_device_state *dev)
{
	uint64_t self = (uint64_t)pthread_self();
	return &dev->parts[(self * UINT64_C(0x9e3779b97f4a7c15)) >> 60];
}

_Static_assert(LL_CHARGE_COUNTER_PARTS == 16, "four bits choose one");

static struct ll_claim *begin_change(struct ll_device_state *dev, struct ll_charge_counter_part *part)
{
	uint64_t give_up_ns = 0;
	for (;;) {
		atomic_fetch_add(&part->changing, 1);
		if (!atomic_load(&dev->is_frozen))
			break;
		uint64_t now_ns = ll_now_ns();
		give_up_ns = give_up_ns ? give_up_ns : now_ns + LONGEST_NS;
		if (now_ns >= give_up_ns)
			break;
		atomic_fetch_sub(&part->changing, 1);
		ll_sleep_until_ns(now_ns + PAUSE_NS);
	}
	return atomic_load(&dev->claim);
}

static void end_change(struct ll_charge_counter_part *part)
{
	atomic_fetch_sub(&part->changing, 1);
}

uint64_t ll_charge_counter_freeze(struct ll_device_state *dev)
{
	uint64_t now_ns = ll_now_ns(), give_up_ns = now_ns + LONGEST_NS, sum = 0;
	atomic_store(&dev->is_frozen, true);
	for (int i = 0; i < LL_CHARGE_COUNTER_PARTS; i++) {
		while (atomic_load(&dev->parts[i].changing) && now_ns < give_up_ns) {
			ll_sleep_until_ns(now_ns + PAUSE_NS);
			now_ns = ll_now_ns();
		}
	}
	for (int i = 0; i < LL_CHARGE_COUNTER_PARTS; i++)
		sum += atomic_load(&dev->parts[i].charged_bytes);
	return sum;
}

void ll_charge_counter_thaw(struct ll_device_state *dev)
{
	atomic_store(&dev->is_frozen, false);
}

static int reserve_once(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter_part *part = own_part(dev);
	int rc = ll_port_reserve(begin_change(dev, part), bytes);
	if (rc == 0)
		atomic_fetch_add(&part->charged_bytes, bytes);
	end_change(part);
	return rc;
}

/* `loadline set` changes the row. Where the row is gone, the settings are what the next one is made from. */
static bool has_memory_limit(const struct ll_device_state *dev)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	uint64_t limit_bytes;
	if (!settings)
		return false;
	if (!ll_port_read_limit(dev->ledger, settings->id, &limit_bytes))
		limit_bytes = settings->memory_limit_bytes;
	return limit_bytes;
}

int ll_charge_counter_reserve(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = reserve_once(dev, bytes);
	if (rc == -ESTALE && ll_device_state_retake(dev))
		rc = reserve_once(dev, bytes);
	return rc == -ESTALE && has_memory_limit(dev) ? -ENOMEM : rc; /* without a claim nobody holds it to its limit */
}

/* A lost claim takes neither: its successor is charged the sum. */
void ll_charge_counter_charge(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter_part *part = own_part(dev);
	ll_port_charge_memory(begin_change(dev, part), bytes);
	atomic_fetch_add(&part->charged_bytes, bytes);
	end_change(part);
}

void ll_charge_counter_release(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter_part *part = own_part(dev);
	ll_port_release(begin_change(dev, part), bytes);
	atomic_fetch_sub(&part->charged_bytes, bytes);
	end_change(part);
}
