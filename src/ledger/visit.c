#include "ledger/visit.h"

#include "ledger/contender.h"
#include "ledger/handle.h"

static _Atomic uint32_t *word_of(struct ll_ledger_file *file, uint32_t row)
{
	return row >= 1 && row <= LL_LEDGER_TENANTS ? &file->card_words[row - 1] : NULL;
}

/* Both steps count up: a shut word is even, an open one odd. */
static void step(_Atomic uint32_t *word, uint32_t from)
{
	uint32_t value = word ? atomic_load(word) : 0;
	while (word && (value & LL_VISIT_WORD_OPEN) == from && !atomic_compare_exchange_weak(word, &value, value + 1))
		;
}

void ll_visit_open(struct ll_ledger_file *file, uint32_t row)
{
	step(word_of(file, row), 0);
}

void ll_visit_shut(struct ll_ledger_file *file, uint32_t row)
{
	step(word_of(file, row), LL_VISIT_WORD_OPEN);
}

_Atomic uint32_t *ll_visit_word(const struct ll_claim *claim)
{
	if (!ll_claim_is_ours(claim))
		return NULL;
	return word_of(claim->ledger->file, claim->tenant_row);
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

void ll_visit_let_deaf_go(struct ll_ledger_file *file, uint64_t now_ns)
{
	LL_CONTENDER_EACH(file, index)
	{
		const struct ll_ledger_slot *slot = &file->slots[index];
		if (atomic_load(&slot->want_since_ns) &&
		    atomic_load_explicit(&slot->visit, memory_order_relaxed) & LL_VISIT_ON_CARD &&
		    ll_contender_is_deaf(file, index, now_ns))
			ll_visit_open(file, ll_contender_row(file, index));
	}
}
