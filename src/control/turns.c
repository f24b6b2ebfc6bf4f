#include "control/turns.h"

enum { PERMILLE = 1000 };

bool ll_turns_is_impatient(const struct ll_turn_party *party)
{
	return party->waited_ns >= LL_TURN_PATIENCE_NS;
}

/* Virtual time that a call is worth is added to whoever is not called, so that nothing is below zero. */
static uint64_t standing_ns(const struct ll_turn_party *party)
{
	return party->virtual_ns + (party->is_called ? 0 : LL_TURN_CALL_NS);
}

static bool goes_before(const struct ll_turn_party *a, const struct ll_turn_party *b)
{
	if (a->has_tokens != b->has_tokens)
		return a->has_tokens;
	if (ll_turns_is_impatient(a) != ll_turns_is_impatient(b))
		return ll_turns_is_impatient(a);
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (standing_ns(a) != standing_ns(b))
		return standing_ns(a) < standing_ns(b);
	return a->waited_ns > b->waited_ns;
}

size_t ll_turns_best(const struct ll_turn_party *parties, size_t count)
{
	size_t best = count;
	for (size_t i = 0; i < count; i++) {
		if (parties[i].has_tokens && (best == count || goes_before(&parties[i], &parties[best])))
			best = i;
	}
	return best;
}

bool ll_turns_preempts(const struct ll_turn_party *comer, const struct ll_turn_party *holder, uint64_t held_ns,
		       bool is_promoted)
{
	if (!comer->has_tokens)
		return false;
	if (is_promoted && held_ns < LL_TURN_SERVICE_NS)
		return false;
	return comer->rank < holder->rank || !holder->has_tokens;
}

bool ll_turns_gives_way(const struct ll_turn_party *holder, const struct ll_turn_party *best, uint64_t held_ns,
			bool is_promoted)
{
	if (!best->has_tokens)
		return false;
	if (ll_turns_preempts(best, holder, held_ns, is_promoted))
		return true;
	if (ll_turns_is_impatient(best))
		return true;
	return best->rank == holder->rank && standing_ns(holder) >= standing_ns(best) + LL_TURN_QUANTUM_NS;
}

uint64_t ll_turns_virtual_ns(uint64_t gpu_ns, unsigned weight_permille)
{
	return gpu_ns * PERMILLE / (weight_permille ? weight_permille : 1);
}

uint64_t ll_turns_come_back_ns(uint64_t virtual_ns, uint64_t least_ns)
{
	uint64_t floor_ns = least_ns > LL_TURN_LAG_NS ? least_ns - LL_TURN_LAG_NS : 0;
	return virtual_ns > floor_ns ? virtual_ns : floor_ns;
}
