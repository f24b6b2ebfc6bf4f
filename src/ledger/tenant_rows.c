#include "ledger/tenant_rows.h"

#include "base/clock.h"
#include "ledger/claim.h"
#include "ledger/handle.h"
#include "ledger/lock.h"
#include "ledger/slot.h"
#include "ledger/tenant.h"
#include "ledger/text.h"
#include "ledger/visit.h"

unsigned ll_tenant_rows_claims(const struct ll_ledger_file *file, unsigned row, bool is_claim_only)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		const struct ll_ledger_slot *slot = &file->slots[i];
		if (ll_slot_is_used(file, i) && slot->tenant_row == row + 1 && (slot->token || !is_claim_only))
			count++;
	}
	return count;
}

unsigned ll_tenant_rows_find(const struct ll_ledger_file *file, uint64_t id)
{
	unsigned row = 0;
	while (row < LL_LEDGER_TENANTS && file->tenants[row].id != id)
		row++;
	return row;
}

/* All that is not the tenant's name and limits: the row may have been another's, on other cards. */
static void zero_accounts(struct ll_ledger_tenant *tenant)
{
	tenant->guard = 0;
	tenant->guard_waiters = 0;
	tenant->memory_used_bytes = 0;
	tenant->gpu_time_ns = 0;
	tenant->virtual_time_ns = 0;
	tenant->tokens_ns = 0;
	tenant->tokens_at_ns = 0;
	tenant->called_until_ns = 0;
	tenant->first_card = 0;
	tenant->others_busy_ns = 0;
	tenant->ending_ns = 0;
	tenant->others_launches = 0;
	tenant->lost_since_ns = 0;
	tenant->lost_seen_ns = 0;
	tenant->reserved_limits = 0;
	tenant->reserved_text = 0;
	for (size_t i = 0; i < sizeof tenant->reserved / sizeof *tenant->reserved; i++)
		tenant->reserved[i] = 0;
}

void ll_tenant_rows_make(struct ll_ledger_file *file, unsigned row, const struct ll_tenant_wish *wish)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row];
	zero_accounts(tenant);
	ll_visit_open(file, row + 1);
	tenant->priority = wish->priority;
	tenant->memory_limit_bytes = wish->memory_limit_bytes;
	tenant->compute_cap_permille = wish->compute_cap_permille;
	tenant->weight_permille = wish->weight_permille ? wish->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	tenant->space_permille = wish->space_permille;
	tenant->taken_ns = ll_now_ns();
	LL_TEXT_PUT(tenant, name, wish->name);
	atomic_store(&tenant->id, wish->id);
}

static void clear_row(struct ll_ledger_tenant *tenant)
{
	atomic_store(&tenant->id, 0);
	zero_accounts(tenant);
	tenant->priority = 0;
	tenant->memory_limit_bytes = 0;
	tenant->compute_cap_permille = 0;
	tenant->weight_permille = 0;
	tenant->space_permille = 0;
	tenant->taken_ns = 0;
	LL_TEXT_PUT(tenant, name, "");
}

static bool may_be_dead(const struct ll_ledger_file *file, unsigned row)
{
	return file->tenants[row].id && !ll_tenant_rows_claims(file, row, false);
}

/* Claims are looked for again under the lock: whoever had it may have taken one before it let go. */
static void clear_if_dead(struct ll_ledger *ledger, unsigned row)
{
	off_t byte = LL_LOCK_TENANTS + (off_t)row;
	if (!may_be_dead(ledger->file, row) || ll_lock_try(ledger->scan.fd, byte))
		return;
	if (may_be_dead(ledger->file, row))
		clear_row(&ledger->file->tenants[row]);
	ll_lock_free(ledger->scan.fd, byte);
}

void ll_tenant_rows_sweep(struct ll_ledger *ledger)
{
	bool has_row = false;
	for (unsigned i = 0; i < LL_LEDGER_TENANTS && !has_row; i++)
		has_row = ledger->file->tenants[i].id != 0;
	if (!has_row || ll_lock_try(ledger->scan.fd, LL_LOCK_JOIN))
		return;
	for (unsigned i = 0; i < LL_LEDGER_TENANTS; i++)
		clear_if_dead(ledger, i);
	ll_lock_free(ledger->scan.fd, LL_LOCK_JOIN);
}
