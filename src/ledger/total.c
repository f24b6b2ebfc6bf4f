#include "ledger/total.h"

#include "ledger/guard.h"
#include "ledger/handle.h"
#include "ledger/lock.h"
#include "ledger/slot.h"

bool ll_total_add(_Atomic uint64_t *sum, uint64_t bytes, uint64_t limit_bytes)
{
	uint64_t old = *sum;
	do {
		if (bytes && (old > limit_bytes || bytes > limit_bytes - old))
			return false;
	} while (!atomic_compare_exchange_weak(sum, &old, old + bytes));
	return true;
}

uint64_t ll_total_take(_Atomic uint64_t *sum, uint64_t bytes)
{
	uint64_t old = *sum;
	uint64_t taken;
	do {
		taken = bytes < old ? bytes : old;
	} while (!atomic_compare_exchange_weak(sum, &old, old - taken));
	return taken;
}

/* Claims that were withdrawn have none, though their slots may not be clean yet. */
static uint64_t claim_bytes(const struct ll_ledger_file *file, unsigned index, unsigned row)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	bool is_counted = ll_slot_is_used(file, index) && slot->token && slot->tenant_row == row + 1;
	return is_counted ? slot->memory_used_bytes : 0;
}

void ll_total_remake(struct ll_ledger_file *file, unsigned row)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row];
	uint64_t old = tenant->memory_used_bytes;
	uint64_t sum = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		uint64_t bytes = claim_bytes(file, i, row);
		sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
	}
	atomic_compare_exchange_strong(&tenant->memory_used_bytes, &old, sum);
}

static void remake_with_guard(struct ll_ledger *ledger, unsigned row, unsigned index, int lock_fd)
{
	struct ll_guard guard = {.ledger = ledger, .row = row, .index = index, .lock_fd = lock_fd};
	do {
		ll_guard_take(&guard);
		ll_total_remake(ledger->file, row);
	} while (!ll_guard_free(&guard));
}

void ll_total_leave(struct ll_ledger *ledger, unsigned index, int lock_fd)
{
	struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint32_t tenant_row = slot->tenant_row;
	atomic_store(&slot->token, 0);
	if (tenant_row && tenant_row <= LL_LEDGER_TENANTS)
		remake_with_guard(ledger, tenant_row - 1, index, lock_fd);
}

/* The guard's holder is known by the lock of a slot (guard.h). The withdrawn claim's is kept by others: a free slot's
 * is taken instead. If all slots are in use, the total is made anew at the next refused reservation. */
static void remake_with_free_slot(struct ll_ledger *ledger, unsigned row)
{
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		off_t byte = LL_LOCK_SLOTS + (off_t)i;
		if (ll_slot_is_used(ledger->file, i) || ll_lock_try(ledger->scan.fd, byte))
			continue;
		remake_with_guard(ledger, row, i, ledger->scan.fd);
		ll_lock_free(ledger->scan.fd, byte);
		return;
	}
}

bool ll_total_withdraw(struct ll_ledger *ledger, unsigned index, uint64_t token)
{
	struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint32_t tenant_row = slot->tenant_row;
	if (!token || !atomic_compare_exchange_strong(&slot->token, &token, 0))
		return false;
	if (tenant_row && tenant_row <= LL_LEDGER_TENANTS)
		remake_with_free_slot(ledger, tenant_row - 1);
	return true;
}
