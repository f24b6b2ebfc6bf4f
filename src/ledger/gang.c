#include "ledger/gang.h"

#include "ledger/act.h"
#include "ledger/contender.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/turn.h"

static struct ll_gang_work later_work(struct ll_gang_work a, struct ll_gang_work b)
{
	return a.seen_ns > b.seen_ns ? a : b;
}

/* What the card last had of the tenant, as its processes there posted. */
static struct ll_gang_work read_work_of(const struct ll_ledger_file *file, uint32_t row)
{
	struct ll_gang_work work = {0};
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		const struct ll_ledger_slot *slot = &file->slots[i];
		struct ll_gang_work own = {
		    .seen_ns = atomic_load_explicit(&slot->heartbeat_ns, memory_order_relaxed),
		    .launches = atomic_load_explicit(&slot->queued_launches, memory_order_relaxed),
		};
		if (own.launches)
			work = later_work(work, own);
	}
	return work;
}

/* On the caller's own card. */
static void name_first_card(const struct ll_claim *claim, uint64_t number)
{
	struct ll_ledger_file *file = claim->ledger->file;
	if (ll_claim_is_ours(claim))
		ll_act_set_first_card(file, ll_contender_row(file, claim->index), number);
}

/* Whether the claim works, or has paused for so short a time that it will go on. */
static bool is_active_claim(const struct ll_ledger_slot *slot, uint64_t now_ns)
{
	uint64_t idle_ns = ll_contender_elapsed_ns(atomic_load(&slot->activity_ns), now_ns);
	return atomic_load(&slot->want_since_ns) || idle_ns < LL_GANG_PAUSE_NS;
}

static bool has_active_claim(const struct ll_ledger_file *file, uint32_t row, uint64_t now_ns)
{
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (is_active_claim(&file->slots[i], now_ns))
			return true;
	}
	return false;
}

/* Whether the tenant that has the turn on the first card is another gang of that card which works here, and of no lower
 * class than the caller's. */
static bool yields_to_holder_of(const struct ll_claim *claim, const struct ll_ledger *first, uint64_t now_ns)
{
	unsigned index;
	if (!ll_turn_holder(first, &index))
		return false;
	const struct ll_ledger_tenant *holder = ll_contender_tenant(first->file, &first->file->slots[index]);
	uint64_t id = holder ? atomic_load_explicit(&holder->id, memory_order_relaxed) : 0;
	const struct ll_ledger_file *file = claim->ledger->file;
	unsigned row = id ? ll_tenant_rows_find(file, id) : LL_LEDGER_TENANTS;
	const struct ll_ledger_tenant *here = row < LL_LEDGER_TENANTS ? &file->tenants[row] : NULL;
	const struct ll_ledger_tenant *own = ll_contender_tenant(file, &file->slots[claim->index]);
	return here && own && atomic_load_explicit(&here->first_card, memory_order_relaxed) == first->inode &&
	       ll_contender_rank(here) <= ll_contender_rank(own) && has_active_claim(file, row + 1, now_ns);
}

/* Whether the claim in that slot of the caller's card is of another gang with the same first card. */
static bool is_of_other_gang(const struct ll_claim *claim, unsigned index, uint64_t first_card)
{
	const struct ll_ledger_file *file = claim->ledger->file;
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
	return tenant && ll_contender_row(file, index) != ll_contender_row(file, claim->index) &&
	       atomic_load_explicit(&tenant->first_card, memory_order_relaxed) == first_card;
}

/* Whether such a claim is active. Otherwise the first card decides no turn here. */
static bool has_other_gang(const struct ll_claim *claim, uint64_t first_card, uint64_t now_ns)
{
	const struct ll_ledger_file *file = claim->ledger->file;
	LL_CONTENDER_EACH(file, index)
	{
		if (is_of_other_gang(claim, index, first_card) && is_active_claim(&file->slots[index], now_ns))
			return true;
	}
	return false;
}

/* One gang has the turn at a time. Otherwise two would go first here until the word of the earlier one is too old. */
static void end_other_gang_turns(const struct ll_claim *claim, uint64_t first_card)
{
	struct ll_ledger_file *file = claim->ledger->file;
	LL_CONTENDER_EACH(file, index)
	{
		if (is_of_other_gang(claim, index, first_card))
			ll_act_set_gang_turn(file, ll_contender_row(file, index), 0);
	}
}

/* Reads what the first card has, and posts there what the caller's card has. */
static void exchange_work(const struct ll_claim *claim, const struct ll_ledger *first, unsigned row, uint32_t launches,
			  uint64_t now_ns, bool has_turn, struct ll_gang *gang)
{
	const struct ll_ledger_tenant *tenant = &first->file->tenants[row];
	uint64_t ending_ns = atomic_load_explicit(&tenant->ending_ns, memory_order_relaxed);
	gang->is_ending = has_turn && ll_gang_is_fresh(ending_ns, now_ns);
	gang->yields_to_gang = !has_turn && yields_to_holder_of(claim, first, now_ns);
	gang->work = later_work(read_work_of(first->file, row + 1), ll_gang_work_elsewhere(tenant));
	if (launches)
		ll_act_post_gang_work(first->file, row + 1, ll_gang_closes(gang) ? launches : 0, now_ns);
	else if (gang->posted_ns)
		ll_act_withdraw_gang_work(first->file, row + 1, gang->posted_ns);
	gang->posted_ns = launches ? now_ns : 0;
	if (has_turn)
		end_other_gang_turns(claim, first->inode);
}

void ll_gang_look(struct ll_claim *claim, const struct ll_ledger *first, uint64_t tenant_id, uint32_t launches,
		  uint64_t now_ns, struct ll_gang *gang)
{
	struct ll_ledger_file *file = first->file;
	unsigned row = ll_tenant_rows_find(file, tenant_id);
	*gang = (struct ll_gang){.posted_ns = gang->posted_ns};
	bool works_there = row < LL_LEDGER_TENANTS && has_active_claim(file, row + 1, now_ns);
	name_first_card(claim, works_there ? first->inode : 0); /* any number that the first card alone has */
	if (!works_there)
		return;
	bool has_turn = ll_turn_is_of(first, tenant_id);
	if (has_other_gang(claim, first->inode, now_ns))
		exchange_work(claim, first, row, launches, now_ns, has_turn, gang);
	if (has_turn)
		ll_turn_note_gang(claim, now_ns);
}
