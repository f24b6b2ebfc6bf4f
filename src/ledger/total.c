#include "ledger/total.h"

#include "ledger/guard.h"
#include "ledger/handle.h"
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

void ll_total_leave(struct ll_ledger *ledger, unsigned index, int lock_fd)
{
	struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint32_t tenant_row = slot->tenant_row;
	atomic_store(&slot->token, 0);
	if (!tenant_row || tenant_row > LL_LEDGER_TENANTS)
		return;
	struct ll_guard guard = {.ledger = ledger, .row = tenant_row - 1, .index = index, .lock_fd = lock_fd};
	do {
		ll_guard_take(&guard);
		ll_total_remake(ledger->file, guard.row);
	} while (!ll_guard_free(&guard));
}
