#include "control/turns.h"

#include <limits.h>

enum { PERMILLE = 1000 };

bool ll_turns_is_impatient(const struct ll_turn_contender *contender, const struct ll_turn_contender *other)
{
	return contender->waited_ns >= (other->rank < contender->rank ? LL_TURN_STARVED_NS : LL_TURN_PATIENCE_NS);
}

static unsigned lighter_permille(unsigned a_permille, unsigned b_permille)
{
	return a_permille < b_permille ? a_permille : b_permille;
}

/* The head start of a gang is added to whoever has no gang turn, so that no virtual time is below zero. */
static uint64_t standing_ns(const struct ll_turn_contender *contender, unsigned lightest_permille)
{
	return contender->virtual_ns +
	       (contender->has_gang_turn ? 0 : ll_turns_virtual_ns(LL_TURN_GANG_NS, lightest_permille));
}

/* If two tenants have the same first card, the turn there decides which of them goes first here. */
static bool yields_to_gang_of(const struct ll_turn_contender *contender, const struct ll_turn_contender *other)
{
	return contender->first_card && contender->first_card == other->first_card && other->has_gang_turn &&
	       !contender->has_gang_turn;
}

/* Contenders that are compared with each other: the others, and before them self, if it is one of them. */
struct set {
	const struct ll_turn_contender *self, *others;
	size_t count;
};

static const struct ll_turn_contender *nth_contender(const struct set *set, size_t i)
{
	if (!set->self)
		return &set->others[i];
	return i == 0 ? set->self : &set->others[i - 1];
}

static bool yields_to_any_gang(const struct set *set, const struct ll_turn_contender *contender)
{
	for (size_t i = 0; contender->first_card && i < set->count; i++) {
		const struct ll_turn_contender *other = nth_contender(set, i);
		if (yields_to_gang_of(contender, other) && other->has_tokens && other->rank <= contender->rank)
			return true;
	}
	return false;
}

static bool may_go(const struct ll_turn_contender *contender)
{
	return contender->has_tokens && !contender->is_paused;
}

struct order {
	unsigned lightest_permille;
	unsigned highest_rank; /* of those that may go: the smallest */
};

static struct order order_of(const struct set *set)
{
	struct order order = {.lightest_permille = UINT_MAX, .highest_rank = UINT_MAX};
	for (size_t i = 0; i < set->count; i++) {
		const struct ll_turn_contender *contender = nth_contender(set, i);
		order.lightest_permille = lighter_permille(order.lightest_permille, contender->weight_permille);
		if (may_go(contender) && contender->rank < order.highest_rank)
			order.highest_rank = contender->rank;
	}
	return order;
}

/* Whether it has waited for too long. That depends on all contenders and not on the one it is compared with: else the
 * order would not be one, and a contender that has not waited could go before a higher class. */
static bool is_overdue(const struct ll_turn_contender *contender, const struct order *order)
{
	return contender->waited_ns >=
	       (order->highest_rank < contender->rank ? LL_TURN_STARVED_NS : LL_TURN_PATIENCE_NS);
}

static bool goes_before(const struct ll_turn_contender *a, const struct ll_turn_contender *b, const struct order *order)
{
	if (is_overdue(a, order) != is_overdue(b, order))
		return is_overdue(a, order);
	if (a->rank != b->rank)
		return a->rank < b->rank;
	uint64_t a_ns = standing_ns(a, order->lightest_permille), b_ns = standing_ns(b, order->lightest_permille);
	return a_ns != b_ns ? a_ns < b_ns : a->waited_ns > b->waited_ns;
}

/* The first of equals: else each of two that are equal would leave a free turn to the other. */
static size_t best_of(const struct set *set)
{
	size_t best = set->count;
	struct order order = order_of(set);
	for (size_t i = 0; i < set->count; i++) {
		const struct ll_turn_contender *contender = nth_contender(set, i);
		bool yields = yields_to_any_gang(set, contender) && contender->waited_ns < LL_TURN_PATIENCE_NS;
		if (may_go(contender) && !yields &&
		    (best == set->count || goes_before(contender, nth_contender(set, best), &order)))
			best = i;
	}
	return best;
}

size_t ll_turns_best(const struct ll_turn_contender *contenders, size_t count)
{
	return best_of(&(struct set){.others = contenders, .count = count});
}

bool ll_turns_preempts(const struct ll_turn_contender *contender, const struct ll_turn_contender *holder,
		       uint64_t held_ns, bool is_promoted)
{
	if (!contender->has_tokens)
		return false;
	if (is_promoted && held_ns < LL_TURN_SERVICE_NS)
		return false;
	return contender->rank < holder->rank || !holder->has_tokens;
}

bool ll_turns_gives_way(const struct ll_turn_contender *holder, const struct ll_turn_contender *best, uint64_t held_ns,
			bool is_promoted)
{
	if (!best->has_tokens)
		return false;
	if (ll_turns_preempts(best, holder, held_ns, is_promoted))
		return true;
	if (ll_turns_is_impatient(best, holder))
		return true;
	if (yields_to_gang_of(best, holder))
		return false;
	if (yields_to_gang_of(holder, best))
		return best->rank <= holder->rank;
	unsigned lightest_permille = lighter_permille(holder->weight_permille, best->weight_permille);
	uint64_t ahead_ns = ll_turns_virtual_ns(LL_TURN_QUANTUM_NS, holder->weight_permille);
	return best->rank == holder->rank &&
	       standing_ns(holder, lightest_permille) >= standing_ns(best, lightest_permille) + ahead_ns;
}

uint64_t ll_turns_virtual_ns(uint64_t gpu_ns, unsigned weight_permille)
{
	return gpu_ns * PERMILLE / (weight_permille ? weight_permille : 1);
}

uint64_t ll_turns_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille)
{
	uint64_t lag_ns = ll_turns_virtual_ns(LL_TURN_LAG_NS, weight_permille);
	uint64_t floor_ns = least_ns > lag_ns ? least_ns - lag_ns : 0;
	return virtual_ns > floor_ns ? virtual_ns : floor_ns;
}

bool ll_turns_may_slice(const struct ll_turn_contender *one, const struct ll_turn_contender *other)
{
	bool are_equal = one->rank == other->rank && one->weight_permille == other->weight_permille;
	bool are_by_space = one->is_by_space && other->is_by_space;
	bool launch_ahead = one->launches_ahead && other->launches_ahead;
	return are_equal && !one->has_cap && !other->has_cap && (are_by_space || launch_ahead);
}

bool ll_turns_join_slices(struct ll_turn_contender *all, const struct ll_turn_contender *contender)
{
	if (!ll_turns_may_slice(all, contender))
		return false;
	all->launches_ahead &= contender->launches_ahead;
	all->is_by_space &= contender->is_by_space;
	return true;
}

bool ll_turns_are_as_many(const uint8_t *processes, size_t count)
{
	unsigned number = 0;
	for (size_t i = 0; i < count; i++) {
		if (processes[i] && number && processes[i] != number)
			return false;
		if (processes[i])
			number = processes[i];
	}
	return true;
}

bool ll_turns_waits_for_each(const struct ll_turns_pace *pace)
{
	if (pace->launches >= pace->waits * LL_TURN_FEW_LAUNCHES)
		return false;
	return pace->launches * pace->launch_ns < pace->waits * LL_TURN_LITTLE_WORK_NS ||
	       pace->shortest_round_ns < LL_TURN_LITTLE_WORK_NS;
}

bool ll_turns_has_higher(const struct ll_turn_contender *contenders, size_t count,
			 const struct ll_turn_contender *contender)
{
	return order_of(&(struct set){.others = contenders, .count = count}).highest_rank < contender->rank;
}

bool ll_turns_is_service(const struct ll_turn_contender *giver, const struct ll_turn_contender *contenders,
			 size_t count, size_t next)
{
	return ll_turns_has_higher(contenders, count, &contenders[next]) ||
	       (giver && giver->has_tokens && giver->rank < contenders[next].rank);
}

bool ll_turns_takes(const struct ll_turns_taking *taking, const struct ll_turn_contender *self,
		    const struct ll_turn_contender *others, size_t count)
{
	bool may_take = !taking->holder || taking->is_deaf ||
			ll_turns_preempts(self, taking->holder, taking->held_ns, taking->is_promoted);
	/* Else the turn is a better one's to take, or the holder's to give to it. */
	return may_take && best_of(&(struct set){.self = self, .others = others, .count = count + 1}) == 0;
}
