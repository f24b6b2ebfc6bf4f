#include "shim/account.h"

#include <errno.h>

#include "base/clock.h"
#include "ledger/memory.h"

#define PAUSE_NS (20 * LL_NS_PER_US)
#define LONGEST_NS (200 * LL_NS_PER_MS)

static struct ll_claim *enter(struct ll_seat *seat)
{
	uint64_t give_up_ns = 0;
	for (;;) {
		atomic_fetch_add(&seat->changing, 1);
		if (!atomic_load(&seat->is_held))
			break;
		uint64_t now_ns = ll_now_ns();
		give_up_ns = give_up_ns ? give_up_ns : now_ns + LONGEST_NS;
		if (now_ns >= give_up_ns)
			break;
		atomic_fetch_sub(&seat->changing, 1);
		ll_sleep_until_ns(now_ns + PAUSE_NS);
	}
	return atomic_load(&seat->claim);
}

static void leave(struct ll_seat *seat)
{
	atomic_fetch_sub(&seat->changing, 1);
}

uint64_t ll_account_hold(struct ll_seat *seat)
{
	uint64_t now_ns = ll_now_ns(), give_up_ns = now_ns + LONGEST_NS;
	atomic_store(&seat->is_held, true);
	while (atomic_load(&seat->changing) && now_ns < give_up_ns) {
		ll_sleep_until_ns(now_ns + PAUSE_NS);
		now_ns = ll_now_ns();
	}
	return atomic_load(&seat->held_bytes);
}

void ll_account_let_go(struct ll_seat *seat)
{
	atomic_store(&seat->is_held, false);
}

static int reserve(struct ll_seat *seat, uint64_t bytes)
{
	int rc = ll_memory_reserve(enter(seat), bytes);
	if (rc == 0)
		atomic_fetch_add(&seat->held_bytes, bytes);
	leave(seat);
	return rc;
}

int ll_account_reserve(struct ll_seat *seat, uint64_t bytes)
{
	int rc = reserve(seat, bytes);
	return rc == -ESTALE && ll_seat_retake(seat) ? reserve(seat, bytes) : rc;
}

/* A lost claim takes neither: its successor is charged the sum. */
void ll_account_charge(struct ll_seat *seat, uint64_t bytes)
{
	ll_memory_charge(enter(seat), bytes);
	atomic_fetch_add(&seat->held_bytes, bytes);
	leave(seat);
}

void ll_account_release(struct ll_seat *seat, uint64_t bytes)
{
	ll_memory_release(enter(seat), bytes);
	atomic_fetch_sub(&seat->held_bytes, bytes);
	leave(seat);
}
