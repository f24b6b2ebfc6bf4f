/* The bells of claims: futexes in their slots. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/handle.h"
#include "ledger/slot.h"
#include "ledger/turn.h"

void ll_slot_ring(struct ll_ledger_slot *slot)
{
	int saved_errno = errno;
	atomic_fetch_add(&slot->bell, 1);
	syscall(SYS_futex, &slot->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

uint32_t ll_turn_bell(const struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? atomic_load(&slot->bell) : 0;
}

void ll_turn_ring(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (slot)
		ll_slot_ring(slot);
}

void ll_turn_sleep(struct ll_claim *claim, uint32_t bell, uint64_t until_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	uint64_t now_ns = ll_now_ns();
	if (!slot || until_ns <= now_ns)
		return;
	int saved_errno = errno;
	uint64_t left_ns = until_ns - now_ns;
	struct timespec timeout = {.tv_sec = (time_t)(left_ns / LL_NS_PER_S), .tv_nsec = (long)(left_ns % LL_NS_PER_S)};
	syscall(SYS_futex, &slot->bell, FUTEX_WAIT, bell, &timeout, NULL, 0);
	errno = saved_errno;
}
