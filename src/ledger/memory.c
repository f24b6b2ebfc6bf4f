#include "ledger/memory.h"

#include <errno.h>

#include "base/scope.h"
#include "ledger/act.h"
#include "ledger/handle.h"
#include "ledger/rows.h"
#include "ledger/total.h"

static struct ll_ledger_tenant *tenant_of(const struct ll_claim *claim)
{
	return claim->tenant_row ? &claim->ledger->file->tenants[claim->tenant_row - 1] : NULL;
}

static uint64_t limit_of(const struct ll_ledger_tenant *tenant)
{
	uint64_t limit_bytes = tenant->memory_limit_bytes;
	return limit_bytes ? limit_bytes : UINT64_MAX;
}

static int add_inside(struct ll_claim *claim, struct ll_ledger_tenant *tenant, uint64_t bytes, bool is_limited)
{
	if (!ll_total_add(&tenant->memory_used_bytes, bytes, is_limited ? limit_of(tenant) : UINT64_MAX))
		return -ENOMEM;
	ll_total_add(&claim->slot->memory_used_bytes, bytes, UINT64_MAX);
	return 0;
}

/* If this thread was robbed of the guard, it takes its bytes back and begins again, because the total may not have
 * them.
 */
static int add_bytes(struct ll_claim *claim, uint64_t bytes, bool is_limited, bool is_remade)
{
	struct ll_ledger_tenant *tenant = tenant_of(claim);
	struct ll_guard guard = {
	    .ledger = claim->ledger, .row = claim->tenant_row - 1, .index = claim->index, .lock_fd = -1};
	for (;;) {
		if (ll_guard_take(&guard) || is_remade)
			ll_total_remake(claim->ledger->file, guard.row);
		int rc = ll_claim_is_ours(claim) ? add_inside(claim, tenant, bytes, is_limited) : -ESTALE;
		if (ll_guard_free(&guard))
			return rc;
		if (!rc && ll_claim_is_ours(claim))
			ll_total_take(&claim->slot->memory_used_bytes, bytes);
		is_remade = true;
	}
}

static int add_alone(struct ll_claim *claim, uint64_t bytes)
{
	if (!ll_claim_is_ours(claim))
		return -ESTALE;
	return ll_total_add(&claim->slot->memory_used_bytes, bytes, UINT64_MAX) ? 0 : -ENOMEM;
}

int ll_memory_reserve(struct ll_claim *claim, uint64_t bytes)
{
	if (!claim->slot)
		return -ESTALE;
	if (!claim->tenant_row)
		return add_alone(claim, bytes);
	int rc = add_bytes(claim, bytes, true, false);
	if (rc != -ENOMEM)
		return rc;
	int code = errno;
	ll_ledger_sweep(claim->ledger);
	errno = code;
	return add_bytes(claim, bytes, true, true);
}

void ll_memory_charge(struct ll_claim *claim, uint64_t bytes)
{
	if (!claim->slot)
		return;
	if (claim->tenant_row)
		add_bytes(claim, bytes, false, false);
	else
		add_alone(claim, bytes);
}

void ll_memory_release(struct ll_claim *claim, uint64_t bytes)
{
	struct ll_ledger_tenant *tenant = tenant_of(claim);
	if (!claim->slot)
		return;
	if (!tenant) {
		if (ll_claim_is_ours(claim))
			ll_total_take(&claim->slot->memory_used_bytes, bytes);
		return;
	}
	struct ll_guard guard = {
	    .ledger = claim->ledger, .row = claim->tenant_row - 1, .index = claim->index, .lock_fd = -1};
	bool must_remake = ll_guard_take(&guard);
	uint64_t taken = ll_claim_is_ours(claim) ? ll_total_take(&claim->slot->memory_used_bytes, bytes) : 0;
	if (ll_total_take(&tenant->memory_used_bytes, taken) != taken || must_remake)
		ll_total_remake(claim->ledger->file, guard.row);
	while (!ll_guard_free(&guard)) {
		ll_guard_take(&guard);
		ll_total_remake(claim->ledger->file, guard.row);
	}
}

void ll_memory_look(const struct ll_claim *claim, struct ll_memory_view *ret_view)
{
	const struct ll_ledger_slot *slot = claim->slot;
	const struct ll_ledger_tenant *tenant = tenant_of(claim);
	bool is_ours = ll_claim_is_ours(claim);
	uint64_t own = is_ours ? atomic_load_explicit(&slot->memory_used_bytes, memory_order_relaxed) : 0;
	*ret_view = (struct ll_memory_view){.used_bytes = own, .own_bytes = own};
	if (!tenant)
		return;
	ret_view->limit_bytes = atomic_load_explicit(&tenant->memory_limit_bytes, memory_order_relaxed);
	ret_view->used_bytes = atomic_load_explicit(&tenant->memory_used_bytes, memory_order_relaxed);
}

void ll_memory_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (!ll_claim_is_ours(claim))
		return;
	atomic_store_explicit(&slot->evictable_bytes, residency->evictable_bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->away_bytes, residency->away_bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->residency, residency->state, memory_order_release);
}

/* Returns the slot if it is of another process of the claim's tenant that has memory; NULL: it is not. */
static const struct ll_ledger_slot *sibling_at(const struct ll_claim *claim, unsigned index)
{
	const struct ll_ledger_file *file = claim->ledger->file;
	const struct ll_ledger_slot *slot = &file->slots[index];
	bool is_one = index != claim->index && ll_slot_is_used(file, index) && slot->token &&
		      slot->tenant_row == claim->tenant_row && slot->memory_used_bytes;
	return is_one ? slot : NULL;
}

unsigned ll_siblings_ask(struct ll_claim *claim, uint64_t now_ns)
{
	unsigned count = 0;
	if (!ll_claim_is_ours(claim) || !claim->tenant_row)
		return 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		if (!sibling_at(claim, i))
			continue;
		ll_act_ask(claim->ledger->file, i, now_ns);
		count++;
	}
	return count;
}

unsigned ll_siblings_unanswered(const struct ll_claim *claim)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		const struct ll_ledger_slot *slot = sibling_at(claim, i);
		count += slot && slot->asked_ns;
	}
	return count;
}

bool ll_siblings_do_ask(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) && claim->slot->asked_ns;
}

void ll_siblings_answer(struct ll_claim *claim)
{
	if (ll_claim_is_ours(claim))
		atomic_store(&claim->slot->asked_ns, 0);
}
