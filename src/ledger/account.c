#include "ledger/account.h"

#include "base/clock.h"
#include "control/tokens.h"
#include "control/turns.h"
#include "ledger/contender.h"
#include "ledger/handle.h"

/* Nobody owes more than the time since the machine started: such a debt is damaged, and would not be paid in years. */
static int64_t sound(int64_t balance_ns, uint64_t now_ns)
{
	return balance_ns < -(int64_t)(now_ns + LL_CONTENDER_MARGIN_NS) ? 0 : balance_ns;
}

int64_t ll_account_tokens_ns(struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	if (!cap)
		return INT64_MAX;
	uint64_t at_ns = atomic_load_explicit(&tenant->tokens_at_ns, memory_order_relaxed);
	int64_t balance_ns = sound(atomic_load_explicit(&tenant->tokens_ns, memory_order_relaxed), now_ns);
	return at_ns && now_ns > at_ns ? ll_tokens_earn(balance_ns, now_ns - at_ns, cap) : balance_ns;
}

/* Whoever moves the stamp forward books the earnings: once for any number of processes of the tenant. */
int64_t ll_account_earn(struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	if (!cap) {
		atomic_store_explicit(&tenant->tokens_at_ns, 0, memory_order_relaxed);
		return INT64_MAX;
	}
	uint64_t at_ns = atomic_load(&tenant->tokens_at_ns);
	if (at_ns > now_ns + LL_CONTENDER_AHEAD_NS) /* nothing would be earned until then */
		atomic_compare_exchange_strong(&tenant->tokens_at_ns, &at_ns, now_ns);
	else if (now_ns > at_ns && atomic_compare_exchange_strong(&tenant->tokens_at_ns, &at_ns, now_ns)) {
		if (!at_ns) /* a cap that is new: the account begins empty */
			atomic_store(&tenant->tokens_ns, 0);
		else {
			int64_t balance_ns = atomic_load(&tenant->tokens_ns);
			while (!atomic_compare_exchange_weak(
			    &tenant->tokens_ns, &balance_ns,
			    ll_tokens_earn(sound(balance_ns, now_ns), now_ns - at_ns, cap)))
				;
		}
	}
	return ll_account_tokens_ns(tenant, now_ns);
}

void ll_account_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	struct ll_ledger_slot *slot = ll_claim_is_ours(claim) ? claim->slot : NULL; /* another's may be there by now */
	if (!slot || end_ns <= start_ns)
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = claim->tenant_row ? &file->tenants[claim->tenant_row - 1] : NULL;
	ll_claim_add_gpu_time(claim, fresh_ns);
	if (!tenant)
		return;
	uint64_t gpu_ns = ll_busy_bins_add(&file->busy[tenant - file->tenants], start_ns, end_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	atomic_fetch_add_explicit(&tenant->gpu_time_ns, gpu_ns, memory_order_relaxed);
	atomic_fetch_add(&tenant->virtual_time_ns, ll_turns_virtual_ns(gpu_ns, weight));
	if (atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed))
		atomic_fetch_sub(&tenant->tokens_ns, (int64_t)gpu_ns);
}
