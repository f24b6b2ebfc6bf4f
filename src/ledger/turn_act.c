#include "ledger/turn_act.h"

#include "ledger/rows.h"

#define COUNT_MASK (LL_TURN_WORD_PROMOTED - 1)

static uint64_t next_turn(uint64_t turn, unsigned holder, bool is_promoted)
{
	return (uint64_t)holder << LL_TURN_WORD_SHIFT | (is_promoted ? LL_TURN_WORD_PROMOTED : 0) |
	       ((turn + 1) & COUNT_MASK);
}

static void shut_and_wake(struct ll_ledger_slot *slot)
{
	atomic_store(&slot->gate, LL_GATE_SHUT);
	ll_slot_wake(slot);
}

/* The turn comes to the tenant of this claim, or goes from it. */
static void shut_and_wake_tenant(struct ll_ledger_file *file, unsigned index)
{
	uint32_t row = ll_contender_row(file, index);
	shut_and_wake(&file->slots[index]);
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (i != index && atomic_load(&file->slots[i].want_since_ns))
			shut_and_wake(&file->slots[i]);
	}
}

static bool pass_turn(struct ll_ledger_file *file, uint64_t turn, unsigned to, bool is_promoted, uint64_t now_ns)
{
	if (!atomic_compare_exchange_strong(&file->turn, &turn, next_turn(turn, to + 1, is_promoted)))
		return false;
	atomic_store(&file->turn_since_ns, now_ns);
	return true;
}

void ll_turn_act_give(struct ll_ledger_file *file, unsigned from, unsigned to, uint64_t turn, bool is_service,
		      uint64_t now_ns)
{
	if (!pass_turn(file, turn, to, is_service, now_ns))
		return;
	ll_visit_shut(file, ll_contender_row(file, from));
	ll_visit_open(file, ll_contender_row(file, to));
	shut_and_wake_tenant(file, to);
}

void ll_turn_act_take(struct ll_ledger_file *file, unsigned index, uint32_t row, uint64_t turn, bool is_service,
		      uint64_t now_ns)
{
	unsigned former = ll_turn_word_holder(turn);
	if (!pass_turn(file, turn, index, is_service, now_ns))
		return;
	bool has_former = former >= 1 && former <= LL_LEDGER_CLAIMS;
	if (has_former && ll_contender_row(file, former - 1) != row)
		ll_visit_shut(file, ll_contender_row(file, former - 1));
	ll_visit_open(file, row);
	if (has_former)
		shut_and_wake_tenant(file, former - 1);
}

void ll_turn_act_free(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns)
{
	if (atomic_compare_exchange_strong(&file->turn, &turn, next_turn(turn, 0, false)))
		atomic_store(&file->turn_since_ns, now_ns);
}

bool ll_turn_act_leave_to_sibling(struct ll_ledger_file *file, unsigned index, uint64_t turn, uint64_t now_ns)
{
	uint32_t row = ll_contender_row(file, index);
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (i == index || !atomic_load(&file->slots[i].want_since_ns) || ll_contender_is_deaf(file, i, now_ns))
			continue;
		uint64_t word = turn;
		return atomic_compare_exchange_strong(&file->turn, &word,
						      next_turn(turn, i + 1, turn & LL_TURN_WORD_PROMOTED));
	}
	return false;
}

void ll_turn_act_shut_out(struct ll_ledger_file *file, uint64_t turn)
{
	unsigned holder = ll_turn_word_holder(turn);
	uint32_t row = holder >= 1 && holder <= LL_LEDGER_CLAIMS ? ll_contender_row(file, holder - 1) : 0;
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (atomic_load(&file->slots[i].gate) != LL_GATE_SHUT)
			shut_and_wake(&file->slots[i]);
	}
}

void ll_turn_act_shut_others(struct ll_ledger_file *file, const struct ll_contender_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_ledger_slot *other = &file->slots[scan->slots[i]];
		if (atomic_load(&other->gate) != LL_GATE_SHUT)
			shut_and_wake(other);
	}
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
