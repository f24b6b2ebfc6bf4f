/* Why a waiting job does not start now: the first step of the plan, from now on, that has no room for it. */
#include "rules/queue/profile.h"

enum { WHOLE_PERMILLE = 1000 };

/* The cards of one group that the job may have, by what a step says of them. */
struct cards_seen {
	uint64_t free, busy, reserved, out; /* a bit for each */
};

static uint32_t count_bits(uint64_t cards)
{
	return (uint32_t)__builtin_popcountll(cards);
}

/* Those that it may have beyond its tenant's guarantee too. */
static uint64_t allowed_of(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint32_t group)
{
	uint64_t cards = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (machine->cards[card].group == group && (job->allowed & ~job->within) >> card & 1)
			cards |= UINT64_C(1) << card;
	}
	return cards;
}

static struct cards_seen look_at_cards(const struct ll_queue_machine *machine, const uint64_t *row,
				       const struct ll_queue_job *job, uint64_t cards)
{
	struct cards_seen seen = {0};
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint64_t bit = UINT64_C(1) << card;
		uint64_t kept = row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_KEPT];
		if (!(cards & bit))
			continue;
		if (kept == LL_QUEUE_OUT_OF_USE)
			seen.out |= bit;
		else if (kept != LL_QUEUE_KEPT_FOR_ALL && kept != LL_QUEUE_KEPT_FOR + (uint64_t)job->tenant)
			seen.reserved |= bit;
		else if (ll_queue_card_has_room(machine, row, job, card))
			seen.free |= bit;
		else
			seen.busy |= bit;
	}
	return seen;
}

static uint64_t left_of(uint64_t size, uint64_t used)
{
	return size > used ? size - used : 0;
}

/* The free memory or compute of the card with the most, and which of them lacks; of whole cards how many are free. */
static void explain_room(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			 const struct cards_seen *seen, struct ll_queue_why *why)
{
	uint64_t memory = 0, compute = 0;
	why->rule = LL_QUEUE_RULE_ROOM;
	why->what = LL_QUEUE_OF_CARDS;
	why->wanted = job->card_count;
	why->left = count_bits(seen->free);
	if (machine->groups[why->group].is_whole)
		return;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		const uint64_t *of_card = row + ll_queue_at_card(card);
		if (!(seen->busy >> card & 1))
			continue;
		uint64_t memory_left = left_of(machine->cards[card].memory_bytes, of_card[LL_QUEUE_AT_CARD_MEMORY]);
		uint64_t compute_left = left_of(WHOLE_PERMILLE, of_card[LL_QUEUE_AT_CARD_COMPUTE]);
		memory = memory_left > memory ? memory_left : memory;
		compute = compute_left > compute ? compute_left : compute;
	}
	why->what = memory < job->memory_bytes ? LL_QUEUE_OF_MEMORY : LL_QUEUE_OF_COMPUTE;
	why->wanted = why->what == LL_QUEUE_OF_MEMORY ? job->memory_bytes : job->compute_permille;
	why->left = why->what == LL_QUEUE_OF_MEMORY ? memory : compute;
	if (job->card_count == 1 && why->left < why->wanted)
		return;
	why->what = LL_QUEUE_OF_CARDS; /* several cards, or memory on one and compute on another */
	why->wanted = job->card_count;
	why->left = count_bits(seen->free);
}

/* The window on one of the cards that begins before the step ends and ends after it begins. */
static void explain_window(const struct ll_queue_profile *profile, size_t at, uint64_t cards, enum ll_queue_rule rule,
			   struct ll_queue_why *why)
{
	const struct ll_queue_machine *machine = profile->machine;
	why->rule = rule;
	why->what = LL_QUEUE_OF_CARDS;
	for (size_t i = 0; i < machine->interval_count; i++) {
		const struct ll_queue_interval *interval = &machine->intervals[i];
		bool is_out = interval->tenant == LL_QUEUE_NOBODY;
		if (!(cards >> interval->card & 1) || is_out != (rule == LL_QUEUE_RULE_OUT_OF_USE) ||
		    interval->end_ns <= profile->steps[at].begin_ns ||
		    interval->begin_ns >= ll_queue_step_end_ns(profile, at))
			continue;
		why->tenant = interval->tenant;
		why->card = interval->card;
		why->begin_ns = interval->begin_ns;
		why->end_ns = interval->end_ns;
		return;
	}
}

/* Of the jobs that the plan starts later than now, the first one of the order that has its place in the group, or is of
 * the same user, in the step. Returns false if there is none. */
static bool explain_order(const struct ll_queue *queue, const struct ll_queue_job *job, size_t at,
			  struct ll_queue_why *why)
{
	const struct ll_queue_step *steps = queue->profile->steps;
	uint64_t at_ns = steps[at].begin_ns;
	for (size_t i = queue->running_count; i < queue->count; i++) {
		const struct ll_queue_job *other = queue->jobs[i];
		uint64_t begin_ns = other->planned.begin_ns;
		if (other == job || begin_ns <= steps[0].begin_ns || begin_ns > at_ns ||
		    ll_queue_end_ns(other) <= at_ns)
			continue;
		uint32_t first = (uint32_t)__builtin_ctzll(other->planned.cards);
		if (queue->machine->cards[first].group != why->group && other->user != job->user)
			continue;
		why->rule = LL_QUEUE_RULE_ORDER;
		why->number = other->number;
		why->begin_ns = begin_ns;
		return true;
	}
	return false;
}

/* What the step lacks for the job on these cards of the group, which have had room in all steps before. *cards: those
 * that have room in this step too. */
static void explain_step(const struct ll_queue *queue, const struct ll_queue_job *job, size_t at, uint64_t *cards,
			 struct ll_queue_why *why)
{
	const struct ll_queue_profile *profile = queue->profile;
	const uint64_t *row = profile->steps[at].row;
	struct cards_seen seen = look_at_cards(profile->machine, row, job, *cards);
	uint32_t wanted = job->card_count;
	enum ll_queue_rule rule = ll_queue_refusal(profile->machine, row, job, why->group, why);
	bool is_limit = rule == LL_QUEUE_RULE_USER_LIMIT || rule == LL_QUEUE_RULE_TENANT_LIMIT;
	bool is_kept = rule == LL_QUEUE_RULE_GUARANTEE && why->tenant != LL_QUEUE_NOBODY;
	*cards = seen.free;
	if (!rule && count_bits(seen.free) >= wanted)
		return;
	if (!is_limit && count_bits(seen.free | seen.busy) < wanted) {
		bool is_reserved = count_bits(seen.free | seen.busy | seen.reserved) >= wanted;
		explain_window(profile, at, is_reserved ? seen.reserved : seen.out,
			       is_reserved ? LL_QUEUE_RULE_RESERVED : LL_QUEUE_RULE_OUT_OF_USE, why);
		why->wanted = wanted;
		why->left = count_bits(seen.free | seen.busy);
	} else if (!(at && explain_order(queue, job, at, why)) && !is_limit && !is_kept) {
		explain_room(profile->machine, row, job, &seen, why);
	}
}

void ll_queue_explain(const struct ll_queue *queue, const struct ll_queue_job *job, struct ll_queue_why *ret_why)
{
	struct ll_queue_profile *profile = queue->profile;
	*ret_why = (struct ll_queue_why){.tenant = LL_QUEUE_NOBODY, .begin_ns = LL_QUEUE_NONE, .end_ns = LL_QUEUE_NONE};
	if (job->is_held || job->is_running || queue->is_stale || !profile->count || profile->has_failed ||
	    profile->machine != queue->machine || job->user >= profile->user_count)
		return;
	/* The group of its planned cards, or the first in which it may have so many. */
	uint64_t cards = allowed_of(profile->machine, job, 0);
	for (uint32_t group = 0; group < profile->machine->group_count; group++) {
		uint64_t own = allowed_of(profile->machine, job, group);
		if (!(job->planned.cards ? own & job->planned.cards : count_bits(own) >= job->card_count))
			continue;
		ret_why->group = group;
		cards = own;
		break;
	}
	uint64_t now_ns = profile->steps[0].begin_ns;
	uint64_t end_ns = job->duration_ns < LL_QUEUE_NONE - now_ns ? now_ns + job->duration_ns : LL_QUEUE_NONE;
	ll_queue_profile_take(profile, job, &job->planned, ll_queue_end_ns(job));
	for (size_t at = 0; at < profile->count && profile->steps[at].begin_ns < end_ns && !ret_why->rule; at++)
		explain_step(queue, job, at, &cards, ret_why);
	ll_queue_profile_add(profile, job, &job->planned, ll_queue_end_ns(job));
	/* There is room: without backfill it waits for the one before it. */
	const struct ll_queue_job *before = ll_queue_ahead(queue, job);
	if (!ret_why->rule && before) {
		ret_why->rule = LL_QUEUE_RULE_ORDER;
		ret_why->number = before->number;
		ret_why->begin_ns = before->planned.begin_ns;
	}
}
