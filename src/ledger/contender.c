#include "ledger/contender.h"

#include "ledger/account.h"
#include "ledger/claim.h"
#include "ledger/turn.h"
#include "ledger/visit.h"

struct ll_ledger_tenant *ll_contender_tenant(struct ll_ledger_file *file, const struct ll_ledger_slot *slot)
{
	uint32_t row = atomic_load_explicit(&slot->tenant_row, memory_order_relaxed);
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->tenants[row - 1] : NULL;
}

uint64_t ll_contender_elapsed_ns(uint64_t since_ns, uint64_t now_ns)
{
	if (now_ns >= since_ns)
		return now_ns - since_ns;
	return since_ns - now_ns > LL_CONTENDER_AHEAD_NS ? UINT64_MAX : 0;
}

unsigned ll_contender_rank(const struct ll_ledger_tenant *tenant)
{
	uint32_t priority = atomic_load_explicit(&tenant->priority, memory_order_relaxed);
	return priority ? priority : LL_PRIORITY_NORMAL;
}

bool ll_contender_is_by_space(const struct ll_ledger_tenant *tenant)
{
	return atomic_load_explicit(&tenant->space_permille, memory_order_relaxed) != 0;
}

/* Who called took the time a little later, at most; else it is damaged, and would be called for years. */
static bool is_called(const struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	uint64_t until_ns = atomic_load_explicit(&tenant->called_until_ns, memory_order_relaxed);
	return until_ns > now_ns && until_ns - now_ns <= LL_TURN_CALLED_NS + LL_CONTENDER_AHEAD_NS;
}

bool ll_contender_read(struct ll_ledger_file *file, unsigned index, uint64_t now_ns,
		       struct ll_turn_contender *ret_contender)
{
	struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t since_ns = atomic_load(&slot->want_since_ns);
	struct ll_ledger_tenant *tenant = ll_contender_tenant(file, slot);
	if (!since_ns || !tenant || !atomic_load_explicit(&slot->token, memory_order_relaxed))
		return false;
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t running_ns = atomic_load_explicit(&slot->running_ns, memory_order_relaxed);
	uint32_t visit = atomic_load_explicit(&slot->visit, memory_order_relaxed);
	*ret_contender = (struct ll_turn_contender){
	    .rank = ll_contender_rank(tenant),
	    .weight_permille = weight,
	    .virtual_ns = atomic_load_explicit(&tenant->virtual_time_ns, memory_order_relaxed) +
			  ll_turns_virtual_ns(running_ns, weight),
	    .waited_ns = ll_contender_elapsed_ns(since_ns, now_ns),
	    .has_tokens = ll_account_tokens_ns(tenant, now_ns) > 0,
	    .is_called = is_called(tenant, now_ns),
	    .first_card = atomic_load_explicit(&tenant->first_card, memory_order_relaxed),
	    .has_cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed) != 0,
	    .is_by_space = ll_contender_is_by_space(tenant),
	    .launches_ahead = atomic_load_explicit(&slot->pace, memory_order_relaxed) == LL_PACE_AHEAD,
	    .waits_on_card = visit & LL_VISIT_ON_CARD,
	    .is_paused = visit & LL_VISIT_PAUSES,
	    .lingers = visit & LL_VISIT_LINGERS,
	    .ran_dry = visit & LL_VISIT_RAN_DRY,
	};
	return true;
}

bool ll_contender_is_deaf(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	uint64_t heartbeat_ns = atomic_load_explicit(&file->slots[index].heartbeat_ns, memory_order_relaxed);
	return ll_contender_elapsed_ns(heartbeat_ns, now_ns) > LL_TURN_DEAF_NS;
}

uint32_t ll_contender_row(struct ll_ledger_file *file, unsigned index)
{
	return atomic_load_explicit(&file->slots[index].tenant_row, memory_order_relaxed);
}

/* All contenders but one, and those of one row. */
static void scan_without(struct ll_ledger_file *file, unsigned except, uint32_t row, uint64_t now_ns,
			 struct ll_contender_scan *ret_scan)
{
	ret_scan->count = 0;
	LL_CONTENDER_EACH(file, index)
	{
		if (index != except && ll_contender_row(file, index) != row &&
		    !ll_contender_is_deaf(file, index, now_ns) &&
		    ll_contender_read(file, index, now_ns, &ret_scan->contenders[ret_scan->count]))
			ret_scan->slots[ret_scan->count++] = (uint8_t)index;
	}
}

void ll_contender_scan(struct ll_ledger_file *file, unsigned except, uint64_t now_ns,
		       struct ll_contender_scan *ret_scan)
{
	scan_without(file, except, ll_contender_row(file, except), now_ns, ret_scan);
}

void ll_contender_scan_others(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns,
			      struct ll_contender_scan *ret_scan)
{
	scan_without(file, LL_LEDGER_CLAIMS, row, now_ns, ret_scan);
}

unsigned ll_contender_next(struct ll_ledger_file *file, unsigned index)
{
	while (index < LL_LEDGER_CLAIMS) {
		uint64_t rest = atomic_load(&file->used[index / 64]) >> (index % 64);
		if (rest)
			return index + (unsigned)__builtin_ctzll(rest);
		index = (index | 63) + 1;
	}
	return LL_LEDGER_CLAIMS;
}

unsigned ll_contender_next_of(struct ll_ledger_file *file, uint32_t row, unsigned index)
{
	if (!row)
		return LL_LEDGER_CLAIMS;
	index = ll_contender_next(file, index);
	while (index < LL_LEDGER_CLAIMS && ll_contender_row(file, index) != row)
		index = ll_contender_next(file, index + 1);
	return index;
}
