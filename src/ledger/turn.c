#include "ledger/turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/tokens.h"
#include "control/turns.h"
#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/contender.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/turn_act.h"

/* NULL: it is not ours, or not any more, and another's may be there. */
static struct ll_ledger_slot *own_slot(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) ? claim->slot : NULL;
}

/* Whether the turn is this claim's: its tenant's, through whichever claim the word names. */
static bool has_turn(struct ll_ledger_file *file, uint64_t turn, unsigned index)
{
	unsigned holder = ll_turn_word_holder(turn);
	if (holder < 1 || holder > LL_LEDGER_CLAIMS)
		return false;
	uint32_t row = ll_contender_row(file, index);
	return holder == index + 1 || (row && ll_contender_row(file, holder - 1) == row);
}

/* Patience is about the time without the turn: while a claim has it, its waiting has just begun. */
static void restart_waiting(struct ll_ledger_slot *slot, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed);
	if (since_ns) /* else it has none, or another thread of its process has just ended it */
		atomic_compare_exchange_strong(&slot->want_since_ns, &since_ns, now_ns);
}

/* giver: NULL where it has no work now. */
static void give_turn(struct ll_claim *claim, const struct ll_turn_contender *giver,
		      const struct ll_contender_scan *scan, size_t best, uint64_t turn, uint64_t now_ns)
{
	const struct ll_turn_contender *next = &scan->contenders[best];
	bool is_service = ll_turns_has_higher(scan->contenders, scan->count, next) ||
			  (giver && giver->has_tokens && giver->rank < next->rank);
	ll_turn_act_give(claim->ledger->file, claim->index, scan->slots[best], turn, is_service, now_ns);
}

void ll_turn_set_pace(struct ll_claim *claim, enum ll_pace pace)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (slot)
		atomic_store_explicit(&slot->pace, pace, memory_order_relaxed);
}

void ll_turn_want(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (!slot || atomic_load(&slot->want_since_ns))
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = ll_contender_tenant(file, slot);
	struct ll_contender_scan scan;
	ll_contender_scan(file, claim->index, now_ns, &scan);
	if (tenant)
		ll_virtual_time_come_back(file, tenant, &scan, now_ns);
	ll_claim_set_active(claim);
	atomic_store(&slot->heartbeat_ns, now_ns);
	atomic_store(&slot->want_since_ns, now_ns);
	bool needs_turns = !ll_sharing_is_sliced(file, now_ns);
	if (needs_turns && scan.count && !ll_turn_is_mine(claim))
		ll_visit_shut(file, claim->tenant_row);
	if (needs_turns)
		ll_turn_act_shut_others(file, &scan);
}

static void give_away(struct ll_claim *claim, uint64_t turn, uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_contender_scan scan;
	ll_contender_scan(file, claim->index, now_ns, &scan);
	size_t best = ll_turns_best(scan.contenders, scan.count);
	if (best < scan.count)
		give_turn(claim, NULL, &scan, best, turn, now_ns);
	else
		ll_turn_act_free(file, turn, now_ns);
}

void ll_turn_rest(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (!slot || !atomic_load(&slot->want_since_ns))
		return;
	struct ll_ledger_file *file = claim->ledger->file;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	atomic_store(&slot->want_since_ns, 0);
	atomic_store(&slot->queued_ns, 0);
	atomic_store(&slot->queued_launches, 0);
	atomic_store(&slot->running_ns, 0);
	ll_claim_set_idle(claim, now_ns);
	uint64_t turn = atomic_load(&file->turn);
	if (ll_turn_word_holder(turn) == claim->index + 1 &&
	    !ll_turn_act_leave_to_sibling(file, claim->index, turn, now_ns))
		give_away(claim, turn, now_ns);
	ll_visit_open_at_rest(file, claim->tenant_row);
}

/*
 * Whether a program of a higher class is on the card, even if it wants nothing now: its next launch shall not find more
 * queued than the bound, which an open gate does not keep.
 */
static bool has_superior(struct ll_ledger_file *file, unsigned self, unsigned rank)
{
	LL_CONTENDER_EACH(file, index)
	{
		struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
		if (index != self && tenant && ll_contender_rank(tenant) < rank)
			return true;
	}
	return false;
}

/* What the word names now. *ret_holder: whoever is named, where that one wants the card. */
static struct ll_turns_taking read_taking(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns,
					  struct ll_turn_contender *ret_holder)
{
	unsigned index = ll_turn_word_holder(turn);
	if (index == 0 || index > LL_LEDGER_CLAIMS || !ll_contender_read(file, index - 1, now_ns, ret_holder))
		return (struct ll_turns_taking){.holder = NULL};
	uint64_t held_ns = ll_contender_elapsed_ns(atomic_load(&file->turn_since_ns), now_ns);
	return (struct ll_turns_taking){
	    .holder = ret_holder,
	    .held_ns = held_ns,
	    .is_promoted = turn & LL_TURN_WORD_PROMOTED,
	    .is_deaf = held_ns > LL_TURN_DEAF_NS && ll_contender_is_deaf(file, index - 1, now_ns),
	};
}

/* Reads the page, has it decided, and acts. */
static void try_take(struct ll_claim *claim, const struct ll_turn_contender *self, const struct ll_contender_scan *scan,
		     uint64_t turn, uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_turn_contender holder;
	ll_turn_act_shut_out(file, turn);
	struct ll_turns_taking taking = read_taking(file, turn, now_ns, &holder);
	if (ll_turns_takes(&taking, self, scan->contenders, scan->count))
		ll_turn_act_take(file, claim->index, claim->tenant_row, turn,
				 ll_turns_has_higher(scan->contenders, scan->count, self), now_ns);
}

/* What the card still has of all the tenant's processes, as they said last: one that is stopped said so long ago. */
static uint64_t queued_by_tenant(struct ll_ledger_file *file, unsigned index, uint64_t now_ns)
{
	uint32_t row = ll_contender_row(file, index);
	uint64_t queued_ns = 0;
	LL_CONTENDER_EACH_OF(file, row, i)
	{
		if (i == index || !ll_contender_is_deaf(file, i, now_ns))
			queued_ns += atomic_load_explicit(&file->slots[i].queued_ns, memory_order_relaxed);
	}
	return queued_ns;
}

static struct ll_visit_contender as_visited(const struct ll_turn_contender *contender)
{
	return (struct ll_visit_contender){
	    .rank = contender->rank,
	    .weight_permille = contender->weight_permille,
	    .virtual_ns = contender->virtual_ns,
	    .has_work = true,
	    .launches_ahead = contender->launches_ahead,
	    .runs_dry = contender->ran_dry,
	};
}

/* Whether the visit of a holder whose work waits on the card is over. */
static bool is_over(const struct ll_claim *claim, const struct ll_turn *turn, const struct ll_turn_contender *self,
		    const struct ll_turn_contender *best, uint64_t held_ns, uint64_t now_ns)
{
	struct ll_visit_contender visited = as_visited(self), other = as_visited(best);
	visited.has_work = !turn->dry_since_ns || ll_visit_has_busy_sibling(claim, now_ns);
	uint64_t dry_ns = visited.has_work ? 0 : now_ns - turn->dry_since_ns;
	return !self->has_tokens || ll_turns_is_impatient(best, self) ||
	       ll_visits_end_ns(&visited, &other, held_ns, dry_ns < held_ns ? dry_ns : held_ns) <= held_ns;
}

/* What is let through already is little, and what is not stays behind: only a long launch is waited for, or the card
 * would run it in slices with the next visitor's work. */
static bool waits_for_rest(struct ll_turn *turn, uint64_t now_ns)
{
	if (!turn->is_lingering) {
		turn->ending_since_ns = 0;
		return false;
	}
	if (!turn->ending_since_ns)
		turn->ending_since_ns = now_ns;
	return now_ns - turn->ending_since_ns < LL_TURN_DRAIN_NS;
}

/* Else our own looks would take the turn back from the lower class, for work that is not there. */
static void begin_pause(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns)
{
	turn->paused_since_ns = now_ns;
	ll_visit_set(claim, LL_VISIT_PAUSES, true);
}

static void end_pause(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns)
{
	if (turn->paused_since_ns && now_ns - turn->paused_since_ns >= LL_TURN_PAUSE_NS)
		turn->paused_since_ns = 0;
	if (!turn->paused_since_ns)
		ll_visit_set(claim, LL_VISIT_PAUSES, false);
}

static bool keep_visit(struct ll_claim *claim, struct ll_turn *turn, const struct ll_turn_contender *self,
		       const struct ll_contender_scan *scan, size_t best, uint64_t word, uint64_t now_ns)
{
	struct ll_ledger_file *file = claim->ledger->file;
	uint64_t held_ns = ll_contender_elapsed_ns(atomic_load(&file->turn_since_ns), now_ns);
	bool is_dry = turn->dry_since_ns && now_ns - turn->dry_since_ns >= LL_VISIT_GRACE_WAITS_NS;
	bool is_service = word & LL_TURN_WORD_PROMOTED && held_ns < LL_TURN_SERVICE_NS && !is_dry;
	if (is_service || !is_over(claim, turn, self, &scan->contenders[best], held_ns, now_ns)) {
		turn->ending_since_ns = 0;
		return self->has_tokens;
	}
	if (waits_for_rest(turn, now_ns))
		return false;
	turn->ending_since_ns = 0;
	struct ll_ledger_tenant *tenant = ll_contender_tenant(file, claim->slot);
	if (tenant && turn->dry_since_ns)
		ll_virtual_time_limit_credit(tenant, scan, now_ns);
	ll_visit_set(claim, LL_VISIT_RAN_DRY, turn->dry_since_ns && self->launches_ahead);
	if (is_dry && self->rank < scan->contenders[best].rank)
		begin_pause(claim, turn, now_ns);
	give_turn(claim, is_dry ? NULL : self, scan, best, word, now_ns);
	return false;
}

/* The holder's side: give way or not. True while it may go on launching. */
static bool keep_turn(struct ll_claim *claim, struct ll_turn *turn, const struct ll_turn_contender *self,
		      const struct ll_contender_scan *scan, uint64_t word, uint64_t now_ns, struct ll_gang_work awaited)
{
	struct ll_ledger_file *file = claim->ledger->file;
	size_t best = ll_turns_best(scan->contenders, scan->count);
	if (best < scan->count && self->waits_on_card)
		return keep_visit(claim, turn, self, scan, best, word, now_ns);
	uint64_t held_ns = ll_contender_elapsed_ns(atomic_load(&file->turn_since_ns), now_ns);
	if (best == scan->count || (!turn->is_led && !ll_turns_gives_way(self, &scan->contenders[best], held_ns,
									 word & LL_TURN_WORD_PROMOTED))) {
		turn->ending_since_ns = 0;
		return self->has_tokens;
	}
	if (!turn->ending_since_ns)
		turn->ending_since_ns = now_ns;
	struct ll_ledger_tenant *tenant = ll_contender_tenant(file, claim->slot);
	uint64_t queued_ns = queued_by_tenant(file, claim->index, now_ns);
	bool is_drained = awaited.seen_ns ? !queued_ns && !ll_gang_is_fresh(awaited.seen_ns, now_ns)
					  : queued_ns <= LL_TURN_DRAINED_NS;
	if (is_drained || now_ns - turn->ending_since_ns >= LL_TURN_DRAIN_NS) {
		turn->ending_since_ns = 0;
		give_turn(claim, self, scan, best, word, now_ns);
	} else if (tenant) {
		ll_gang_note_ending(tenant, now_ns);
	}
	return false;
}

void ll_turn_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look)
{
	*ret_look = (struct ll_turn_look){.tokens_ns = INT64_MAX, .tokens_most_ns = INT64_MAX};
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_ledger_file *file = slot ? claim->ledger->file : NULL;
	struct ll_ledger_tenant *tenant = slot ? ll_contender_tenant(file, slot) : NULL;
	if (!tenant) {
		if (slot)
			ll_visit_open(claim->ledger->file, claim->tenant_row);
		ret_look->may_launch = true;
		return;
	}
	if (!ll_slot_is_used(file, claim->index)) /* nobody would see the claim, nor give it the turn */
		ll_slot_mark_used(file, claim->index);
	bool was_deaf = ll_contender_is_deaf(file, claim->index, now_ns);
	atomic_store_explicit(&slot->heartbeat_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_ns, queued_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_launches, turn->queued_launches, memory_order_relaxed);
	atomic_store_explicit(&slot->running_ns, turn->running_ns, memory_order_relaxed);
	ll_visit_set(claim, LL_VISIT_IS_DRY, turn->dry_since_ns);
	end_pause(claim, turn, now_ns);
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	ret_look->tokens_ns = ll_account_earn(tenant, now_ns);
	ret_look->tokens_most_ns = cap ? ll_tokens_most_ns(cap) : INT64_MAX;
	ret_look->tokens_at_ns =
	    cap && ret_look->tokens_ns <= 0 ? now_ns + ll_tokens_wait_ns(ret_look->tokens_ns, cap) : 0;
	ret_look->priority = ll_contender_rank(tenant);
	struct ll_turn_contender self;
	struct ll_contender_scan scan;
	ll_contender_scan(file, claim->index, now_ns, &scan);
	ll_virtual_time_mend(tenant, &scan, now_ns);
	if (was_deaf) /* stopped, for instance: it could not use the card, and gathers no credit by that */
		ll_virtual_time_come_back(file, tenant, &scan, now_ns);
	ret_look->awaited = ll_gang_work_elsewhere(tenant);
	ret_look->waiting_claims = (unsigned)scan.count;
	ret_look->sharing = ll_sharing_count(file, claim->index, &scan, LL_TURN_DRAINED_NS + 1);
	if (!ll_contender_read(file, claim->index, now_ns, &self)) {
		ll_visit_open_at_rest(file, claim->tenant_row);
		return;
	}
	if (!self.has_tokens)
		ll_virtual_time_limit_credit(tenant, &scan, now_ns);
	if (scan.count && ll_sharing_is_sliced(file, now_ns) && !has_superior(file, claim->index, self.rank)) {
		turn->ending_since_ns = 0;
		ll_visit_open(file, claim->tenant_row);
		restart_waiting(slot, now_ns);
		ll_virtual_time_forgive(tenant, &scan, now_ns);
		ret_look->may_launch = ret_look->is_alone = ret_look->is_sliced = true;
		ret_look->waiting_claims = 0;
		ret_look->sharing = ll_sharing_count(file, claim->index, &scan, 0);
		ret_look->is_holder = ll_turn_is_mine(claim);
		return;
	}
	uint64_t word = atomic_load(&file->turn);
	if (!has_turn(file, word, claim->index) && !self.is_paused) {
		turn->ending_since_ns = 0;
		try_take(claim, &self, &scan, word, now_ns);
		word = atomic_load(&file->turn);
	}
	if (has_turn(file, word, claim->index)) {
		restart_waiting(slot, now_ns);
		self.waited_ns = 0;
		ll_visit_let_deaf_go(file, now_ns);
		ret_look->may_launch = keep_turn(claim, turn, &self, &scan, word, now_ns, ret_look->awaited);
	}
	ret_look->is_holder = ll_turn_is_mine(claim);
	ret_look->is_by_visits = self.waits_on_card && (scan.count || has_superior(file, claim->index, self.rank));
	bool is_beyond_visit = turn->is_lingering && !ret_look->is_holder;
	ll_visit_set(claim, LL_VISIT_LINGERS, is_beyond_visit);
	if (ret_look->is_by_visits) /* who does not linger is held */
		ret_look->sharing = ll_sharing_lingering(&scan) + is_beyond_visit;
	ret_look->turn_since_ns = atomic_load(&file->turn_since_ns);
	if ((ret_look->is_holder && !turn->ending_since_ns) || !scan.count)
		ll_visit_open(file, claim->tenant_row);
	else
		ll_visit_shut(file, claim->tenant_row);
	ret_look->is_alone =
	    ret_look->may_launch && !cap && scan.count == 0 && !has_superior(file, claim->index, self.rank);
}

void ll_turn_call(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	struct ll_ledger_tenant *tenant = slot ? ll_contender_tenant(claim->ledger->file, slot) : NULL;
	if (tenant)
		atomic_store_explicit(&tenant->called_until_ns, now_ns + LL_TURN_CALLED_NS, memory_order_relaxed);
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
	struct ll_ledger_file *file = claim->ledger->file;
	return has_turn(file, atomic_load_explicit(&file->turn, memory_order_relaxed), claim->index);
}

_Atomic uint32_t *ll_turn_gate(struct ll_claim *claim)
{
	struct ll_ledger_slot *slot = claim->slot;
	return slot ? &slot->gate : NULL;
}

/* Opened first and looked after: who comes after the look finds it open and shuts it. */
bool ll_turn_open_gate(struct ll_claim *claim, enum ll_gate how, uint64_t now_ns)
{
	struct ll_ledger_slot *slot = own_slot(claim);
	if (!slot)
		return false;
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_tenant *tenant = ll_contender_tenant(file, slot);
	atomic_store(&slot->gate, how);
	struct ll_contender_scan scan;
	ll_contender_scan(file, claim->index, now_ns, &scan);
	bool is_free = scan.count == 0 ? ll_turn_is_mine(claim) : ll_sharing_is_sliced(file, now_ns);
	if (is_free && tenant && !atomic_load(&tenant->compute_cap_permille) &&
	    !has_superior(file, claim->index, ll_contender_rank(tenant)))
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
