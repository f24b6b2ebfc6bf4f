/* Waking threads of other processes that sleep for their claim: a futex in each claim's slot. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/handle.h"
#include "ledger/slot.h"
#include "ledger/turn.h"

void ll_slot_wake(struct ll_ledger_slot *slot)
{
	int saved_errno = errno;
	atomic_fetch_add(&slot->wake_count, 1);
	syscall(SYS_futex, &slot->wake_count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

uint32_t ll_turn_wake_count(const struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? atomic_load(&slot->wake_count) : 0;
}

void ll_turn_wake(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (slot)
		ll_slot_wake(slot);
}

void ll_turn_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	uint64_t now_ns = ll_now_ns();
	if (!slot || until_ns <= now_ns)
		return;
	int saved_errno = errno;
	uint64_t left_ns = until_ns - now_ns;
	struct timespec timeout = {.tv_sec = (time_t)(left_ns / LL_NS_PER_S), .tv_nsec = (long)(left_ns % LL_NS_PER_S)};
	syscall(SYS_futex, &slot->wake_count, FUTEX_WAIT, wake_count, &timeout, NULL, 0);
	errno = saved_errno;
}
