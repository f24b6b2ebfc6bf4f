#include "control/visits.h"

#include "control/turns.h"

static uint64_t earlier_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t later_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How much longer the visit lasts until its contender has had as much as the best of the others. */
static uint64_t until_even_ns(const struct ll_visit_contender *visited, const struct ll_visit_contender *best)
{
	if (visited->virtual_ns >= best->virtual_ns)
		return 0;
	return (best->virtual_ns - visited->virtual_ns) * visited->weight_permille / 1000;
}

/* The length at which the visit ends for want of work. A lower class would be visited in each pause of its host. */
static uint64_t dry_end_ns(const struct ll_visit_contender *visited, const struct ll_visit_contender *best,
			   uint64_t visited_ns, uint64_t dry_ns)
{
	bool is_short = visited->launches_ahead && best->rank == visited->rank;
	uint64_t grace_ns = is_short ? LL_VISIT_GRACE_AHEAD_NS : LL_VISIT_GRACE_WAITS_NS;
	if (visited->has_work)
		return UINT64_MAX;
	return visited_ns + (grace_ns > dry_ns ? grace_ns - dry_ns : 0);
}

uint64_t ll_visits_end_ns(const struct ll_visit_contender *visited, const struct ll_visit_contender *best,
			  uint64_t visited_ns, uint64_t dry_ns)
{
	if (!best)
		return UINT64_MAX;
	if (best->rank < visited->rank)
		return visited_ns;
	uint64_t end_ns = dry_end_ns(visited, best, visited_ns, dry_ns);
	if (best->rank > visited->rank)
		return end_ns;
	uint64_t quantum_ns = best->runs_dry ? LL_VISIT_SHORT_NS : LL_VISIT_QUANTUM_NS;
	return earlier_ns(end_ns, later_ns(quantum_ns, visited_ns + until_even_ns(visited, best)));
}
