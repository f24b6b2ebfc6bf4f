#include "ledger/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/act.h"
#include "ledger/decide.h"
#include "ledger/handle.h"
#include "ledger/rows.h"

/* Returns the claim's slot; NULL: the claim is not ours any more, and another claim may be there. */
static struct ll_ledger_slot *own_slot(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) ? claim->slot : NULL;
}

static struct ll_contender_id id_of(const struct ll_claim *claim)
{
	return (struct ll_contender_id){.file = claim->ledger->file, .index = claim->index, .row = claim->tenant_row};
}

void ll_turn_set_pace(struct ll_claim *claim, enum ll_pace pace)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (slot)
		atomic_store_explicit(&slot->pace, pace, memory_order_relaxed);
}

void ll_turn_set_waits_on_card(struct ll_claim *claim, bool waits)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (slot)
		ll_slot_set_flag(slot, LL_VISIT_ON_CARD, waits);
}

void ll_turn_want(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_contender_id id = id_of(claim);
	if (!slot || atomic_load(&slot->want_since_ns))
		return;
	ll_claim_set_active(claim);
	atomic_store(&slot->heartbeat_ns, now_ns);
	ll_decide_want(&id, now_ns);
}

void ll_turn_rest(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_contender_id id = id_of(claim);
	if (!slot || !atomic_load(&slot->want_since_ns))
		return;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	atomic_store(&slot->want_since_ns, 0);
	atomic_store(&slot->queued_ns, 0);
	atomic_store(&slot->queued_launches, 0);
	atomic_store(&slot->running_ns, 0);
	ll_claim_set_idle(claim, now_ns);
	ll_decide_rest(&id, now_ns);
}

bool ll_turn_post(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_ledger_file *file = claim->ledger->file;
	if (!slot || !ll_contender_tenant(file, slot))
		return false;
	if (!ll_slot_is_used(file, claim->index)) /* nobody would see the claim, nor give it the turn */
		ll_slot_mark_used(file, claim->index);
	bool was_deaf = ll_contender_is_deaf(file, claim->index, now_ns);
	atomic_store_explicit(&slot->heartbeat_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_ns, queued_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_launches, turn->queued_launches, memory_order_relaxed);
	atomic_store_explicit(&slot->running_ns, turn->running_ns, memory_order_relaxed);
	ll_slot_set_flag(slot, LL_VISIT_IS_DRY, turn->dry_since_ns);
	if (turn->paused_since_ns && now_ns - turn->paused_since_ns >= LL_TURN_PAUSE_NS)
		turn->paused_since_ns = 0;
	if (!turn->paused_since_ns)
		ll_slot_set_flag(slot, LL_VISIT_PAUSES, false);
	return was_deaf;
}

void ll_turn_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look)
{
	struct ll_contender_id id = id_of(claim);
	if (ll_turn_post(claim, turn, now_ns, queued_ns))
		ll_decide_return(&id, now_ns);
	if (own_slot(claim))
		ll_decide_look(&id, turn, now_ns, ret_look);
	else
		*ret_look =
		    (struct ll_turn_look){.may_launch = true, .tokens_ns = INT64_MAX, .tokens_most_ns = INT64_MAX};
}

void ll_turn_note_gang(struct ll_claim *claim, uint64_t now_ns)
{
	const struct ll_ledger_slot *slot = own_slot(claim);
	if (slot)
		ll_act_set_gang_turn(claim->ledger->file, ll_contender_row(claim->ledger->file, claim->index),
				     now_ns + LL_GANG_TURN_NS);
}

bool ll_turn_is_of(const struct ll_ledger *ledger, uint64_t tenant_id)
{
	unsigned index;
	if (!ll_turn_holder(ledger, &index))
		return false;
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(ledger->file, &ledger->file->slots[index]);
	return tenant && atomic_load_explicit(&tenant->id, memory_order_relaxed) == tenant_id;
}

bool ll_turn_holder(const struct ll_ledger *ledger, unsigned *ret_index)
{
	unsigned holder = ll_turn_word_holder(atomic_load(&ledger->file->turn));
	if (holder < 1 || holder > LL_LEDGER_CLAIMS)
		return false;
	*ret_index = holder - 1;
	return true;
}

bool ll_turn_is_mine(const struct ll_claim *claim)
{
	return ll_decide_has_turn(claim->ledger->file, claim->index);
}

_Atomic uint32_t *ll_turn_card_word(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) ? ll_tenant_rows_card_word(claim->ledger->file, claim->tenant_row) : NULL;
}

_Atomic uint32_t *ll_turn_gate(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? &slot->gate : NULL;
}

/* The gate is opened before the look. So a claim that comes after the look finds the gate open, and shuts it. */
bool ll_turn_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_contender_id id = id_of(claim);
	if (!slot)
		return false;
	atomic_store(&slot->gate, how);
	if (ll_decide_gate(&id, now_ns))
		return true;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	return false;
}

void ll_turn_shut_gate(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (slot)
		atomic_store(&slot->gate, LL_GATE_SHUT);
}

uint32_t ll_turn_wake_count(const struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? atomic_load(&slot->wake_count) : 0;
}

void ll_turn_wake(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	if (slot)
		ll_slot_wake(slot);
}

void ll_turn_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns)
{
	struct ll_ledger_slot *slot = claim->slot;
	uint64_t now_ns = ll_now_ns();
	if (!slot || until_ns <= now_ns)
		return;
	int saved_errno = errno;
	uint64_t left_ns = until_ns - now_ns;
	struct timespec timeout = {.tv_sec = (time_t)(left_ns / LL_NS_PER_S), .tv_nsec = (long)(left_ns % LL_NS_PER_S)};
	syscall(SYS_futex, &slot->wake_count, FUTEX_WAIT, wake_count, &timeout, NULL, 0);
	errno = saved_errno;
}
