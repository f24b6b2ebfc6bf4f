#include "rules/queue/lend.h"

#include <stdlib.h>
#include <string.h>

#include "rules/queue/profile.h"

#define PAUSE_NS UINT64_C(1000000000)
enum { PAUSE_DOUBLINGS_MAX = 8 };

/* ---- rows ---- */

/* A borrower holds its cards as any other job does; for a claim and a return its compute does not count. */
static struct ll_queue_job as_holder(const struct ll_queue_job *job)
{
	struct ll_queue_job holder = *job;
	holder.compute_permille = job->is_lent ? 0 : job->compute_permille;
	holder.is_lent = false;
	return holder;
}

/* What is taken now by the jobs in these states (a bit for each), and the windows of now; of the others what counts for
 * their users. The caller frees it. NULL: no memory. is_compute: also that of borrowers. */
static uint64_t *make_row(const struct ll_lend *lend, uint32_t states, bool is_compute)
{
	const struct ll_queue *queue = lend->queue;
	struct ll_queue_profile profile = {0};
	ll_queue_profile_start(&profile, queue->machine, queue->user_count, lend->now_ns);
	uint64_t *row = profile.has_failed ? NULL : calloc(profile.width, sizeof *row);
	for (size_t at = 0; row && at < profile.count && profile.steps[at].begin_ns <= lend->now_ns; at++)
		memcpy(row, profile.steps[at].row, profile.width * sizeof *row);
	ll_queue_profile_fini(&profile);
	for (size_t i = 0; row && i < lend->count; i++) {
		const struct ll_queue_job *job = lend->jobs[i].job;
		struct ll_queue_job holder = as_holder(job);
		holder.compute_permille = is_compute ? job->compute_permille : holder.compute_permille;
		holder.is_lent = !(states >> lend->jobs[i].state & 1);
		ll_queue_row_add(queue->machine, row, &holder, job->planned.cards, 1);
	}
	return row;
}

enum {
	PROMISED = 1U << LL_LEND_RUNS | 1U << LL_LEND_RESERVED,
	PRESENT = 1U << LL_LEND_RUNS | 1U << LL_LEND_LEAVING,
};

static uint64_t bytes_on(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint32_t card)
{
	const struct ll_queue_card *its = &machine->cards[card];
	return machine->groups[its->group].is_whole ? its->memory_bytes : job->memory_bytes;
}

static uint64_t free_on(const struct ll_queue_machine *machine, const uint64_t *row, uint32_t card)
{
	uint64_t size = machine->cards[card].memory_bytes;
	uint64_t used = row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_MEMORY];
	return used < size ? size - used : 0;
}

/* The cards of the set that have no room for the job. is_kept: also those that a window keeps from it. */
static uint64_t cards_lacking(const struct ll_queue_machine *machine, const uint64_t *row,
			      const struct ll_queue_job *job, uint64_t cards, bool is_kept)
{
	uint64_t lack = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		bool has_room = is_kept ? ll_queue_card_has_room(machine, row, job, card)
					: bytes_on(machine, job, card) <= free_on(machine, row, card);
		if (cards >> card & 1 && !has_room)
			lack |= UINT64_C(1) << card;
	}
	return lack;
}

static bool is_within(uint64_t used, uint64_t need, uint64_t limit)
{
	return limit == LL_QUEUE_NONE || (used <= limit && need <= limit - used);
}

/* The limits of its tenant, which count what the tenant borrows. */
static bool keeps_limits(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job)
{
	uint32_t group = machine->cards[__builtin_ctzll(job->planned.cards)].group;
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	const struct ll_queue_amount *limit = &machine->tenants[job->tenant].limits[group];
	const uint64_t *used = row + ll_queue_at_tenant(machine, job->tenant, group);
	return is_within(used[LL_QUEUE_AT_CARDS], need.cards * job->card_count, limit->cards) &&
	       is_within(used[LL_QUEUE_AT_MEMORY], need.memory_bytes * job->card_count, limit->memory_bytes);
}

/* ---- borrowing ---- */

/* Host memory for eviction that is left for the cards of a NUMA node. */
static uint64_t pool_left(const struct ll_lend *lend, int node)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	uint64_t nodes = 0, lent = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint32_t before = 0;
		while (before < card && machine->cards[before].numa_node != machine->cards[card].numa_node)
			before++;
		nodes += before == card;
		for (size_t i = 0; machine->cards[card].numa_node == node && i < lend->count; i++) {
			const struct ll_lend_job *its = &lend->jobs[i];
			if (its->is_pooled && its->job->planned.cards >> card & 1)
				lent += bytes_on(machine, its->job, card);
		}
	}
	uint64_t part = nodes ? lend->pool_bytes / nodes : 0;
	return lent < part ? part - lent : 0;
}

static bool fits_pool(const struct ll_lend *lend, const struct ll_queue_job *job, uint64_t cards)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint64_t bytes = 0;
		for (uint32_t other = 0; other < machine->card_count; other++)
			bytes += cards >> other & 1 && machine->cards[other].numa_node == machine->cards[card].numa_node
				     ? bytes_on(machine, job, other)
				     : 0;
		if (cards >> card & 1 && bytes > pool_left(lend, machine->cards[card].numa_node))
			return false;
	}
	return lend->steps >> LL_LEND_EVICT & 1;
}

static bool may_stop(const struct ll_lend *lend)
{
	return lend->steps & (1U << LL_LEND_STOP | 1U << LL_LEND_KILL);
}

/* No card of the job goes out of use before its end. */
static bool is_in_use(const struct ll_lend *lend, const struct ll_queue_job *job, uint32_t card)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	for (size_t i = 0; i < machine->interval_count; i++) {
		const struct ll_queue_interval *its = &machine->intervals[i];
		if (its->card == card && its->tenant == LL_QUEUE_NOBODY && its->end_ns > lend->now_ns &&
		    (its->begin_ns <= lend->now_ns || its->begin_ns - lend->now_ns < job->duration_ns))
			return false;
	}
	return true;
}

/* What the tenants keep free of the group, of what they do not use of their guarantees, is free on one card of it once
 * the job is there. */
static bool leaves_kept(const struct ll_lend *lend, const uint64_t *row, const struct ll_queue_job *job, uint64_t cards)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	uint32_t group = machine->cards[__builtin_ctzll(cards)].group;
	uint64_t kept = 0, most = 0;
	for (uint32_t tenant = 0; lend->keep_free_bytes && tenant < machine->tenant_count; tenant++) {
		uint64_t guarantee = machine->tenants[tenant].guarantees[group].memory_bytes;
		uint64_t used = row[ll_queue_at_tenant(machine, tenant, group) + LL_QUEUE_AT_MEMORY];
		uint64_t unused = guarantee > used ? guarantee - used : 0, wish = lend->keep_free_bytes[tenant];
		kept += tenant == job->tenant ? 0 : wish < unused ? wish : unused;
	}
	for (uint32_t card = 0; card < machine->card_count; card++) {
		bool is_out = row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_KEPT] == LL_QUEUE_OUT_OF_USE;
		uint64_t left = is_out ? 0 : free_on(machine, row, card);
		uint64_t bytes = cards >> card & 1 ? bytes_on(machine, job, card) : 0;
		left = left > bytes ? left - bytes : 0;
		most = machine->cards[card].group == group && left > most ? left : most;
	}
	return most >= kept;
}

static uint64_t borrow_in(const struct ll_lend *lend, const uint64_t *row, const struct ll_queue_job *job,
			  uint32_t group)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	struct ll_queue_job asking = *job;
	uint64_t candidates = 0, left[LL_QUEUE_CARDS_MAX] = {0};
	asking.is_lent = true;
	if (ll_queue_refusal(machine, row, &asking, group, NULL))
		return 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint64_t bit = UINT64_C(1) << card;
		left[card] = free_on(machine, row, card);
		if (machine->cards[card].group == group && job->allowed & ~job->within & bit &&
		    ll_queue_card_has_room(machine, row, job, card) && is_in_use(lend, job, card) &&
		    (may_stop(lend) || fits_pool(lend, job, bit)))
			candidates |= bit;
	}
	return ll_queue_choose(machine, job, candidates, left);
}

uint64_t ll_lend_borrow(const struct ll_lend *lend, const struct ll_queue_job *job, bool *ret_is_pooled)
{
	uint64_t chosen = 0;
	uint64_t *row = make_row(lend, PROMISED | 1U << LL_LEND_LEAVING, true);
	for (uint32_t group = 0; row && group < lend->queue->machine->group_count && !chosen; group++) {
		uint64_t cards = borrow_in(lend, row, job, group);
		bool is_pooled = cards && fits_pool(lend, job, cards);
		if (!cards || !(is_pooled || may_stop(lend)) || !leaves_kept(lend, row, job, cards))
			continue;
		chosen = cards;
		*ret_is_pooled = is_pooled;
	}
	free(row);
	return chosen;
}

bool ll_lend_may_return(const struct ll_lend *lend, const struct ll_queue_job *job)
{
	struct ll_queue_job holder = as_holder(job);
	uint64_t *row = make_row(lend, PROMISED | 1U << LL_LEND_LEAVING, false);
	holder.compute_permille = 0;
	bool may = row && !cards_lacking(lend->queue->machine, row, &holder, job->planned.cards, true) &&
		   keeps_limits(lend->queue->machine, row, job) &&
		   (!job->is_lent || leaves_kept(lend, row, job, job->planned.cards));
	free(row);
	return may;
}

/* ---- reclaim ---- */

static enum ll_lend_step step_of(const struct ll_lend *lend, const struct ll_lend_job *its)
{
	if (!its->job->is_lent || its->state != LL_LEND_RUNS || its->is_spared)
		return LL_LEND_STAY;
	if (its->is_pooled && its->is_idle && lend->steps >> LL_LEND_EVICT_IDLE & 1)
		return LL_LEND_EVICT_IDLE;
	for (enum ll_lend_step step = its->is_pooled ? LL_LEND_EVICT : LL_LEND_STOP; step <= LL_LEND_KILL; step++) {
		if (lend->steps >> step & 1)
			return step;
	}
	return LL_LEND_STAY;
}

/* The next borrower to go: of those without a step that stand in the way, the one with the gentlest step; of these the
 * last to borrow. */
static struct ll_lend_job *next_victim(const struct ll_lend *lend, uint64_t lack, uint32_t tenant)
{
	struct ll_lend_job *best = NULL;
	enum ll_lend_step best_step = LL_LEND_STAY;
	for (size_t i = 0; i < lend->count; i++) {
		struct ll_lend_job *its = &lend->jobs[i];
		enum ll_lend_step step = its->step ? LL_LEND_STAY : step_of(lend, its);
		bool is_in_way = its->job->planned.cards & lack || its->job->tenant == tenant;
		if (!step || !is_in_way || (best && step > best_step) ||
		    (best && step == best_step && its->job->planned.begin_ns < best->job->planned.begin_ns))
			continue;
		best = its;
		best_step = step;
	}
	return best;
}

static void move_victim(const struct ll_lend *lend, uint64_t *row, struct ll_lend_job *its, enum ll_lend_step step)
{
	struct ll_queue_job holder = as_holder(its->job);
	its->step = step;
	ll_queue_row_add(lend->queue->machine, row, &holder, its->job->planned.cards, step ? UINT64_MAX : 1);
}

bool ll_lend_claim(struct ll_lend *lend, const struct ll_queue_job *job)
{
	const struct ll_queue_machine *machine = lend->queue->machine;
	uint64_t cards = job->planned.cards;
	uint64_t *row = make_row(lend, PROMISED, false);
	bool fits = false;
	for (size_t i = 0; i < lend->count; i++)
		lend->jobs[i].step = LL_LEND_STAY;
	while (row && !fits) {
		uint64_t lack = cards_lacking(machine, row, job, cards, false);
		bool is_over = !keeps_limits(machine, row, job);
		struct ll_lend_job *victim =
		    lack || is_over ? next_victim(lend, lack, is_over ? job->tenant : LL_QUEUE_NOBODY) : NULL;
		fits = !lack && !is_over;
		if (!fits && !victim)
			break;
		if (victim)
			move_victim(lend, row, victim, step_of(lend, victim));
	}
	/* Those that were chosen in vain stay, the hardest step first. */
	for (enum ll_lend_step step = LL_LEND_KILL; step > LL_LEND_STAY; step--) {
		for (size_t i = 0; i < lend->count; i++) {
			struct ll_lend_job *its = &lend->jobs[i];
			if (its->step != step)
				continue;
			if (row)
				move_victim(lend, row, its, LL_LEND_STAY);
			if (fits &&
			    (cards_lacking(machine, row, job, cards, false) || !keeps_limits(machine, row, job)))
				move_victim(lend, row, its, step);
		}
	}
	free(row);
	return fits;
}

uint64_t ll_lend_free_cards(const struct ll_lend *lend, const struct ll_queue_job *job)
{
	uint64_t *row = make_row(lend, PROMISED, false);
	uint64_t cards = row ? job->allowed & ~cards_lacking(lend->queue->machine, row, job, job->allowed, false) : 0;
	free(row);
	return cards;
}

bool ll_lend_is_there(const struct ll_lend *lend, const struct ll_queue_job *job)
{
	uint64_t *row = make_row(lend, PRESENT, false);
	bool is_there = row && !cards_lacking(lend->queue->machine, row, job, job->planned.cards, false);
	free(row);
	return is_there;
}

uint64_t ll_lend_pause_ns(unsigned recalls)
{
	unsigned doublings = recalls ? recalls - 1 : 0;
	return recalls ? PAUSE_NS << (doublings < PAUSE_DOUBLINGS_MAX ? doublings : PAUSE_DOUBLINGS_MAX) : 0;
}
