/* Whether a job may start on a card at a moment, and which of several cards it takes. */
#include "control/queue/profile.h"

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

/* A job within its tenant's guarantee takes nothing from others: the sum stays the same. If cards are out of use, the
 * guarantees may not fit; jobs within them start all the same. */
static bool leaves_guarantees(const struct ll_queue_machine *machine, const uint64_t *row,
			      const struct ll_queue_job *job, uint32_t group, const struct dimension *dimension)
{
	uint64_t before = 0, after = 0, floors = 0, reserved;
	uint64_t size = size_of_group(machine, row, group, dimension->field, &reserved);
	for (uint32_t tenant = 0; tenant < machine->tenant_count; tenant++) {
		uint64_t used = row[ll_queue_at_tenant(machine, tenant, group) + dimension->field];
		uint64_t floor = value_of(&machine->tenants[tenant].guarantees[group], dimension->field);
		floor = larger_of(floor, size_for_tenant(machine, row, reserved, dimension->field, tenant));
		floors += floor;
		before += larger_of(floor, used);
		after += larger_of(floor, used + (tenant == job->tenant ? dimension->need : 0));
	}
	return after == before || after <= larger_of(size, floors);
}

static bool is_within(uint64_t used, uint64_t need, uint64_t limit)
{
	return !need || limit == LL_QUEUE_NONE || (used <= limit && need <= limit - used);
}

bool ll_queue_is_permitted(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			   uint32_t group)
{
	const struct ll_queue_tenant *tenant = &machine->tenants[job->tenant];
	const uint64_t *of_tenant = row + ll_queue_at_tenant(machine, job->tenant, group);
	const uint64_t *of_user = row + ll_queue_at_user(machine, job->user);
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	if (!is_within(of_user[LL_QUEUE_AT_RUNNING], 1, tenant->each_user.running))
		return false;
	for (size_t field = LL_QUEUE_AT_CARDS; field <= LL_QUEUE_AT_COMPUTE; field++) {
		struct dimension dimension = {field, value_of(&need, field) * job->card_count};
		if (!is_within(of_user[field], dimension.need, value_of(&tenant->each_user.most, field)) ||
		    !is_within(of_tenant[field], dimension.need, value_of(&tenant->limits[group], field)) ||
		    (dimension.need && !leaves_guarantees(machine, row, job, group, &dimension)))
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

static uint32_t count_of_node(const struct ll_queue_machine *machine, uint64_t candidates, int node)
{
	uint32_t count = 0;
	for (uint32_t card = 0; card < machine->card_count; card++)
		count += candidates >> card & 1 && machine->cards[card].numa_node == node;
	return count;
}

/* Of the nodes with enough cards, the one with the fewest; else the one with the most. Returns its candidates. */
static uint64_t choose_node(const struct ll_queue_machine *machine, uint64_t candidates, uint32_t wanted)
{
	uint32_t best_count = 0;
	int best = -1;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (!(candidates >> card & 1))
			continue;
		int node = machine->cards[card].numa_node;
		uint32_t count = count_of_node(machine, candidates, node);
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

static uint64_t tightest_card(const struct ll_queue_machine *machine, uint64_t candidates,
			      const uint64_t left_bytes[LL_QUEUE_CARDS_MAX])
{
	uint32_t best = LL_QUEUE_CARDS_MAX;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (candidates >> card & 1 && (best == LL_QUEUE_CARDS_MAX || left_bytes[card] < left_bytes[best]))
			best = card;
	}
	return best == LL_QUEUE_CARDS_MAX ? 0 : UINT64_C(1) << best;
}

/* One job alone on a shared card: what it leaves there counts, and not where the card is. */
static bool is_shared_group(const struct ll_queue_machine *machine, uint64_t candidates)
{
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (candidates >> card & 1)
			return !machine->groups[machine->cards[card].group].is_whole;
	}
	return false;
}

uint64_t ll_queue_choose(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint64_t candidates,
			 const uint64_t left_bytes[LL_QUEUE_CARDS_MAX])
{
	uint64_t chosen = 0;
	uint32_t missing = job->card_count;
	bool is_shared = is_shared_group(machine, candidates);
	while (missing && candidates) {
		bool is_any_node = is_shared && missing == 1;
		uint64_t near = is_any_node ? candidates : choose_node(machine, candidates, missing);
		candidates &= ~near;
		for (; missing && near; missing--) {
			uint64_t card = tightest_card(machine, near, left_bytes);
			chosen |= card;
			near &= ~card;
		}
	}
	return missing ? 0 : chosen;
}
