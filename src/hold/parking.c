#include "hold/parking.h"

#include "base/clock.h"

enum { AWAKE, PARKED, KEPT };

uint32_t ll_parking_listen(const struct ll_parking *parking)
{
	return atomic_load(&parking->calls);
}

void ll_parking_park(struct ll_parking *parking, uint32_t heard)
{
	atomic_store(&parking->heard, heard);
	atomic_store(&parking->state, PARKED);
}

/* A kept thread waits. The other side soon stops the process or lets the thread go. */
void ll_parking_leave(struct ll_parking *parking)
{
	uint32_t state = PARKED;
	while (!atomic_compare_exchange_strong(&parking->state, &state, AWAKE) && state == KEPT) {
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
		state = PARKED;
	}
}

void ll_parking_call(struct ll_parking *parking)
{
	atomic_fetch_add(&parking->calls, 1);
}

bool ll_parking_keep(struct ll_parking *parking)
{
	uint32_t state = PARKED;
	if (!atomic_compare_exchange_strong(&parking->state, &state, KEPT))
		return false;
	if (atomic_load(&parking->heard) == atomic_load(&parking->calls))
		return true;
	atomic_store(&parking->state, PARKED);
	return false;
}

void ll_parking_let_go(struct ll_parking *parking)
{
	uint32_t state = KEPT;
	atomic_compare_exchange_strong(&parking->state, &state, PARKED);
}

void ll_parking_forget(struct ll_parking *parking)
{
	atomic_store(&parking->state, AWAKE);
}
