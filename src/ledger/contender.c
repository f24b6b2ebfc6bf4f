#include "ledger/contender.h"

#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/liveness.h"

const struct ll_ledger_tenant *ll_contender_tenant(const struct ll_ledger_file *file, const struct ll_ledger_slot *slot)
{
	uint32_t row = atomic_load_explicit(&slot->tenant_row, memory_order_relaxed);
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->tenants[row - 1] : NULL;
}

unsigned ll_contender_rank(const struct ll_ledger_tenant *tenant)
{
	uint32_t priority = atomic_load_explicit(&tenant->priority, memory_order_relaxed);
	return priority ? priority : LL_PRIORITY_NORMAL;
}

/* It is a client of MPS: its kernels run at the same time as those of other clients. */
static bool is_by_space(const struct ll_ledger_tenant *tenant)
{
	return atomic_load_explicit(&tenant->space_permille, memory_order_relaxed) != 0;
}

/* The time lies a little ahead, at most. Otherwise the word is damaged, and would count for years. */
static bool has_gang_turn(const struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	uint64_t until_ns = atomic_load_explicit(&tenant->gang_turn_until_ns, memory_order_relaxed);
	return until_ns > now_ns && until_ns - now_ns <= LL_GANG_TURN_NS + LL_CONTENDER_AHEAD_NS;
}

bool ll_contender_read(const struct ll_ledger_file *file, unsigned index, uint64_t now_ns,
		       struct ll_contender *ret_contender)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t since_ns = atomic_load(&slot->want_since_ns);
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, slot);
	if (!since_ns || !tenant || !atomic_load_explicit(&slot->token, memory_order_relaxed))
		return false;
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t running_ns = atomic_load_explicit(&slot->running_ns, memory_order_relaxed);
	uint32_t visit = atomic_load_explicit(&slot->visit, memory_order_relaxed);
	*ret_contender = (struct ll_contender){
	    .rank = ll_contender_rank(tenant),
	    .weight_permille = weight,
	    .virtual_ns = atomic_load_explicit(&tenant->virtual_time_ns, memory_order_relaxed) +
			  ll_visits_virtual_ns(running_ns, weight),
	    .waited_ns = ll_contender_elapsed_ns(since_ns, now_ns),
	    .has_tokens = ll_account_tokens_ns(tenant, now_ns) > 0,
	    .has_work = true,
	    .has_gang_turn = has_gang_turn(tenant, now_ns),
	    .first_card = atomic_load_explicit(&tenant->first_card, memory_order_relaxed),
	    .has_cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed) != 0,
	    .is_by_space = is_by_space(tenant),
	    .launches_ahead = atomic_load_explicit(&slot->pace, memory_order_relaxed) == LL_PACE_AHEAD,
	    .waits_for_each = atomic_load_explicit(&slot->pace, memory_order_relaxed) != LL_PACE_AHEAD,
	    .waits_on_card = visit & LL_VISIT_ON_CARD,
	    .is_paused = visit & LL_VISIT_PAUSES,
	    .lingers = visit & LL_VISIT_LINGERS,
	    .ran_dry = visit & LL_VISIT_RAN_DRY,
	};
	return true;
}

bool ll_contender_is_deaf(const struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	uint64_t heartbeat_ns = atomic_load_explicit(&file->slots[index].heartbeat_ns, memory_order_relaxed);
	return ll_contender_elapsed_ns(heartbeat_ns, now_ns) > LL_TURN_DEAF_NS;
}

uint32_t ll_contender_row(const struct ll_ledger_file *file, unsigned index)
{
	return atomic_load_explicit(&file->slots[index].tenant_row, memory_order_relaxed);
}

bool ll_contender_has_turn(const struct ll_ledger_file *file, uint64_t turn, unsigned index)
{
	unsigned holder = ll_turn_word_holder(turn);
	if (holder < 1 || holder > LL_LEDGER_CLAIMS)
		return false;
	uint32_t row = ll_contender_row(file, index);
	return holder == index + 1 || (row && ll_contender_row(file, holder - 1) == row);
}

/* A process that is stopped said long ago what it has queued. */
static void scan_sibling(const struct ll_ledger_file *file, unsigned index, uint64_t now_ns,
			 struct ll_contender_scan *scan)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	if (ll_contender_is_deaf(file, index, now_ns))
		return;
	bool is_dry = atomic_load_explicit(&slot->visit, memory_order_relaxed) & LL_VISIT_IS_DRY;
	scan->siblings_queued_ns += atomic_load_explicit(&slot->queued_ns, memory_order_relaxed);
	scan->has_busy_sibling |= !is_dry && atomic_load(&slot->want_since_ns);
}

static void scan_without(const struct ll_ledger_file *file, unsigned except, uint32_t row, uint64_t now_ns,
			 struct ll_contender_scan *ret_scan)
{
	ret_scan->count = 0;
	ret_scan->siblings_queued_ns = 0;
	ret_scan->has_busy_sibling = false;
	LL_CONTENDER_EACH(file, index)
	{
		if (index == except)
			continue;
		if (row && ll_contender_row(file, index) == row)
			scan_sibling(file, index, now_ns, ret_scan);
		else if (!ll_contender_is_deaf(file, index, now_ns) &&
			 ll_contender_read(file, index, now_ns, &ret_scan->contenders[ret_scan->count]))
			ret_scan->slots[ret_scan->count++] = (uint8_t)index;
	}
}

static bool has_beaten(const struct ll_ledger_slot *slot, uint64_t now_ns)
{
	uint64_t heartbeat_ns = atomic_load_explicit(&slot->heartbeat_ns, memory_order_relaxed);
	return ll_contender_elapsed_ns(heartbeat_ns, now_ns) < LL_SUPERIOR_NS;
}

bool ll_contender_has_superior(const struct ll_ledger_file *file, unsigned self, unsigned rank, uint64_t now_ns)
{
	LL_CONTENDER_EACH(file, index)
	{
		const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
		if (index != self && tenant && ll_contender_rank(tenant) < rank &&
		    has_beaten(&file->slots[index], now_ns))
			return true;
	}
	return false;
}

void ll_contender_scan(const struct ll_ledger_file *file, unsigned except, uint64_t now_ns,
		       struct ll_contender_scan *ret_scan)
{
	scan_without(file, except, ll_contender_row(file, except), now_ns, ret_scan);
}

void ll_contender_scan_others(const struct ll_ledger_file *file, uint32_t row, uint64_t now_ns,
			      struct ll_contender_scan *ret_scan)
{
	scan_without(file, LL_LEDGER_CLAIMS, row, now_ns, ret_scan);
}

unsigned ll_contender_next(const struct ll_ledger_file *file, unsigned index)
{
	while (index < LL_LEDGER_CLAIMS) {
		uint64_t rest = atomic_load(&file->used[index / 64]) >> (index % 64);
		if (rest)
			return index + (unsigned)__builtin_ctzll(rest);
		index = (index | 63) + 1;
	}
	return LL_LEDGER_CLAIMS;
}

unsigned ll_contender_next_of(const struct ll_ledger_file *file, uint32_t row, unsigned index)
{
	if (!row)
		return LL_LEDGER_CLAIMS;
	index = ll_contender_next(file, index);
	while (index < LL_LEDGER_CLAIMS && ll_contender_row(file, index) != row)
		index = ll_contender_next(file, index + 1);
	return index;
}

bool ll_sharing_needs_visits(const struct ll_ledger_file *file, uint64_t now_ns)
{
	struct ll_contender contender;
	bool has_waiter = false, are_by_space = true;
	LL_CONTENDER_EACH(file, index)
	{
		if (ll_contender_is_deaf(file, index, now_ns) || !ll_contender_read(file, index, now_ns, &contender))
			continue;
		has_waiter |= contender.waits_for_each;
		are_by_space &= contender.is_by_space;
	}
	return has_waiter && !are_by_space;
}

/* To the card all clients of MPS are one program, and get the slices of one: they have row 0 here. */
static uint32_t sliced_row(const struct ll_ledger_file *file, unsigned index)
{
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
	return tenant && is_by_space(tenant) ? 0 : ll_contender_row(file, index);
}

unsigned ll_sharing_count(const struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns)
{
	uint32_t own_row = sliced_row(file, self), rows[LL_LEDGER_CLAIMS];
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++) {
		const struct ll_ledger_slot *slot = &file->slots[scan->slots[i]];
		uint32_t row = sliced_row(file, scan->slots[i]);
		unsigned known = 0;
		if (row == own_row || atomic_load_explicit(&slot->queued_ns, memory_order_relaxed) < least_ns)
			continue;
		while (known < count && rows[known] != row)
			known++;
		if (known == count)
			rows[count++] = row;
	}
	return count;
}

unsigned ll_sharing_lingering(const struct ll_contender_scan *scan)
{
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++)
		count += scan->contenders[i].lingers;
	return count;
}

bool ll_gang_is_fresh(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && ll_contender_elapsed_ns(at_ns, now_ns) <= LL_GANG_FRESH_NS;
}

struct ll_gang_work ll_gang_work_elsewhere(const struct ll_ledger_tenant *tenant)
{
	return (struct ll_gang_work){
	    .seen_ns = atomic_load_explicit(&tenant->others_busy_ns, memory_order_relaxed),
	    .launches = (uint32_t)atomic_load_explicit(&tenant->others_launches, memory_order_relaxed),
	};
}
