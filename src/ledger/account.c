#include "ledger/account.h"

#include "base/clock.h"
#include "control/tokens.h"
#include "control/visits.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"

/* No debt is larger than the time since the machine started. A larger one is damaged, and would last for years. */
static int64_t sound_tokens(int64_t balance_ns, uint64_t now_ns)
{
	return balance_ns < -(int64_t)(now_ns + LL_CONTENDER_MARGIN_NS) ? 0 : balance_ns;
}

int64_t ll_account_tokens_ns(const struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	if (!cap)
		return INT64_MAX;
	uint64_t at_ns = atomic_load_explicit(&tenant->tokens_at_ns, memory_order_relaxed);
	int64_t balance_ns = sound_tokens(atomic_load_explicit(&tenant->tokens_ns, memory_order_relaxed), now_ns);
	return at_ns && now_ns > at_ns ? ll_tokens_earn(balance_ns, now_ns - at_ns, cap) : balance_ns;
}

/* The process that moves the stamp forward books the earnings. So they count once for all processes of the tenant. */
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
		if (!at_ns) /* the cap is new: the account begins empty */
			atomic_store(&tenant->tokens_ns, 0);
		else {
			int64_t balance_ns = atomic_load(&tenant->tokens_ns);
			while (!atomic_compare_exchange_weak(
			    &tenant->tokens_ns, &balance_ns,
			    ll_tokens_earn(sound_tokens(balance_ns, now_ns), now_ns - at_ns, cap)))
				;
		}
	}
	return ll_account_tokens_ns(tenant, now_ns);
}

void ll_account_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	struct ll_ledger_slot *slot =
	    ll_claim_is_ours(claim) ? claim->slot : NULL; /* another claim may be there by now */
	if (!slot || end_ns <= start_ns)
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = claim->tenant_row ? &file->tenants[claim->tenant_row - 1] : NULL;
	atomic_fetch_add_explicit(&slot->gpu_time_ns, fresh_ns, memory_order_relaxed);
	if (!tenant)
		return;
	uint64_t gpu_ns = ll_busy_bins_add(&file->busy[tenant - file->tenants], start_ns, end_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	atomic_fetch_add_explicit(&tenant->gpu_time_ns, gpu_ns, memory_order_relaxed);
	atomic_fetch_add(&tenant->virtual_time_ns, ll_visits_virtual_ns(gpu_ns, weight));
	if (atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed))
		atomic_fetch_sub(&tenant->tokens_ns, (int64_t)gpu_ns);
}

enum { NUMBER_SHIFT = 24 };
#define NS_MASK ((UINT64_C(1) << NUMBER_SHIFT) - 1)
_Static_assert(LL_BUSY_BIN_NS <= NS_MASK && LL_BUSY_LONG_BIN_NS <= NS_MASK, "a bin's count fits beside its number");

#define REACH_NS ((LL_BUSY_BINS - 1) * LL_BUSY_BIN_NS)
#define LONG_REACH_NS ((LL_BUSY_LONG_BINS - 1) * LL_BUSY_LONG_BIN_NS)

static uint64_t add_to_bin(_Atomic uint64_t *words, unsigned count, uint64_t bin_ns, uint64_t at_ns, uint64_t ns)
{
	uint64_t number = at_ns / bin_ns;
	_Atomic uint64_t *word = &words[number % count];
	uint64_t before = atomic_load(word);
	for (;;) {
		if (before >> NUMBER_SHIFT > number) /* the word is of a later bin by now */
			return ns;
		uint64_t had_ns = before >> NUMBER_SHIFT == number ? before & NS_MASK : 0;
		uint64_t room_ns = bin_ns - had_ns;
		uint64_t added_ns = ns < room_ns ? ns : room_ns;
		uint64_t after = number << NUMBER_SHIFT | (had_ns + added_ns);
		if (atomic_compare_exchange_weak(word, &before, after))
			return added_ns;
	}
}

/* start_ns and end_ns lie in one bin. What counts there is written into the longer bin around it, too. */
static uint64_t add_long(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns)
{
	return add_to_bin(bins->long_words, LL_BUSY_LONG_BINS, LL_BUSY_LONG_BIN_NS, at_ns, ns);
}

static uint64_t add_recent(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns)
{
	uint64_t added_ns = add_to_bin(bins->words, LL_BUSY_BINS, LL_BUSY_BIN_NS, at_ns, ns);
	if (added_ns)
		add_long(bins, at_ns, added_ns);
	return added_ns;
}

static uint64_t add_stretch(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns, uint64_t bin_ns,
			    uint64_t (*add)(struct ll_busy_bins *bins, uint64_t at_ns, uint64_t ns))
{
	uint64_t added_ns = 0;
	while (start_ns < end_ns) {
		uint64_t next_ns = (start_ns / bin_ns + 1) * bin_ns;
		uint64_t until_ns = next_ns < end_ns ? next_ns : end_ns;
		added_ns += add(bins, start_ns, until_ns - start_ns);
		start_ns = until_ns;
	}
	return added_ns;
}

/* Returns where the last part of a stretch begins, if that part has at most this length. */
static uint64_t last_part(uint64_t start_ns, uint64_t end_ns, uint64_t most_ns)
{
	return end_ns - start_ns > most_ns ? end_ns - most_ns : start_ns;
}

uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	uint64_t recent_ns = last_part(start_ns, end_ns, REACH_NS);
	uint64_t older_ns = last_part(start_ns, recent_ns, LONG_REACH_NS); /* what is still older counts as reported */
	return older_ns - start_ns + add_stretch(bins, older_ns, recent_ns, LL_BUSY_LONG_BIN_NS, add_long) +
	       add_stretch(bins, recent_ns, end_ns, LL_BUSY_BIN_NS, add_recent);
}
