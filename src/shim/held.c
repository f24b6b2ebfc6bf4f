#include "shim/held.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "ledger/memory.h"
#include "ledger/tenant.h"

#define PAUSE_NS (20 * LL_NS_PER_US)
#define LONGEST_NS (200 * LL_NS_PER_MS)

static struct ll_held_part *own_part(struct ll_seat *seat)
{
	uint64_t self = (uint64_t)pthread_self();
	return &seat->parts[(self * UINT64_C(0x9e3779b97f4a7c15)) >> 60];
}

_Static_assert(LL_HELD_PARTS == 16, "four bits choose one");

static struct ll_claim *enter(struct ll_seat *seat, struct ll_held_part *part)
{
	uint64_t give_up_ns = 0;
	for (;;) {
		atomic_fetch_add(&part->changing, 1);
		if (!atomic_load(&seat->is_held))
			break;
		uint64_t now_ns = ll_now_ns();
		give_up_ns = give_up_ns ? give_up_ns : now_ns + LONGEST_NS;
		if (now_ns >= give_up_ns)
			break;
		atomic_fetch_sub(&part->changing, 1);
		ll_sleep_until_ns(now_ns + PAUSE_NS);
	}
	return atomic_load(&seat->claim);
}

static void leave(struct ll_held_part *part)
{
	atomic_fetch_sub(&part->changing, 1);
}

uint64_t ll_held_freeze(struct ll_seat *seat)
{
	uint64_t now_ns = ll_now_ns(), give_up_ns = now_ns + LONGEST_NS, sum = 0;
	atomic_store(&seat->is_held, true);
	for (int i = 0; i < LL_HELD_PARTS; i++) {
		while (atomic_load(&seat->parts[i].changing) && now_ns < give_up_ns) {
			ll_sleep_until_ns(now_ns + PAUSE_NS);
			now_ns = ll_now_ns();
		}
	}
	for (int i = 0; i < LL_HELD_PARTS; i++)
		sum += atomic_load(&seat->parts[i].held_bytes);
	return sum;
}

void ll_held_thaw(struct ll_seat *seat)
{
	atomic_store(&seat->is_held, false);
}

static int reserve(struct ll_seat *seat, uint64_t bytes)
{
	struct ll_held_part *part = own_part(seat);
	int rc = ll_memory_reserve(enter(seat, part), bytes);
	if (rc == 0)
		atomic_fetch_add(&part->held_bytes, bytes);
	leave(part);
	return rc;
}

/* `loadline set` changes the row. Where the row is gone, the settings are what the next one is made from. */
static bool has_memory_limit(const struct ll_seat *seat)
{
	const struct ll_run_settings *settings = ll_seat_settings();
	uint64_t limit_bytes;
	if (!settings)
		return false;
	if (!ll_tenant_memory_limit(seat->ledger, settings->id, &limit_bytes))
		limit_bytes = settings->memory_limit_bytes;
	return limit_bytes;
}

int ll_held_reserve(struct ll_seat *seat, uint64_t bytes)
{
	int rc = reserve(seat, bytes);
	if (rc == -ESTALE && ll_seat_retake(seat))
		rc = reserve(seat, bytes);
	return rc == -ESTALE && has_memory_limit(seat) ? -ENOMEM
						       : rc; /* without a claim nobody holds it to its limit */
}

/* A lost claim takes neither: its successor is charged the sum. */
void ll_held_charge(struct ll_seat *seat, uint64_t bytes)
{
	struct ll_held_part *part = own_part(seat);
	ll_memory_charge(enter(seat, part), bytes);
	atomic_fetch_add(&part->held_bytes, bytes);
	leave(part);
}

void ll_held_release(struct ll_seat *seat, uint64_t bytes)
{
	struct ll_held_part *part = own_part(seat);
	ll_memory_release(enter(seat, part), bytes);
	atomic_fetch_sub(&part->held_bytes, bytes);
	leave(part);
}
