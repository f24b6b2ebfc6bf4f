#include "rules/share/visits.h"

#include <limits.h>

enum { PERMILLE = 1000 };

uint64_t ll_visits_virtual_ns(uint64_t gpu_ns, unsigned weight_permille)
{
	return gpu_ns * PERMILLE / (weight_permille ? weight_permille : 1);
}

uint64_t ll_visits_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille)
{
	uint64_t lag_ns = ll_visits_virtual_ns(LL_VISIT_LAG_NS, weight_permille);
	uint64_t floor_ns = least_ns > lag_ns ? least_ns - lag_ns : 0;
	return virtual_ns > floor_ns ? virtual_ns : floor_ns;
}

/* ---- the next visit ---- */

/* Contenders that are compared with each other: self, if it is one of them, then the others. */
struct set {
	const struct ll_contender *self, *others;
	size_t count;
};

static const struct ll_contender *nth_contender(const struct set *set, size_t i)
{
	if (!set->self)
		return &set->others[i];
	return i == 0 ? set->self : &set->others[i - 1];
}

static unsigned lighter_permille(unsigned a_permille, unsigned b_permille)
{
	return a_permille < b_permille ? a_permille : b_permille;
}

/* The head start of a gang is added to each contender without a gang turn, so that no virtual time is negative. */
static uint64_t standing_ns(const struct ll_contender *contender, unsigned lightest_permille)
{
	return contender->virtual_ns +
	       (contender->has_gang_turn ? 0 : ll_visits_virtual_ns(LL_VISIT_GANG_NS, lightest_permille));
}

/* Whether `contender` lets `other` go first: both have the same first card, and `other` is visited there. */
static bool waits_for_gang_of(const struct ll_contender *contender, const struct ll_contender *other)
{
	return contender->first_card && contender->first_card == other->first_card && other->has_gang_turn &&
	       !contender->has_gang_turn;
}

static bool waits_for_any_gang(const struct set *set, const struct ll_contender *contender)
{
	for (size_t i = 0; contender->first_card && i < set->count; i++) {
		const struct ll_contender *other = nth_contender(set, i);
		if (waits_for_gang_of(contender, other) && other->has_tokens && other->rank <= contender->rank)
			return true;
	}
	return false;
}

static bool may_go(const struct ll_contender *contender)
{
	return contender->has_tokens && !contender->is_paused;
}

struct order {
	unsigned lightest_permille;
	unsigned highest_rank; /* the smallest rank of the contenders that may go */
};

static struct order order_of(const struct set *set)
{
	struct order order = {.lightest_permille = UINT_MAX, .highest_rank = UINT_MAX};
	for (size_t i = 0; i < set->count; i++) {
		const struct ll_contender *contender = nth_contender(set, i);
		order.lightest_permille = lighter_permille(order.lightest_permille, contender->weight_permille);
		if (may_go(contender) && contender->rank < order.highest_rank)
			order.highest_rank = contender->rank;
	}
	return order;
}

static bool has_waited_too_long(const struct ll_contender *contender, unsigned highest_rank)
{
	return contender->waited_ns >= (highest_rank < contender->rank ? LL_VISIT_STARVED_NS : LL_VISIT_PATIENCE_NS);
}

/* Whether a contender has waited for too long depends on all contenders, not on the one that it is compared with.
 * Otherwise the relation would not be an order, and a contender that has not waited could go before a higher class. */
static bool goes_before(const struct ll_contender *a, const struct ll_contender *b, const struct order *order)
{
	bool is_a_late = has_waited_too_long(a, order->highest_rank);
	if (is_a_late != has_waited_too_long(b, order->highest_rank))
		return is_a_late;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	uint64_t a_ns = standing_ns(a, order->lightest_permille), b_ns = standing_ns(b, order->lightest_permille);
	return a_ns != b_ns ? a_ns < b_ns : a->waited_ns > b->waited_ns;
}

/* Of equal contenders the first is chosen. Otherwise each of two equal contenders would leave a free card to the
 * other. */
static size_t best_of(const struct set *set)
{
	size_t best = set->count;
	struct order order = order_of(set);
	for (size_t i = 0; i < set->count; i++) {
		const struct ll_contender *contender = nth_contender(set, i);
		bool waits_for_gang = waits_for_any_gang(set, contender) && contender->waited_ns < LL_VISIT_PATIENCE_NS;
		if (may_go(contender) && !waits_for_gang &&
		    (best == set->count || goes_before(contender, nth_contender(set, best), &order)))
			best = i;
	}
	return best;
}

size_t ll_visits_next(const struct ll_contender *contenders, size_t count)
{
	return best_of(&(struct set){.others = contenders, .count = count});
}

static bool preempts_present(const struct ll_contender *self, const struct ll_visits_present *present)
{
	bool is_served = present->is_service && present->visited_ns < LL_VISIT_SERVICE_NS;
	return self->has_tokens && !is_served && (self->rank < present->visited->rank || !present->visited->has_tokens);
}

bool ll_visits_takes(const struct ll_visits_present *present, const struct ll_contender *self,
		     const struct ll_contender *others, size_t count)
{
	bool may_take = !present->visited || present->is_unresponsive || preempts_present(self, present);
	return may_take && best_of(&(struct set){.self = self, .others = others, .count = count + 1}) == 0;
}

bool ll_visits_has_higher(const struct ll_contender *contenders, size_t count, const struct ll_contender *contender)
{
	return order_of(&(struct set){.others = contenders, .count = count}).highest_rank < contender->rank;
}

bool ll_visits_is_service(const struct ll_contender *giver, const struct ll_contender *contenders, size_t count,
			  size_t next)
{
	return ll_visits_has_higher(contenders, count, &contenders[next]) ||
	       (giver && giver->has_tokens && giver->rank < contenders[next].rank);
}

/* ---- the end of a visit ---- */

static uint64_t earlier_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t later_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns how much longer the visit lasts until its contender has had as much GPU time, by weight, as the best
 * other. */
static uint64_t until_even_ns(const struct ll_contender *visited, const struct ll_contender *best)
{
	if (visited->virtual_ns >= best->virtual_ns)
		return 0;
	return (best->virtual_ns - visited->virtual_ns) * visited->weight_permille / PERMILLE;
}

/* Returns the length at which the visit ends with an empty queue. A lower class would otherwise be visited in each
 * pause of the contender's host. */
static uint64_t empty_end_ns(const struct ll_contender *visited, const struct ll_contender *best, uint64_t visited_ns,
			     uint64_t queue_empty_ns)
{
	bool is_short = visited->launches_ahead && best->rank == visited->rank;
	uint64_t grace_ns = is_short ? LL_VISIT_GRACE_AHEAD_NS : LL_VISIT_GRACE_WAITS_NS;
	if (visited->has_work)
		return UINT64_MAX;
	return visited_ns + (grace_ns > queue_empty_ns ? grace_ns - queue_empty_ns : 0);
}

uint64_t ll_visits_end_ns(const struct ll_contender *visited, const struct ll_contender *best, uint64_t visited_ns,
			  uint64_t queue_empty_ns)
{
	if (!best)
		return UINT64_MAX;
	if (best->rank < visited->rank)
		return visited_ns;
	uint64_t end_ns = empty_end_ns(visited, best, visited_ns, queue_empty_ns);
	if (best->rank > visited->rank)
		return end_ns;
	uint64_t quantum_ns = best->ended_empty ? LL_VISIT_SHORT_NS : LL_VISIT_QUANTUM_NS;
	return earlier_ns(end_ns, later_ns(quantum_ns, visited_ns + until_even_ns(visited, best)));
}

/* Work of the same tenant on another card may need the next launch here to complete. */
static bool has_work(const struct ll_visit *visit)
{
	return !visit->queue_is_empty || visit->has_busy_sibling || visit->has_work_elsewhere ||
	       visit->self->has_gang_turn;
}

/* Whether the best other contender is a gang that is visited on its first card. Its kernels there spin until they run
 * here too, so it does not wait for the end of the quantum. The virtual times include the head starts. */
static bool is_awaited_elsewhere(const struct ll_contender *visited, const struct ll_contender *best)
{
	return best->has_gang_turn && !visited->has_gang_turn && best->rank == visited->rank &&
	       visited->virtual_ns >=
		   best->virtual_ns + ll_visits_virtual_ns(LL_VISIT_QUANTUM_NS, visited->weight_permille);
}

static bool is_over(const struct ll_visit *visit, const struct ll_contender *best)
{
	const struct ll_contender *self = visit->self;
	if (!self->has_tokens || visit->yields_to_gang || has_waited_too_long(best, self->rank))
		return true;
	if (waits_for_gang_of(best, self))
		return false;
	if (waits_for_gang_of(self, best))
		return best->rank <= self->rank;
	unsigned lightest_permille = lighter_permille(self->weight_permille, best->weight_permille);
	struct ll_contender visited = *self, other = *best;
	visited.has_work = has_work(visit);
	visited.virtual_ns = standing_ns(self, lightest_permille);
	other.virtual_ns = standing_ns(best, lightest_permille);
	if (is_awaited_elsewhere(&visited, &other))
		return true;
	uint64_t queue_empty_ns = visited.has_work ? 0 : earlier_ns(visit->queue_empty_ns, visit->visited_ns);
	return ll_visits_end_ns(&visited, &other, visit->visited_ns, queue_empty_ns) <= visit->visited_ns;
}

/* Whether the visited contender is out of work: it would have launched by now. */
static bool is_out_of_work(const struct ll_visit *visit)
{
	return visit->queue_is_empty && !visit->has_work_elsewhere && visit->queue_empty_ns >= LL_VISIT_GRACE_WAITS_NS;
}

/* Whether the next visit may begin. Launches that wait on the card stay there. Only a long launch that has begun would
 * run in slices with the work of the next tenant. */
static bool is_drained(const struct ll_visit *visit)
{
	if (visit->self->waits_on_card)
		return !visit->is_overrunning;
	return visit->had_work_elsewhere ? !visit->queued_ns && !visit->has_work_elsewhere
					 : visit->queued_ns <= LL_VISIT_DRAINED_NS;
}

struct ll_visit_verdict ll_visits_decide(const struct ll_visit *visit, const struct ll_contender *others, size_t count)
{
	const struct ll_contender *self = visit->self;
	size_t best = ll_visits_next(others, count);
	bool is_served = visit->is_service && visit->visited_ns < LL_VISIT_SERVICE_NS && !is_out_of_work(visit);
	if (best == count || (is_served && !visit->yields_to_gang) || !is_over(visit, &others[best]))
		return (struct ll_visit_verdict){.act = LL_VISIT_KEEPS, .may_launch = self->has_tokens};
	if (!is_drained(visit) && visit->draining_ns < LL_VISIT_DRAIN_NS)
		return (struct ll_visit_verdict){.act = LL_VISIT_DRAINS, .tells_cards = !self->waits_on_card};
	return (struct ll_visit_verdict){
	    .act = LL_VISIT_GIVES,
	    .next = best,
	    .is_service = ll_visits_is_service(is_out_of_work(visit) ? NULL : self, others, count, best),
	    .ended_empty = visit->queue_is_empty && self->launches_ahead,
	    .loses_credit = visit->queue_is_empty,
	    .is_paused = is_out_of_work(visit) && self->rank < others[best].rank,
	};
}
