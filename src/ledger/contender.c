#include "ledger/contender.h"

#include "control/turns.h"
#include "ledger/account.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"

struct ll_ledger_tenant *ll_contender_tenant(struct ll_ledger_file *file, const struct ll_ledger_slot *slot)
{
	uint32_t row = atomic_load_explicit(&slot->tenant_row, memory_order_relaxed);
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->tenants[row - 1] : NULL;
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

/* Of each tenant's row; those that want the card. The card gives a slice to each process. */
static bool are_as_many(const uint8_t processes[LL_LEDGER_TENANTS + 1])
{
	unsigned number = 0;
	for (unsigned row = 1; row <= LL_LEDGER_TENANTS; row++) {
		if (processes[row] && number && processes[row] != number)
			return false;
		if (processes[row])
			number = processes[row];
	}
	return true;
}

bool ll_sharing_is_sliced(struct ll_ledger_file *file, uint64_t now_ns)
{
	uint8_t processes[LL_LEDGER_TENANTS + 1] = {0};
	struct ll_turn_contender all, contender;
	bool has_any = false;
	LL_CONTENDER_EACH(file, index)
	{
		if (ll_contender_is_deaf(file, index, now_ns) || !ll_contender_read(file, index, now_ns, &contender))
			continue;
		if (!has_any)
			all = contender;
		has_any = true;
		if (!ll_turns_may_slice(&all, &contender))
			return false;
		all.launches_ahead &= contender.launches_ahead;
		all.is_by_space &= contender.is_by_space;
		uint32_t row = ll_contender_row(file, index);
		processes[row <= LL_LEDGER_TENANTS ? row : 0]++; /* another process may have damaged it since */
	}
	return are_as_many(processes);
}

/* To the card all clients of MPS are one program, and get the slices of one: they have row 0 here. */
static uint32_t sliced_row(struct ll_ledger_file *file, unsigned index)
{
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
	return tenant && ll_contender_is_by_space(tenant) ? 0 : ll_contender_row(file, index);
}

unsigned ll_sharing_count(struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns)
{
	uint32_t own_row = sliced_row(file, self), rows[LL_LEDGER_CLAIMS];
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_ledger_slot *slot = &file->slots[scan->slots[i]];
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

static _Atomic uint32_t *card_word_of(struct ll_ledger_file *file, uint32_t row)
{
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->card_words[row - 1] : NULL;
}

/* Both steps count up: a shut word is even, an open one odd. */
static void step_card_word(_Atomic uint32_t *word, uint32_t from)
{
	uint32_t value = word ? atomic_load(word) : 0;
	while (word && (value & LL_VISIT_WORD_OPEN) == from && !atomic_compare_exchange_weak(word, &value, value + 1))
		;
}

void ll_visit_open(struct ll_ledger_file *file, uint32_t row)
{
	step_card_word(card_word_of(file, row), 0);
}

void ll_visit_shut(struct ll_ledger_file *file, uint32_t row)
{
	step_card_word(card_word_of(file, row), LL_VISIT_WORD_OPEN);
}

_Atomic uint32_t *ll_visit_word(const struct ll_claim *claim)
{
	if (!ll_claim_is_ours(claim))
		return NULL;
	return card_word_of(claim->ledger->file, claim->tenant_row);
}

void ll_visit_set(struct ll_claim *claim, enum ll_visit_flag flag, bool is_set)
{
	struct ll_ledger_slot *slot = ll_claim_is_ours(claim) ? claim->slot : NULL;
	if (!slot)
		return;
	bool was_set = atomic_load_explicit(&slot->visit, memory_order_relaxed) & flag;
	if (is_set && !was_set)
		atomic_fetch_or(&slot->visit, flag);
	else if (!is_set && was_set)
		atomic_fetch_and(&slot->visit, ~(uint32_t)flag);
}

void ll_visit_open_at_rest(struct ll_ledger_file *file, uint32_t row)
{
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (atomic_load(&file->slots[i].want_since_ns))
			return;
	}
	ll_visit_open(file, row);
}

bool ll_visit_has_busy_sibling(const struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	LL_CONTENDER_EACH_OF(file, claim->tenant_row, i)
	{
		const struct ll_ledger_slot *slot = &file->slots[i];
		bool is_dry = atomic_load_explicit(&slot->visit, memory_order_relaxed) & LL_VISIT_IS_DRY;
		if (i != claim->index && atomic_load(&slot->want_since_ns) && !is_dry &&
		    !ll_contender_is_deaf(file, i, now_ns))
			return true;
	}
	return false;
}

/* Virtual time of a second of GPU time, at the least weight that there is (0.01). */
enum { VIRTUAL_MOST = 100 };

/* Nobody had more than the time since the machine started, at the least weight: more is damaged. */
static bool is_sound(uint64_t virtual_ns, uint64_t now_ns)
{
	uint64_t most_ns = now_ns + LL_CONTENDER_MARGIN_NS;
	return virtual_ns / VIRTUAL_MOST <= most_ns;
}

/* Of the contenders of a class that may use the card now: not of those whose caps hold them back. False: there is none.
 */
static bool least_of_class(const struct ll_contender_scan *scan, unsigned rank, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t least_ns = UINT64_MAX;
	for (size_t i = 0; i < scan->count; i++) {
		const struct ll_turn_contender *other = &scan->contenders[i];
		if (other->rank == rank && other->has_tokens && other->virtual_ns < least_ns &&
		    is_sound(other->virtual_ns, now_ns))
			least_ns = other->virtual_ns;
	}
	*ret_ns = least_ns;
	return least_ns != UINT64_MAX;
}

/* Of the tenants of a class, whether they want the card or not. 0: there is none. */
static uint64_t most_of_class(struct ll_ledger_file *file, unsigned rank, uint64_t now_ns)
{
	uint64_t most_ns = 0;
	LL_CONTENDER_EACH(file, index)
	{
		const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
		if (!tenant || ll_contender_rank(tenant) != rank)
			continue;
		uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
		if (virtual_ns > most_ns && is_sound(virtual_ns, now_ns))
			most_ns = virtual_ns;
	}
	return most_ns;
}

static void limit_behind(struct ll_ledger_tenant *tenant, uint64_t least_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t back_ns = ll_turns_come_back_ns(virtual_ns, least_ns, weight);
	if (back_ns > virtual_ns) /* a sibling that charged meanwhile is right: then it is no pause */
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, back_ns);
}

static void limit_ahead(struct ll_ledger_tenant *tenant, uint64_t least_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t most_ns = least_ns + ll_turns_virtual_ns(LL_TURN_LAG_NS, weight);
	if (virtual_ns > most_ns) /* one that is charged meanwhile is forgiven at the next look */
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, most_ns);
}

void ll_virtual_time_come_back(struct ll_ledger_file *file, struct ll_ledger_tenant *tenant,
			       const struct ll_contender_scan *scan, uint64_t now_ns)
{
	unsigned rank = ll_contender_rank(tenant);
	uint64_t from_ns;
	if (!least_of_class(scan, rank, now_ns, &from_ns))
		from_ns = most_of_class(file, rank, now_ns);
	limit_behind(tenant, from_ns);
}

void ll_virtual_time_limit_credit(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan,
				  uint64_t now_ns)
{
	uint64_t least_ns;
	if (least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		limit_behind(tenant, least_ns);
}

void ll_virtual_time_forgive(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns)
{
	uint64_t least_ns;
	if (least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		limit_ahead(tenant, least_ns);
}

void ll_virtual_time_enter_class(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row - 1];
	struct ll_contender_scan scan;
	ll_contender_scan_others(file, row, now_ns, &scan);
	ll_virtual_time_come_back(file, tenant, &scan, now_ns);
	ll_virtual_time_forgive(tenant, &scan, now_ns);
}

void ll_virtual_time_mend(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns), least_ns;
	if (!is_sound(virtual_ns, now_ns) && least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, least_ns);
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

void ll_gang_note_ending(struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	atomic_store_explicit(&tenant->ending_ns, now_ns, memory_order_relaxed);
}
