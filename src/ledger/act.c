#include "ledger/act.h"

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

/* The tenant of this claim gets or loses the turn. */
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

void ll_act_give(struct ll_ledger_file *file, unsigned from, unsigned to, uint64_t turn, bool is_service,
		 uint64_t now_ns)
{
	if (!pass_turn(file, turn, to, is_service, now_ns))
		return;
	ll_act_shut_card(file, ll_contender_row(file, from));
	ll_act_open_card(file, ll_contender_row(file, to));
	shut_and_wake_tenant(file, to);
}

void ll_act_take(const struct ll_contender_id *id, uint64_t turn, bool is_service, uint64_t now_ns)
{
	unsigned former = ll_turn_word_holder(turn);
	if (!pass_turn(id->file, turn, id->index, is_service, now_ns))
		return;
	bool has_former = former >= 1 && former <= LL_LEDGER_CLAIMS;
	if (has_former && ll_contender_row(id->file, former - 1) != id->row)
		ll_act_shut_card(id->file, ll_contender_row(id->file, former - 1));
	ll_act_open_card(id->file, id->row);
	if (has_former)
		shut_and_wake_tenant(id->file, former - 1);
}

void ll_act_free(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns)
{
	if (atomic_compare_exchange_strong(&file->turn, &turn, next_turn(turn, 0, false)))
		atomic_store(&file->turn_since_ns, now_ns);
}

bool ll_act_leave_to_sibling(struct ll_ledger_file *file, unsigned index, uint64_t turn, uint64_t now_ns)
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

void ll_act_begin_waiting(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	atomic_store(&file->slots[index].want_since_ns, now_ns);
}

/* Another thread of the claim's process may just have ended its demand. */
void ll_act_restart_waiting(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t since_ns = atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed);
	if (since_ns)
		atomic_compare_exchange_strong(&slot->want_since_ns, &since_ns, now_ns);
}

void ll_act_set_flag(struct ll_ledger_file *file, unsigned index, enum ll_visit_flag flag, bool is_set)
{
	ll_slot_set_flag(&file->slots[index], flag, is_set);
}

void ll_act_shut_out(struct ll_ledger_file *file, uint64_t turn)
{
	unsigned holder = ll_turn_word_holder(turn);
	uint32_t row = holder >= 1 && holder <= LL_LEDGER_CLAIMS ? ll_contender_row(file, holder - 1) : 0;
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (atomic_load(&file->slots[i].gate) != LL_GATE_SHUT)
			shut_and_wake(&file->slots[i]);
	}
}

void ll_act_shut_others(struct ll_ledger_file *file, const struct ll_contender_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_ledger_slot *other = &file->slots[scan->slots[i]];
		if (atomic_load(&other->gate) != LL_GATE_SHUT)
			shut_and_wake(other);
	}
}

/* Both steps count up: a shut word is even, an open one odd. */
static void step_card_word(_Atomic uint32_t *word, uint32_t from)
{
	uint32_t value = word ? atomic_load(word) : 0;
	while (word && (value & LL_VISIT_WORD_OPEN) == from && !atomic_compare_exchange_weak(word, &value, value + 1))
		;
}

void ll_act_open_card(struct ll_ledger_file *file, uint32_t row)
{
	step_card_word(ll_tenant_rows_card_word(file, row), 0);
}

void ll_act_shut_card(struct ll_ledger_file *file, uint32_t row)
{
	step_card_word(ll_tenant_rows_card_word(file, row), LL_VISIT_WORD_OPEN);
}

void ll_act_open_card_at_rest(struct ll_ledger_file *file, uint32_t row)
{
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (atomic_load(&file->slots[i].want_since_ns))
			return;
	}
	ll_act_open_card(file, row);
}

void ll_act_open_card_of_deaf(struct ll_ledger_file *file, uint64_t now_ns)
{
	LL_CONTENDER_EACH(file, index)
	{
		const struct ll_ledger_slot *slot = &file->slots[index];
		if (atomic_load(&slot->want_since_ns) &&
		    atomic_load_explicit(&slot->visit, memory_order_relaxed) & LL_VISIT_ON_CARD &&
		    ll_contender_is_deaf(file, index, now_ns))
			ll_act_open_card(file, ll_contender_row(file, index));
	}
}

void ll_act_set_first_card(struct ll_ledger_file *file, uint32_t row, uint64_t number)
{
	struct ll_ledger_tenant *tenant = ll_tenant_rows_at(file, row);
	if (tenant)
		atomic_store_explicit(&tenant->first_card, number, memory_order_relaxed);
}

void ll_act_set_gang_turn(struct ll_ledger_file *file, uint32_t row, uint64_t until_ns)
{
	struct ll_ledger_tenant *tenant = ll_tenant_rows_at(file, row);
	if (tenant)
		atomic_store_explicit(&tenant->gang_turn_until_ns, until_ns, memory_order_relaxed);
}

void ll_act_post_gang_work(struct ll_ledger_file *file, uint32_t row, uint32_t launches, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = ll_tenant_rows_at(file, row);
	if (!tenant)
		return;
	atomic_store_explicit(&tenant->others_launches, launches, memory_order_relaxed);
	atomic_store_explicit(&tenant->others_busy_ns, now_ns, memory_order_relaxed);
}

void ll_act_withdraw_gang_work(struct ll_ledger_file *file, uint32_t row, uint64_t posted_ns)
{
	struct ll_ledger_tenant *tenant = ll_tenant_rows_at(file, row);
	if (tenant)
		atomic_compare_exchange_strong(&tenant->others_busy_ns, &posted_ns,
					       posted_ns - (LL_GANG_FRESH_NS - LL_GANG_LOOK_NS));
}

void ll_act_note_ending(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = ll_tenant_rows_at(file, row);
	if (tenant)
		atomic_store_explicit(&tenant->ending_ns, now_ns, memory_order_relaxed);
}

void ll_act_ask(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	atomic_store(&file->slots[index].asked_ns, now_ns);
	ll_slot_wake(&file->slots[index]);
}
