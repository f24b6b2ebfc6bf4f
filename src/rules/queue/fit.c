/* Whether a job may start on a card at a moment, which of several cards it takes, and whether it could ever start. */
#include "rules/queue/profile.h"

enum { WHOLE_PERMILLE = 1000 };

struct ll_queue_amount ll_queue_need(const struct ll_queue_machine *machine, const struct ll_queue_job *job,
				     uint32_t group)
{
	if (machine->groups[group].is_whole)
		return (struct ll_queue_amount){.cards = 1};
	return (struct ll_queue_amount){.memory_bytes = job->memory_bytes, .compute_permille = job->compute_permille};
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* One of cards, memory and compute of a group in a row. */
struct dimension {
	size_t field; /* LL_QUEUE_AT_... */
	uint64_t need;
};

static uint64_t value_of(const struct ll_queue_amount *amount, size_t field)
{
	return field == LL_QUEUE_AT_CARDS    ? amount->cards
	       : field == LL_QUEUE_AT_MEMORY ? amount->memory_bytes
					     : amount->compute_permille;
}

static uint64_t size_of_card(const struct ll_queue_card *card, size_t field)
{
	return field == LL_QUEUE_AT_CARDS ? 1 : field == LL_QUEUE_AT_MEMORY ? card->memory_bytes : WHOLE_PERMILLE;
}

/* The cards of the group that are in use. reserved: those of them that are reserved for somebody. */
static uint64_t size_of_group(const struct ll_queue_machine *machine, const uint64_t *row, uint32_t group, size_t field,
			      uint64_t *ret_reserved)
{
	uint64_t sum = 0;
	*ret_reserved = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint64_t kept = row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_KEPT];
		if (machine->cards[card].group != group || kept == LL_QUEUE_OUT_OF_USE)
			continue;
		sum += size_of_card(&machine->cards[card], field);
		*ret_reserved |= (uint64_t)(kept != LL_QUEUE_KEPT_FOR_ALL) << card;
	}
	return sum;
}

static uint64_t size_for_tenant(const struct ll_queue_machine *machine, const uint64_t *row, uint64_t reserved,
				size_t field, uint32_t tenant)
{
	uint64_t sum = 0;
	for (; reserved; reserved &= reserved - 1) {
		uint32_t card = (uint32_t)__builtin_ctzll(reserved);
		uint64_t kept = row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_KEPT];
		sum += kept == LL_QUEUE_KEPT_FOR + (uint64_t)tenant ? size_of_card(&machine->cards[card], field) : 0;
	}
	return sum;
}

/* What the tenants have or are guaranteed of a group: before the job, and with it. */
struct covered {
	uint64_t before, after, floors, size; /* size: of the group's cards that are in use */
	uint32_t tenant; /* another one's, whose guarantee has the most that it does not use; LL_QUEUE_NOBODY: none */
	uint64_t unused; /* of that */
};

static struct covered cover_of(const struct ll_queue_machine *machine, const uint64_t *row,
			       const struct ll_queue_job *job, uint32_t group, const struct dimension *dimension)
{
	struct covered covered = {.tenant = LL_QUEUE_NOBODY};
	uint64_t reserved;
	covered.size = size_of_group(machine, row, group, dimension->field, &reserved);
	for (uint32_t tenant = 0; tenant < machine->tenant_count; tenant++) {
		uint64_t used = row[ll_queue_at_tenant(machine, tenant, group) + dimension->field];
		uint64_t floor = value_of(&machine->tenants[tenant].guarantees[group], dimension->field);
		floor = larger_of(floor, size_for_tenant(machine, row, reserved, dimension->field, tenant));
		covered.floors += floor;
		covered.before += larger_of(floor, used);
		covered.after += larger_of(floor, used + (tenant == job->tenant ? dimension->need : 0));
		if (tenant != job->tenant && floor > used && floor - used > covered.unused) {
			covered.tenant = tenant;
			covered.unused = floor - used;
		}
	}
	return covered;
}

/* A job within its tenant's guarantee takes nothing from others: the sum stays the same. If cards are out of use, the
 * guarantees may not fit; jobs within them start all the same. */
static bool leaves_guarantees(const struct ll_queue_machine *machine, const uint64_t *row,
			      const struct ll_queue_job *job, uint32_t group, const struct dimension *dimension,
			      struct ll_queue_why *why)
{
	struct covered covered = cover_of(machine, row, job, group, dimension);
	if (covered.after == covered.before || covered.after <= larger_of(covered.size, covered.floors))
		return true;
	if (why) {
		why->tenant = covered.tenant;
		why->used = covered.unused;
		why->left = larger_of(covered.size, covered.before) - covered.before;
	}
	return false;
}

static bool is_within(uint64_t used, uint64_t need, uint64_t limit)
{
	return !need || limit == LL_QUEUE_NONE || (used <= limit && need <= limit - used);
}

/* The same, with the figures. */
static bool keeps_limit(uint64_t used, uint64_t need, uint64_t limit, struct ll_queue_why *why)
{
	bool is_kept = is_within(used, need, limit);
	if (why && !is_kept) {
		why->used = used;
		why->most = limit;
	}
	return is_kept;
}

static enum ll_queue_rule refuse_amount(const struct ll_queue_machine *machine, const uint64_t *row,
					const struct ll_queue_job *job, uint32_t group,
					const struct dimension *dimension, struct ll_queue_why *why)
{
	const struct ll_queue_tenant *tenant = &machine->tenants[job->tenant];
	uint64_t of_tenant = row[ll_queue_at_tenant(machine, job->tenant, group) + dimension->field];
	uint64_t of_user = row[ll_queue_at_user(machine, job->user) + dimension->field];
	if (!keeps_limit(of_user, dimension->need, value_of(&tenant->each_user.most, dimension->field), why))
		return LL_QUEUE_RULE_USER_LIMIT;
	if (!keeps_limit(of_tenant, dimension->need, value_of(&tenant->limits[group], dimension->field), why))
		return LL_QUEUE_RULE_TENANT_LIMIT;
	if (dimension->need && !job->is_lent && !leaves_guarantees(machine, row, job, group, dimension, why))
		return LL_QUEUE_RULE_GUARANTEE;
	return LL_QUEUE_RULE_NONE;
}

_Static_assert((int)LL_QUEUE_OF_CARDS == LL_QUEUE_AT_CARDS && (int)LL_QUEUE_OF_MEMORY == LL_QUEUE_AT_MEMORY &&
		   (int)LL_QUEUE_OF_COMPUTE == LL_QUEUE_AT_COMPUTE && (int)LL_QUEUE_OF_JOBS == LL_QUEUE_AT_RUNNING,
	       "an amount is a field of a row");

enum ll_queue_rule ll_queue_refusal(const struct ll_queue_machine *machine, const uint64_t *row,
				    const struct ll_queue_job *job, uint32_t group, struct ll_queue_why *why)
{
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	struct dimension dimension = {LL_QUEUE_AT_RUNNING, 1};
	enum ll_queue_rule rule = LL_QUEUE_RULE_NONE;
	if (!keeps_limit(row[ll_queue_at_user(machine, job->user) + LL_QUEUE_AT_RUNNING], 1,
			 machine->tenants[job->tenant].each_user.running, why))
		rule = LL_QUEUE_RULE_USER_LIMIT;
	for (size_t field = LL_QUEUE_AT_CARDS; field <= LL_QUEUE_AT_COMPUTE && !rule; field++) {
		dimension = (struct dimension){field, value_of(&need, field) * job->card_count};
		rule = refuse_amount(machine, row, job, group, &dimension, why);
	}
	if (why && rule) {
		why->rule = rule;
		why->what = (enum ll_queue_what)dimension.field;
		why->wanted = dimension.need;
		why->group = group;
	}
	return rule;
}

bool ll_queue_is_guaranteed(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			    uint32_t group)
{
	const struct ll_queue_amount *guarantee = &machine->tenants[job->tenant].guarantees[group];
	const uint64_t *of_tenant = row + ll_queue_at_tenant(machine, job->tenant, group);
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	for (size_t field = LL_QUEUE_AT_CARDS; field <= LL_QUEUE_AT_COMPUTE; field++) {
		if (!is_within(of_tenant[field], value_of(&need, field) * job->card_count, value_of(guarantee, field)))
			return false;
	}
	return true;
}

bool ll_queue_card_has_room(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			    uint32_t card)
{
	const uint64_t *of_card = row + ll_queue_at_card(card);
	uint64_t kept = of_card[LL_QUEUE_AT_CARD_KEPT];
	uint64_t memory_bytes = machine->cards[card].memory_bytes;
	if (kept != LL_QUEUE_KEPT_FOR_ALL && kept != LL_QUEUE_KEPT_FOR + (uint64_t)job->tenant)
		return false;
	if (machine->groups[machine->cards[card].group].is_whole)
		return !of_card[LL_QUEUE_AT_CARD_MEMORY] && job->memory_bytes <= memory_bytes;
	return is_within(of_card[LL_QUEUE_AT_CARD_MEMORY], job->memory_bytes, memory_bytes) &&
	       is_within(of_card[LL_QUEUE_AT_CARD_COMPUTE], job->compute_permille, WHOLE_PERMILLE);
}

/* ---- which cards ---- */

/* Of the nodes with enough cards, the one with the fewest; else the one with the most. Returns its candidates. */
static uint64_t choose_node(const struct ll_queue_machine *machine, uint64_t candidates, uint32_t wanted)
{
	uint32_t best_count = 0;
	int best = -1;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (!(candidates >> card & 1))
			continue;
		int node = machine->cards[card].numa_node;
		uint32_t count = 0;
		for (uint32_t other = 0; other < machine->card_count; other++)
			count += candidates >> other & 1 && machine->cards[other].numa_node == node;
		bool is_enough = count >= wanted;
		if (!best_count || (is_enough ? best_count < wanted || count < best_count : count > best_count)) {
			best = node;
			best_count = count;
		}
	}
	uint64_t chosen = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (candidates >> card & 1 && machine->cards[card].numa_node == best)
			chosen |= UINT64_C(1) << card;
	}
	return chosen;
}

uint64_t ll_queue_choose(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint64_t candidates,
			 const uint64_t left_bytes[LL_QUEUE_CARDS_MAX])
{
	uint64_t chosen = 0;
	uint32_t missing = job->card_count, first = candidates ? (uint32_t)__builtin_ctzll(candidates) : 0;
	while (missing && candidates) {
		/* One job alone on a shared card: what it leaves there counts, and not where the card is. */
		bool is_any_node = !machine->groups[machine->cards[first].group].is_whole && missing == 1;
		uint64_t near = is_any_node ? candidates : choose_node(machine, candidates, missing);
		candidates &= ~near;
		for (; missing && near; missing--) {
			uint32_t best = (uint32_t)__builtin_ctzll(near); /* the one with the least memory left */
			for (uint32_t card = best; card < machine->card_count; card++) {
				if (near >> card & 1 && left_bytes[card] < left_bytes[best])
					best = card;
			}
			chosen |= UINT64_C(1) << best;
			near &= ~(UINT64_C(1) << best);
		}
	}
	return missing ? 0 : chosen;
}

/* ---- whether a job could ever start ---- */

static enum ll_queue_fault check_group(const struct ll_queue_machine *machine, const struct ll_queue_job *job,
				       uint32_t group)
{
	const struct ll_queue_tenant *tenant = &machine->tenants[job->tenant];
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
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
	bool is_within_limit = true, is_within_user = is_within(0, 1, tenant->each_user.running);
	bool is_guaranteed = true, is_open = true; /* is_open: no guarantee but the tenant's own covers it */
	for (size_t field = LL_QUEUE_AT_CARDS; field <= LL_QUEUE_AT_COMPUTE; field++) {
		uint64_t wanted = value_of(&need, field) * job->card_count, size = 0, others = 0;
		for (uint32_t card = 0; card < machine->card_count; card++)
			size += machine->cards[card].group == group ? size_of_card(&machine->cards[card], field) : 0;
		for (uint32_t other = 0; other < machine->tenant_count; other++)
			others +=
			    other == job->tenant ? 0 : value_of(&machine->tenants[other].guarantees[group], field);
		is_within_limit &= is_within(0, wanted, value_of(&tenant->limits[group], field));
		is_within_user &= is_within(0, wanted, value_of(&tenant->each_user.most, field));
		is_guaranteed &= is_within(0, wanted, value_of(&tenant->guarantees[group], field));
		is_open &= is_within(0, wanted, larger_of(size, others) - others);
	}
	return !is_within_limit           ? LL_QUEUE_BEYOND_LIMIT
	       : !is_within_user          ? LL_QUEUE_BEYOND_USER
	       : is_guaranteed || is_open ? LL_QUEUE_FITS
					  : LL_QUEUE_ALL_GUARANTEED;
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
