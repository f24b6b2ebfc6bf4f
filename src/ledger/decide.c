#include "ledger/decide.h"

#include "control/tokens.h"
#include "control/visits.h"
#include "ledger/account.h"
#include "ledger/act.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/virtual_time.h"

bool ll_decide_has_turn(const struct ll_ledger_file *file, unsigned index)
{
	return ll_contender_has_turn(file, atomic_load_explicit(&file->turn, memory_order_relaxed), index);
}

/* Returns the claim's tenant; NULL: it has none. */
static struct ll_ledger_tenant *tenant_of(const struct ll_contender_id *id)
{
	return ll_tenant_rows_at(id->file, ll_contender_row(id->file, id->index));
}

void ll_decide_want(const struct ll_contender_id *id, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = tenant_of(id);
	struct ll_contender_scan scan;
	ll_contender_scan(id->file, id->index, now_ns, &scan);
	if (tenant)
		ll_virtual_time_come_back(id->file, tenant, &scan, now_ns);
	ll_act_begin_waiting(id->file, id->index, now_ns);
	bool needs_turns = ll_sharing_needs_visits(id->file, now_ns);
	if (needs_turns && scan.count && !ll_decide_has_turn(id->file, id->index))
		ll_act_shut_card(id->file, id->row);
	if (needs_turns)
		ll_act_shut_others(id->file, &scan);
}

void ll_decide_return(const struct ll_contender_id *id, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = tenant_of(id);
	struct ll_contender_scan scan;
	if (!tenant)
		return;
	ll_contender_scan(id->file, id->index, now_ns, &scan);
	ll_virtual_time_come_back(id->file, tenant, &scan, now_ns);
}

static void give_away(const struct ll_contender_id *id, uint64_t word, uint64_t now_ns)
{
	struct ll_contender_scan scan;
	ll_contender_scan(id->file, id->index, now_ns, &scan);
	size_t best = ll_visits_next(scan.contenders, scan.count);
	if (best < scan.count)
		ll_act_give(id->file, id->index, scan.slots[best], word,
			    ll_visits_is_service(NULL, scan.contenders, scan.count, best), now_ns);
	else
		ll_act_free(id->file, word, now_ns);
}

void ll_decide_rest(const struct ll_contender_id *id, uint64_t now_ns)
{
	uint64_t word = atomic_load(&id->file->turn);
	if (ll_turn_word_holder(word) == id->index + 1 && !ll_act_leave_to_sibling(id->file, id->index, word, now_ns))
		give_away(id, word, now_ns);
	ll_act_open_card_at_rest(id->file, id->row);
}

/* Reads who is visited by the word. *ret_visited: the claim that the word names, if it wants the card. */
static struct ll_visits_present read_present(const struct ll_ledger_file *file, uint64_t word, uint64_t now_ns,
					     struct ll_contender *ret_visited)
{
	unsigned index = ll_turn_word_holder(word);
	if (index == 0 || index > LL_LEDGER_CLAIMS || !ll_contender_read(file, index - 1, now_ns, ret_visited))
		return (struct ll_visits_present){.visited = NULL};
	uint64_t visited_ns = ll_contender_elapsed_ns(atomic_load(&file->turn_since_ns), now_ns);
	return (struct ll_visits_present){
	    .visited = ret_visited,
	    .visited_ns = visited_ns,
	    .is_service = word & LL_TURN_WORD_PROMOTED,
	    .is_deaf = visited_ns > LL_TURN_DEAF_NS && ll_contender_is_deaf(file, index - 1, now_ns),
	};
}

static void try_take(const struct ll_contender_id *id, const struct ll_contender *self,
		     const struct ll_contender_scan *scan, uint64_t word, uint64_t now_ns)
{
	struct ll_contender visited;
	ll_act_shut_out(id->file, word);
	struct ll_visits_present present = read_present(id->file, word, now_ns, &visited);
	if (ll_visits_takes(&present, self, scan->contenders, scan->count))
		ll_act_take(id, word, ll_visits_has_higher(scan->contenders, scan->count, self), now_ns);
}

static struct ll_visit read_visit(const struct ll_contender_id *id, const struct ll_turn *turn,
				  const struct ll_contender *self, const struct ll_contender_scan *scan,
				  const struct ll_gang_work *awaited, uint64_t word, uint64_t now_ns)
{
	const struct ll_ledger_slot *slot = &id->file->slots[id->index];
	return (struct ll_visit){
	    .self = self,
	    .visited_ns = ll_contender_elapsed_ns(atomic_load(&id->file->turn_since_ns), now_ns),
	    .dry_ns = turn->dry_since_ns ? now_ns - turn->dry_since_ns : 0,
	    .draining_ns = turn->ending_since_ns ? now_ns - turn->ending_since_ns : 0,
	    .queued_ns = scan->siblings_queued_ns + atomic_load_explicit(&slot->queued_ns, memory_order_relaxed),
	    .is_service = word & LL_TURN_WORD_PROMOTED,
	    .is_dry = turn->dry_since_ns,
	    .has_busy_sibling = scan->has_busy_sibling,
	    .is_lingering = turn->is_lingering,
	    .yields_to_gang = turn->yields_to_gang,
	    .had_work_elsewhere = awaited->seen_ns,
	    .has_work_elsewhere = ll_gang_is_fresh(awaited->seen_ns, now_ns),
	};
}

/* Without the pause the claim would take the turn back from the lower class at its next look, although it has no work.
 */
static void give_turn(const struct ll_contender_id *id, struct ll_turn *turn, const struct ll_contender_scan *scan,
		      const struct ll_visit_verdict *verdict, uint64_t word, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = tenant_of(id);
	if (tenant && verdict->loses_credit)
		ll_virtual_time_limit_credit(tenant, scan, now_ns);
	ll_act_set_flag(id->file, id->index, LL_VISIT_RAN_DRY, verdict->ran_dry);
	if (verdict->is_paused) {
		turn->paused_since_ns = now_ns;
		ll_act_set_flag(id->file, id->index, LL_VISIT_PAUSES, true);
	}
	ll_act_give(id->file, id->index, scan->slots[verdict->next], word, verdict->is_service, now_ns);
}

/* The claim has the turn. True: it may go on launching. */
static bool hold_turn(const struct ll_contender_id *id, struct ll_turn *turn, const struct ll_contender *self,
		      const struct ll_contender_scan *scan, const struct ll_gang_work *awaited, uint64_t word,
		      uint64_t now_ns)
{
	struct ll_visit visit = read_visit(id, turn, self, scan, awaited, word, now_ns);
	struct ll_visit_verdict verdict = ll_visits_decide(&visit, scan->contenders, scan->count);
	if (verdict.act != LL_VISIT_DRAINS)
		turn->ending_since_ns = 0;
	else if (!turn->ending_since_ns)
		turn->ending_since_ns = now_ns;
	if (verdict.tells_cards)
		ll_act_note_ending(id->file, ll_contender_row(id->file, id->index), now_ns);
	if (verdict.act == LL_VISIT_GIVES)
		give_turn(id, turn, scan, &verdict, word, now_ns);
	return verdict.may_launch;
}

/* The card's time slices serve all who want it. A program's cap, and a higher class, bound its own launches alone. */
static void decide_slices(const struct ll_contender_id *id, struct ll_turn *turn, const struct ll_contender *self,
			  struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, bool has_superior,
			  uint64_t now_ns, struct ll_turn_look *look)
{
	turn->ending_since_ns = 0;
	ll_act_open_card(id->file, id->row);
	ll_act_restart_waiting(id->file, id->index, now_ns);
	ll_virtual_time_forgive(tenant, scan, now_ns);
	look->may_launch = self->has_tokens;
	look->is_alone = !self->has_cap && !has_superior;
	look->is_sliced = scan->count;
	look->waiting_claims = 0;
	look->sharing = ll_sharing_count(id->file, id->index, scan, 0);
	look->queue_bound_ns = has_superior ? LL_QUEUE_BENEATH_NS : 0;
	look->is_holder = ll_decide_has_turn(id->file, id->index);
}

/* The claim is alone on the card, or it is visited in turn with the others. */
static void decide_turn(const struct ll_contender_id *id, struct ll_turn *turn, struct ll_contender *self,
			const struct ll_contender_scan *scan, uint64_t now_ns, struct ll_turn_look *look)
{
	struct ll_ledger_file *file = id->file;
	uint64_t word = atomic_load(&file->turn);
	if (!ll_contender_has_turn(file, word, id->index) && !self->is_paused) {
		turn->ending_since_ns = 0;
		try_take(id, self, scan, word, now_ns);
		word = atomic_load(&file->turn);
	}
	if (ll_contender_has_turn(file, word, id->index)) {
		ll_act_restart_waiting(file, id->index, now_ns);
		self->waited_ns = 0;
		ll_act_open_card_of_deaf(file, now_ns);
		look->may_launch = hold_turn(id, turn, self, scan, &look->awaited, word, now_ns);
	}
	look->is_holder = ll_decide_has_turn(file, id->index);
	look->turn_since_ns = atomic_load(&file->turn_since_ns);
	if ((look->is_holder && !turn->ending_since_ns) || !scan->count)
		ll_act_open_card(file, id->row);
	else
		ll_act_shut_card(file, id->row);
}

static void read_account(struct ll_ledger_tenant *tenant, uint64_t now_ns, struct ll_turn_look *look)
{
	unsigned cap = atomic_load_explicit(&tenant->compute_cap_permille, memory_order_relaxed);
	look->tokens_ns = ll_account_earn(tenant, now_ns);
	look->tokens_most_ns = cap ? ll_tokens_most_ns(cap) : INT64_MAX;
	look->tokens_at_ns = cap && look->tokens_ns <= 0 ? now_ns + ll_tokens_wait_ns(look->tokens_ns, cap) : 0;
}

void ll_decide_look(const struct ll_contender_id *id, struct ll_turn *turn, uint64_t now_ns,
		    struct ll_turn_look *ret_look)
{
	*ret_look = (struct ll_turn_look){.tokens_ns = INT64_MAX, .tokens_most_ns = INT64_MAX};
	struct ll_ledger_tenant *tenant = tenant_of(id);
	if (!tenant) {
		ll_act_open_card(id->file, id->row);
		ret_look->may_launch = true;
		return;
	}
	read_account(tenant, now_ns, ret_look);
	struct ll_contender self;
	struct ll_contender_scan scan;
	ll_contender_scan(id->file, id->index, now_ns, &scan);
	ll_virtual_time_mend(tenant, &scan, now_ns);
	ret_look->awaited = ll_gang_work_elsewhere(tenant);
	ret_look->waiting_claims = (unsigned)scan.count;
	ret_look->sharing = ll_sharing_count(id->file, id->index, &scan, LL_VISIT_DRAINED_NS + 1);
	if (!ll_contender_read(id->file, id->index, now_ns, &self)) {
		ll_act_open_card_at_rest(id->file, id->row);
		return;
	}
	if (!self.has_tokens)
		ll_virtual_time_limit_credit(tenant, &scan, now_ns);
	bool has_superior = ll_contender_has_superior(id->file, id->index, self.rank, now_ns);
	bool needs_visits = scan.count && ll_sharing_needs_visits(id->file, now_ns);
	if (!needs_visits && (scan.count || has_superior)) {
		decide_slices(id, turn, &self, tenant, &scan, has_superior, now_ns, ret_look);
		return;
	}
	decide_turn(id, turn, &self, &scan, now_ns, ret_look);
	bool is_beyond_visit = turn->is_lingering && !ret_look->is_holder;
	ll_act_set_flag(id->file, id->index, LL_VISIT_LINGERS, is_beyond_visit);
	ret_look->is_by_visits = self.waits_on_card && scan.count;
	if (ret_look->is_by_visits) /* who does not linger is held */
		ret_look->sharing = ll_sharing_lingering(&scan) + is_beyond_visit;
	ret_look->is_alone = ret_look->may_launch && !self.has_cap && scan.count == 0;
}

bool ll_decide_gate(const struct ll_contender_id *id, uint64_t now_ns)
{
	const struct ll_ledger_tenant *tenant = tenant_of(id);
	struct ll_contender_scan scan;
	if (!tenant || atomic_load(&tenant->compute_cap_permille))
		return false;
	ll_contender_scan(id->file, id->index, now_ns, &scan);
	bool is_free =
	    scan.count == 0 ? ll_decide_has_turn(id->file, id->index) : !ll_sharing_needs_visits(id->file, now_ns);
	return is_free && !ll_contender_has_superior(id->file, id->index, ll_contender_rank(tenant), now_ns);
}
