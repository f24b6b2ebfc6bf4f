#include "rules/queue/profile.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_AT_FIRST = 64 };

/* ---- steps ---- */

uint64_t ll_queue_step_end_ns(const struct ll_queue_profile *profile, size_t at)
{
	return at + 1 < profile->count ? profile->steps[at + 1].begin_ns : LL_QUEUE_NONE;
}

/* Returns the step that has that time; before the first step: the first. */
static size_t find_step(const struct ll_queue_profile *profile, uint64_t at_ns)
{
	size_t low = 0, high = profile->count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (profile->steps[middle].begin_ns <= at_ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool make_room(struct ll_queue_profile *profile)
{
	if (profile->count < profile->room)
		return true;
	size_t room = profile->room ? 2 * profile->room : STEPS_AT_FIRST;
	struct ll_queue_step *steps = realloc(profile->steps, room * sizeof *steps);
	if (steps) {
		profile->steps = steps;
		profile->room = room;
	}
	return steps;
}

/* Makes a step begin at that time, and returns its index. Without memory it returns the step that has the time. */
static size_t split_step(struct ll_queue_profile *profile, uint64_t at_ns)
{
	size_t at = find_step(profile, at_ns);
	size_t bytes = profile->width * sizeof *profile->steps->row;
	if (at_ns <= profile->steps[at].begin_ns)
		return at;
	uint64_t *row = make_room(profile) ? malloc(bytes) : NULL;
	if (!row) {
		profile->has_failed = true;
		return at;
	}
	memcpy(row, profile->steps[at].row, bytes);
	memmove(&profile->steps[at + 2], &profile->steps[at + 1], (profile->count - at - 1) * sizeof *profile->steps);
	profile->steps[at + 1] = (struct ll_queue_step){at_ns, row};
	profile->count++;
	return at + 1;
}

static void clear_steps(struct ll_queue_profile *profile)
{
	for (size_t i = 0; i < profile->count; i++)
		free(profile->steps[i].row);
	profile->count = 0;
}

void ll_queue_profile_fini(struct ll_queue_profile *profile)
{
	clear_steps(profile);
	free(profile->steps);
	*profile = (struct ll_queue_profile){0};
}

/* ---- what takes room ---- */

/* A card that is out of use stays so where a reservation has it too. */
static void add_interval(struct ll_queue_profile *profile, const struct ll_queue_interval *interval)
{
	uint64_t kept =
	    interval->tenant == LL_QUEUE_NOBODY ? LL_QUEUE_OUT_OF_USE : LL_QUEUE_KEPT_FOR + (uint64_t)interval->tenant;
	if (interval->end_ns <= profile->steps[0].begin_ns || interval->end_ns <= interval->begin_ns)
		return;
	size_t at = split_step(profile, interval->begin_ns);
	size_t end = interval->end_ns == LL_QUEUE_NONE ? profile->count : split_step(profile, interval->end_ns);
	for (; at < end; at++) {
		uint64_t *value = &profile->steps[at].row[ll_queue_at_card(interval->card) + LL_QUEUE_AT_CARD_KEPT];
		*value = *value == LL_QUEUE_OUT_OF_USE ? *value : kept;
	}
}

void ll_queue_profile_start(struct ll_queue_profile *profile, const struct ll_queue_machine *machine, size_t user_count,
			    uint64_t now_ns)
{
	clear_steps(profile);
	profile->machine = machine;
	profile->user_count = user_count;
	profile->width = ll_queue_at_user(machine, user_count) + 1;
	profile->has_failed = false;
	uint64_t *row = make_room(profile) ? calloc(profile->width, sizeof *row) : NULL;
	if (!row) {
		profile->has_failed = true;
		return;
	}
	profile->steps[0] = (struct ll_queue_step){now_ns, row};
	profile->count = 1;
	for (size_t i = 0; i < machine->interval_count; i++)
		add_interval(profile, &machine->intervals[i]);
}

void ll_queue_row_add(const struct ll_queue_machine *machine, uint64_t *row, const struct ll_queue_job *job,
		      uint64_t cards, uint64_t sign)
{
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (!(cards >> card & 1))
			continue;
		uint32_t group = machine->cards[card].group;
		bool is_whole = machine->groups[group].is_whole;
		struct ll_queue_amount need = ll_queue_need(machine, job, group);
		uint64_t *of_card = row + ll_queue_at_card(card);
		uint64_t *of_tenant = row + ll_queue_at_tenant(machine, job->tenant, group);
		uint64_t *of_user = row + ll_queue_at_user(machine, job->user);
		uint64_t held = job->is_lent ? 0 : sign;
		of_card[LL_QUEUE_AT_CARD_MEMORY] +=
		    held * (is_whole ? machine->cards[card].memory_bytes : need.memory_bytes);
		of_card[LL_QUEUE_AT_CARD_COMPUTE] += held * need.compute_permille;
		of_tenant[LL_QUEUE_AT_CARDS] += held * need.cards;
		of_tenant[LL_QUEUE_AT_MEMORY] += held * need.memory_bytes;
		of_tenant[LL_QUEUE_AT_COMPUTE] += held * need.compute_permille;
		of_user[LL_QUEUE_AT_CARDS] += sign * need.cards;
		of_user[LL_QUEUE_AT_MEMORY] += sign * need.memory_bytes;
		of_user[LL_QUEUE_AT_COMPUTE] += sign * need.compute_permille;
	}
	row[ll_queue_at_user(machine, job->user) + LL_QUEUE_AT_RUNNING] += sign;
}

static void add_slot(struct ll_queue_profile *profile, const struct ll_queue_job *job, const struct ll_queue_slot *slot,
		     uint64_t end_ns, uint64_t sign)
{
	if (slot->begin_ns == LL_QUEUE_NONE || !profile->count || end_ns <= profile->steps[0].begin_ns)
		return;
	size_t at = split_step(profile, slot->begin_ns);
	size_t end = end_ns == LL_QUEUE_NONE ? profile->count : split_step(profile, end_ns);
	for (; at < end; at++)
		ll_queue_row_add(profile->machine, profile->steps[at].row, job, slot->cards, sign);
}

void ll_queue_profile_add(struct ll_queue_profile *profile, const struct ll_queue_job *job,
			  const struct ll_queue_slot *slot, uint64_t end_ns)
{
	add_slot(profile, job, slot, end_ns, 1);
}

void ll_queue_profile_take(struct ll_queue_profile *profile, const struct ll_queue_job *job,
			   const struct ll_queue_slot *slot, uint64_t end_ns)
{
	add_slot(profile, job, slot, end_ns, UINT64_MAX);
}

/* ---- the earliest start ---- */

/* Since when each card has had room without a break, up to the step that the search has reached. */
struct search {
	const struct ll_queue_profile *profile;
	const struct ll_queue_job *job;
	uint64_t since_ns[LL_QUEUE_CARDS_MAX];
};

static void look_at_group(struct search *search, size_t at, uint32_t group)
{
	const struct ll_queue_machine *machine = search->profile->machine;
	const uint64_t *row = search->profile->steps[at].row;
	const struct ll_queue_job *job = search->job;
	bool is_permitted = !ll_queue_refusal(machine, row, job, group, NULL);
	bool is_beyond = job->within && !ll_queue_is_guaranteed(machine, row, job, group);
	for (uint32_t card = 0; card < machine->card_count; card++) {
		bool is_kept = is_beyond && job->within >> card & 1;
		if (machine->cards[card].group == group && job->allowed >> card & 1 &&
		    (!is_permitted || is_kept || !ll_queue_card_has_room(machine, row, job, card)))
			search->since_ns[card] = ll_queue_step_end_ns(search->profile, at);
	}
}

/* The earliest time from which on card_count cards of the group have had room; LL_QUEUE_NONE: there is none. */
static uint64_t earliest_of_group(const struct search *search, uint32_t group)
{
	const struct ll_queue_machine *machine = search->profile->machine;
	uint64_t earliest = LL_QUEUE_NONE;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		uint32_t as_early = 0;
		if (machine->cards[card].group != group || !(search->job->allowed >> card & 1) ||
		    search->since_ns[card] >= earliest)
			continue;
		for (uint32_t other = 0; other < machine->card_count; other++)
			as_early += machine->cards[other].group == group && search->job->allowed >> other & 1 &&
				    search->since_ns[other] <= search->since_ns[card];
		if (as_early >= search->job->card_count)
			earliest = search->since_ns[card];
	}
	return earliest;
}

static void fill_slot(const struct search *search, uint32_t group, uint64_t begin_ns, uint64_t end_ns,
		      struct ll_queue_slot *ret_slot)
{
	const struct ll_queue_machine *machine = search->profile->machine;
	uint64_t left[LL_QUEUE_CARDS_MAX] = {0}, candidates = 0;
	size_t first = find_step(search->profile, begin_ns);
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (machine->cards[card].group != group || !(search->job->allowed >> card & 1) ||
		    search->since_ns[card] > begin_ns)
			continue;
		const struct ll_queue_step *steps = search->profile->steps;
		uint64_t size = machine->cards[card].memory_bytes, most = 0;
		for (size_t at = first; at < search->profile->count && steps[at].begin_ns < end_ns; at++) {
			uint64_t used = steps[at].row[ll_queue_at_card(card) + LL_QUEUE_AT_CARD_MEMORY];
			most = used > most ? used : most;
		}
		candidates |= UINT64_C(1) << card;
		left[card] = most < size ? size - most : 0;
	}
	ret_slot->begin_ns = begin_ns;
	ret_slot->cards = ll_queue_choose(machine, search->job, candidates, left);
}

static uint64_t sum_ns(uint64_t begin_ns, uint64_t duration_ns)
{
	return duration_ns < LL_QUEUE_NONE - begin_ns ? begin_ns + duration_ns : LL_QUEUE_NONE;
}

static bool find_in_step(struct search *search, size_t at, uint64_t before_ns, struct ll_queue_slot *ret_slot)
{
	const struct ll_queue_machine *machine = search->profile->machine;
	uint64_t best_ns = LL_QUEUE_NONE;
	uint32_t best = 0;
	bool is_own = false;
	for (uint32_t group = 0; group < machine->group_count; group++) {
		look_at_group(search, at, group);
		uint64_t begin_ns = earliest_of_group(search, group);
		uint64_t end_ns = sum_ns(begin_ns, search->job->duration_ns);
		if (begin_ns > best_ns || begin_ns >= before_ns || end_ns > ll_queue_step_end_ns(search->profile, at))
			continue;
		const uint64_t *row = search->profile->steps[find_step(search->profile, begin_ns)].row;
		bool is_guaranteed = ll_queue_is_guaranteed(machine, row, search->job, group);
		if (begin_ns == best_ns && (is_own || !is_guaranteed))
			continue;
		best_ns = begin_ns;
		best = group;
		is_own = is_guaranteed;
	}
	if (best_ns == LL_QUEUE_NONE)
		return false;
	fill_slot(search, best, best_ns, sum_ns(best_ns, search->job->duration_ns), ret_slot);
	return true;
}

bool ll_queue_profile_find(const struct ll_queue_profile *profile, const struct ll_queue_job *job, uint64_t from_ns,
			   uint64_t before_ns, struct ll_queue_slot *ret_slot)
{
	struct search search = {.profile = profile, .job = job};
	size_t first = find_step(profile, from_ns);
	for (size_t card = 0; card < profile->machine->card_count; card++)
		search.since_ns[card] = from_ns;
	for (size_t at = first; at < profile->count; at++) {
		if (find_in_step(&search, at, before_ns, ret_slot))
			return true;
	}
	return false;
}
