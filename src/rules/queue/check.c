/* Whether a job could ever start. */
#include "rules/queue/profile.h"

static bool is_within(uint64_t need, uint64_t limit)
{
	return limit == LL_QUEUE_NONE || need <= limit;
}

static bool is_amount_within(const struct ll_queue_amount *need, const struct ll_queue_amount *limit)
{
	return is_within(need->cards, limit->cards) && is_within(need->memory_bytes, limit->memory_bytes) &&
	       is_within(need->compute_permille, limit->compute_permille);
}

static uint64_t difference_of(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

enum { WHOLE_PERMILLE = 1000 };

/* What no guarantee but the tenant's own covers. */
static struct ll_queue_amount open_to_tenant(const struct ll_queue_machine *machine, uint32_t group, uint32_t own)
{
	struct ll_queue_amount size = {0}, others = {0};
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (machine->cards[card].group != group)
			continue;
		size.cards++;
		size.memory_bytes += machine->cards[card].memory_bytes;
		size.compute_permille += WHOLE_PERMILLE;
	}
	for (uint32_t tenant = 0; tenant < machine->tenant_count; tenant++) {
		const struct ll_queue_amount *guarantee = &machine->tenants[tenant].guarantees[group];
		others.cards += tenant == own ? 0 : guarantee->cards;
		others.memory_bytes += tenant == own ? 0 : guarantee->memory_bytes;
		others.compute_permille += tenant == own ? 0 : guarantee->compute_permille;
	}
	return (struct ll_queue_amount){difference_of(size.cards, others.cards),
					difference_of(size.memory_bytes, others.memory_bytes),
					difference_of(size.compute_permille, others.compute_permille)};
}

static enum ll_queue_fault check_group(const struct ll_queue_machine *machine, const struct ll_queue_job *job,
				       uint32_t group)
{
	const struct ll_queue_tenant *tenant = &machine->tenants[job->tenant];
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	struct ll_queue_amount open = open_to_tenant(machine, group, job->tenant);
	uint32_t cards = 0, large = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		bool is_allowed = machine->cards[card].group == group && job->allowed >> card & 1;
		cards += is_allowed;
		large += is_allowed && need.compute_permille <= WHOLE_PERMILLE &&
			 job->memory_bytes <= machine->cards[card].memory_bytes;
	}
	if (!job->card_count || cards < job->card_count)
		return LL_QUEUE_NO_CARDS;
	if (large < job->card_count)
		return LL_QUEUE_TOO_LARGE;
	need.cards *= job->card_count;
	need.memory_bytes *= job->card_count;
	need.compute_permille *= job->card_count;
	if (!is_amount_within(&need, &tenant->limits[group]))
		return LL_QUEUE_BEYOND_LIMIT;
	if (!is_amount_within(&need, &tenant->each_user.most) || !is_within(1, tenant->each_user.running))
		return LL_QUEUE_BEYOND_USER;
	if (!is_amount_within(&need, &tenant->guarantees[group]) && !is_amount_within(&need, &open))
		return LL_QUEUE_ALL_GUARANTEED;
	return LL_QUEUE_FITS;
}

enum ll_queue_fault ll_queue_check(const struct ll_queue_machine *machine, const struct ll_queue_job *job)
{
	enum ll_queue_fault best = LL_QUEUE_NO_CARDS;
	for (uint32_t group = 0; group < machine->group_count; group++) {
		enum ll_queue_fault fault = check_group(machine, job, group);
		if (fault == LL_QUEUE_FITS)
			return fault;
		best = fault > best ? fault : best;
	}
	return best;
}
