#include "rules/residency/residency_units.h"

/* The memory of the card that a job of several processes must leave free. The driver allocates whole blocks, and the
 * free memory is fragmented. If a job leaves less than this, it is too large for the card, and one of its processes can
 * make room. */
#define SLACK_BYTES (LL_RESIDENCY_MARGIN_BYTES / 8)

/* Members of one unit are on the same side, or are about to be. */
enum side {
	SIDE_HERE,
	SIDE_GOING,  /* eviction requested or running */
	SIDE_COMING, /* resuming, or freeing its memory again */
	SIDE_OUT,
};

static bool is_by_hand(const struct ll_residency_member *member)
{
	return member->rule.wish != LL_RESIDENCY_WISH_NONE;
}

static enum side own_side(const struct ll_residency_member *member)
{
	if (member->rule.is_gathering)
		return SIDE_GOING;
	switch (member->rule.state) {
	case LL_RESIDENCY_HERE:
		return SIDE_HERE;
	case LL_RESIDENCY_AWAY:
		return SIDE_OUT;
	case LL_RESIDENCY_RESUMING:
	case LL_RESIDENCY_STAYING:
		return SIDE_COMING;
	default:
		return SIDE_GOING;
	}
}

/* ---- units ---- */

/* Its memory on the card. */
static uint64_t card_bytes(const struct ll_residency_program *rule)
{
	switch (rule->state) {
	case LL_RESIDENCY_AWAY:
		return 0;
	case LL_RESIDENCY_EVICTING:
	case LL_RESIDENCY_STAYING:
		return rule->left_bytes;
	case LL_RESIDENCY_RESUMING:
		return rule->left_bytes < rule->bytes ? rule->bytes - rule->left_bytes : 0;
	default:
		return rule->bytes;
	}
}

/* Whether the job has several processes on the member's card, and more memory than the card could have for them. */
static bool is_too_large(const struct ll_residency_member *members, size_t count,
			 const struct ll_residency_member *member, uint64_t free_bytes)
{
	uint64_t has_bytes = free_bytes, needs_bytes = 0;
	unsigned processes = 0;
	for (size_t i = 0; i < count; i++) {
		const struct ll_residency_program *rule = &members[i].rule;
		if (rule->card != member->rule.card)
			continue;
		has_bytes += card_bytes(rule);
		if (rule->job != member->rule.job || is_by_hand(&members[i]))
			continue;
		needs_bytes += rule->bytes + rule->short_bytes;
		processes++;
	}
	return processes > 1 && needs_bytes + SLACK_BYTES > has_bytes;
}

/* The measured memory of a card and the reports of its programs are not of the same moment while memory moves. Members
 * of a gather count as moving until they are evicted. */
static bool is_moving(const struct ll_residency_program *rule)
{
	bool is_coming = rule->state == LL_RESIDENCY_RESUMING && !rule->lacks_room;
	return rule->is_gathering || rule->state == LL_RESIDENCY_STOPPING || rule->state == LL_RESIDENCY_EVICTING ||
	       rule->state == LL_RESIDENCY_STAYING || is_coming;
}

static bool is_any_moving(const struct ll_residency_member *members, size_t count, unsigned card)
{
	for (size_t i = 0; i < count; i++) {
		if (members[i].rule.card == card && is_moving(&members[i].rule))
			return true;
	}
	return false;
}

/* Sets is_loose for the first member of a job. While it is unknown, the former value stays. */
static void decide_loose(struct ll_residency_member *members, size_t count, size_t first, const uint64_t *free_bytes,
			 bool is_settled, uint64_t now_ns)
{
	struct ll_residency_member *member = &members[first];
	unsigned job = member->rule.job;
	bool was_loose = false, is_known = is_settled, is_any_too_large = false;
	for (size_t i = first; job && i < count; i++) {
		unsigned card = members[i].rule.card;
		if (members[i].rule.job != job || is_by_hand(&members[i]))
			continue;
		was_loose |= members[i].is_loose;
		is_known = is_known && !is_any_moving(members, count, card);
		is_any_too_large |= is_too_large(members, count, &members[i], free_bytes[card]);
	}
	if (is_known && !is_any_too_large)
		member->large_since_ns = 0;
	else if (is_known && !member->large_since_ns)
		member->large_since_ns = now_ns;
	if (is_known && is_any_too_large)
		is_known = was_loose || now_ns - member->large_since_ns >= LL_RESIDENCY_LARGE_NS;
	member->is_loose = is_known ? is_any_too_large : was_loose;
	member->is_unsure = !is_known;
}

/* Whether two members belong to the same job, or to the same process if the job is loose. */
static bool are_of_one_unit(const struct ll_residency_member *a, const struct ll_residency_member *b)
{
	if (a == b)
		return true;
	return a->rule.job && a->rule.job == b->rule.job && !is_by_hand(a) && !is_by_hand(b) &&
	       (!a->is_loose || (a->process && a->process == b->process));
}

/* A member that is away has the side of those members of its unit that are leaving. If none is leaving, it has the side
 * of those that return and wait for all. */
static enum side side_of(const struct ll_residency_member *members, size_t count,
			 const struct ll_residency_member *member)
{
	enum side side = own_side(member);
	for (size_t i = 0; i < count && own_side(member) == SIDE_OUT; i++) {
		if (!are_of_one_unit(member, &members[i]))
			continue;
		enum side other_side = own_side(&members[i]);
		if (other_side == SIDE_GOING)
			return SIDE_GOING;
		if (other_side == SIDE_COMING && (members[i].is_held || members[i].rule.state == LL_RESIDENCY_STAYING))
			side = SIDE_COMING;
	}
	return side;
}

static const struct ll_residency_member *find_of_job(const struct ll_residency_member *members, size_t count,
						     unsigned job)
{
	for (size_t i = 0; i < count; i++) {
		if (members[i].rule.job == job)
			return &members[i];
	}
	return NULL;
}

static void number_units(struct ll_residency_member *members, size_t count, const uint64_t *free_bytes, bool is_settled,
			 uint64_t now_ns)
{
	unsigned last = 0;
	for (size_t i = 0; i < count; i++) {
		const struct ll_residency_member *earlier = find_of_job(members, i, members[i].rule.job);
		members[i].unit = 0;
		if (!earlier)
			decide_loose(members, count, i, free_bytes, is_settled, now_ns);
		else {
			members[i].is_loose = earlier->is_loose;
			members[i].is_unsure = earlier->is_unsure;
			members[i].large_since_ns = earlier->large_since_ns;
		}
	}
	for (size_t i = 0; i < count; i++)
		members[i].side = (int)side_of(members, count, &members[i]);
	for (size_t i = 0; i < count; i++) {
		if (members[i].unit)
			continue;
		last++;
		for (size_t k = i; k < count; k++) {
			if (!members[k].unit && are_of_one_unit(&members[i], &members[k]) &&
			    members[k].side == members[i].side)
				members[k].unit = last;
		}
	}
}

/* ---- the state of a unit ---- */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum ll_residency later_state(enum ll_residency a, enum ll_residency b)
{
	static const unsigned char ranks[] = {
	    [LL_RESIDENCY_HERE] = 0,      [LL_RESIDENCY_AWAY] = 1,       [LL_RESIDENCY_PREPARING] = 2,
	    [LL_RESIDENCY_SUSPENDED] = 2, [LL_RESIDENCY_SUSPENDING] = 2, [LL_RESIDENCY_STOPPING] = 3,
	    [LL_RESIDENCY_RESUMING] = 4,  [LL_RESIDENCY_EVICTING] = 5,   [LL_RESIDENCY_STAYING] = 6};
	return ranks[a] >= ranks[b] ? a : b;
}

static bool is_waiting_for_room(const struct ll_residency_program *rule)
{
	return rule->wants || rule->short_bytes;
}

static void add_common(struct ll_residency_program *unit, const struct ll_residency_program *rule)
{
	uint64_t since_ns = rule->want_since_ns;
	bool is_first_to_wait =
	    is_waiting_for_room(rule) && (!is_waiting_for_room(unit) || since_ns < unit->want_since_ns);
	if (is_first_to_wait ||
	    (!is_waiting_for_room(rule) && !is_waiting_for_room(unit) && since_ns > unit->want_since_ns))
		unit->want_since_ns = since_ns;
	unit->wants |= rule->wants || rule->short_bytes;
	/* A member that runs for a moment, before all are requested again to stop, counts as stopping. */
	unit->state = later_state(unit->state, rule->is_gathering ? LL_RESIDENCY_STOPPING : rule->state);
	unit->priority = rule->priority < unit->priority ? rule->priority : unit->priority;
	unit->is_within &= rule->is_within;
	unit->is_torn |= rule->is_torn;
	unit->lacks_room |= rule->lacks_room && !rule->is_silent;
	unit->here_since_ns = min_u64(unit->here_since_ns, rule->here_since_ns);
	unit->idle_since_ns =
	    unit->idle_since_ns && rule->idle_since_ns ? max_u64(unit->idle_since_ns, rule->idle_since_ns) : 0;
	unit->moved_ns = max_u64(unit->moved_ns, rule->moved_ns);
	unit->retry_ns = max_u64(unit->retry_ns, rule->retry_ns);
}

/* Returns the common state of all members of the unit. Its bytes stay 0, because they differ from card to card. */
static struct ll_residency_program common_of(const struct ll_residency_member *members, size_t count, unsigned unit)
{
	struct ll_residency_program common = {
	    .is_within = true, .priority = UINT32_MAX, .here_since_ns = UINT64_MAX, .idle_since_ns = 1, .unit = unit};
	for (size_t i = 0; i < count; i++) {
		if (members[i].unit == unit)
			add_common(&common, &members[i].rule);
	}
	if (common.state == LL_RESIDENCY_SUSPENDED || common.state == LL_RESIDENCY_SUSPENDING)
		common.state = LL_RESIDENCY_STOPPING;
	return common;
}

/* ---- the memory of a unit on one card ---- */

static uint64_t still_to_go(enum ll_residency unit_state, const struct ll_residency_program *rule)
{
	switch (unit_state) {
	case LL_RESIDENCY_EVICTING:
		return card_bytes(rule);
	case LL_RESIDENCY_RESUMING:
		return rule->state == LL_RESIDENCY_AWAY ? rule->bytes : rule->left_bytes;
	case LL_RESIDENCY_STAYING:
		return rule->state == LL_RESIDENCY_RESUMING ? rule->came_bytes : rule->left_bytes;
	default:
		return 0;
	}
}

static void add_to_card(struct ll_residency_program *program, const struct ll_residency_program *rule)
{
	bool is_out = program->state == LL_RESIDENCY_STOPPING && rule->state == LL_RESIDENCY_AWAY;
	program->granted_bytes += rule->granted_bytes;
	if (rule->is_silent)
		return;
	program->is_silent = false;
	program->bytes += is_out ? 0 : rule->bytes;
	program->left_bytes += still_to_go(program->state, rule);
	program->came_bytes += rule->came_bytes;
	program->lacks_room |= rule->lacks_room;
}

size_t ll_residency_units_short(const struct ll_residency_member *members, size_t count, unsigned unit, unsigned card)
{
	size_t found = count;
	for (size_t i = 0; i < count; i++) {
		const struct ll_residency_program *rule = &members[i].rule;
		if (members[i].unit == unit && rule->card == card && rule->short_bytes &&
		    (found == count || rule->want_since_ns < members[found].rule.want_since_ns))
			found = i;
	}
	return found;
}

static struct ll_residency_program program_of(const struct ll_residency_member *members, size_t count, unsigned unit,
					      unsigned card)
{
	struct ll_residency_program program = common_of(members, count, unit);
	bool lacks_anywhere = program.lacks_room;
	program.card = card;
	program.is_silent = true;
	program.lacks_room = false;
	for (size_t i = 0; i < count; i++) {
		if (members[i].unit == unit && members[i].rule.card == card)
			add_to_card(&program, &members[i].rule);
	}
	/* All memory of the unit on this card is back, but another member still waits for room on another card. A
	 * program that returns to this card may need that memory. */
	if (program.state == LL_RESIDENCY_RESUMING && !program.left_bytes)
		program.lacks_room = lacks_anywhere;
	size_t first = ll_residency_units_short(members, count, unit, card);
	if (first < count) {
		program.short_bytes = members[first].rule.short_bytes + SLACK_BYTES;
		program.is_unsure = members[first].is_unsure;
		program.waits_by_chunk = members[first].rule.waits_by_chunk;
	}
	return program;
}

static size_t count_members(const struct ll_residency_member *members, size_t count, unsigned unit)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		found += members[i].unit == unit;
	return found;
}

/* Whether an earlier member is of the same unit on the same card. */
static bool has_program(const struct ll_residency_member *members, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (members[i].unit == members[at].unit && members[i].rule.card == members[at].rule.card)
			return true;
	}
	return false;
}

/* The unit has not moved yet. Its moves on several cards run at the same time, so the longest estimate counts. */
static void estimate_moves(struct ll_residency_program *programs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t longest_ns = programs[i].moved_ns;
		for (size_t k = 0; k < count && !programs[i].moved_ns; k++) {
			if (programs[i].unit == programs[k].unit)
				longest_ns = max_u64(longest_ns, ll_residency_move_ns(programs[k].bytes));
		}
		programs[i].moved_ns = longest_ns;
	}
}

size_t ll_residency_units_join(struct ll_residency_member *members, size_t count, const uint64_t *free_bytes,
			       bool is_settled, uint64_t now_ns, struct ll_residency_program *ret_programs)
{
	size_t made = 0;
	number_units(members, count, free_bytes, is_settled, now_ns);
	for (size_t i = 0; i < count; i++) {
		if (has_program(members, i))
			continue;
		struct ll_residency_program *program = &ret_programs[made++];
		const struct ll_residency_program *rule = &members[i].rule;
		bool is_alone = count_members(members, count, members[i].unit) == 1;
		*program = is_alone ? *rule : program_of(members, count, members[i].unit, rule->card);
		if (rule->is_gathering && rule->wish != LL_RESIDENCY_WISH_SUSPEND)
			program->state = rule->state == LL_RESIDENCY_EVICTING ? rule->state : LL_RESIDENCY_STOPPING;
		program->unit = members[i].unit;
		program->job = is_by_hand(&members[i]) || members[i].is_loose ? 0 : rule->job;
	}
	estimate_moves(ret_programs, made);
	return made;
}

/* ---- following the unit ---- */

struct unit_states {
	bool is_any_staying, is_any_held;
	bool are_all_back;
};

static struct unit_states look_at(const struct ll_residency_member *members, size_t count, unsigned unit)
{
	struct unit_states unit_states = {.are_all_back = true};
	for (size_t i = 0; i < count; i++) {
		const struct ll_residency_program *rule = &members[i].rule;
		if (members[i].unit != unit)
			continue;
		unit_states.is_any_staying |= rule->state == LL_RESIDENCY_STAYING;
		unit_states.is_any_held |= rule->state == LL_RESIDENCY_RESUMING && members[i].is_held;
		unit_states.are_all_back &=
		    rule->is_silent || (rule->state == LL_RESIDENCY_RESUMING && !rule->left_bytes);
	}
	return unit_states;
}

static enum ll_residency_step follow_unit(const struct ll_residency_member *member,
					  const struct unit_states *unit_states)
{
	const struct ll_residency_program *rule = &member->rule;
	bool is_resuming = rule->state == LL_RESIDENCY_RESUMING;
	if (unit_states->is_any_staying)
		return is_resuming && !rule->is_torn ? LL_RESIDENCY_STAY : LL_RESIDENCY_WAIT;
	if (unit_states->is_any_held && rule->state == LL_RESIDENCY_AWAY)
		return LL_RESIDENCY_RESUME;
	if (is_resuming && member->is_held && unit_states->are_all_back)
		return LL_RESIDENCY_RESUME_FULLY;
	return LL_RESIDENCY_WAIT;
}

struct ll_residency_decision ll_residency_units_follow(const struct ll_residency_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_by_hand(&members[i]))
			continue;
		struct unit_states unit_states = look_at(members, count, members[i].unit);
		enum ll_residency_step step = follow_unit(&members[i], &unit_states);
		if (step != LL_RESIDENCY_WAIT)
			return (struct ll_residency_decision){.step = step, .who = i, .again_ns = UINT64_MAX};
	}
	return (struct ll_residency_decision){.step = LL_RESIDENCY_WAIT, .again_ns = UINT64_MAX};
}
