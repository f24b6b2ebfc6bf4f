#include "rules/residency/grants.h"

static uint32_t larger_of(uint32_t one, uint32_t other)
{
	return one > other ? one : other;
}

static uint32_t cap_units(uint64_t units)
{
	return units < LL_GRANTS_MAX ? (uint32_t)units : LL_GRANTS_MAX;
}

struct sums {
	uint64_t charged; /* sum of grants, or of used memory where that is larger, and of memory that is leaving */
	uint64_t kept;    /* the same, without memory that may be taken from members */
	uint64_t used;    /* sum of the members' used memory */
};

static uint32_t charged_by(const struct ll_grants_member *member)
{
	return larger_of(member->granted, member->used);
}

/* The part of a promise beyond the grant does not count. */
static uint32_t kept_by(const struct ll_grants_member *member)
{
	uint32_t promised = member->promised < member->granted ? member->promised : member->granted;
	return larger_of(promised, member->used);
}

static struct sums sum_up(const struct ll_grants *grants)
{
	struct sums sums = {.charged = grants->leaving, .kept = grants->leaving};
	for (size_t i = 0; i < grants->count; i++) {
		sums.charged += charged_by(&grants->members[i]);
		sums.kept += kept_by(&grants->members[i]);
		sums.used += grants->members[i].used;
	}
	return sums;
}

static struct ll_grants_step step_set(size_t who, uint32_t granted)
{
	return (struct ll_grants_step){LL_GRANTS_SET, who, granted};
}

/* ---- without a limit ---- */

static struct ll_grants_step step_without_limit(const struct ll_grants *grants)
{
	for (size_t i = 0; i < grants->count; i++) {
		const struct ll_grants_member *member = &grants->members[i];
		if (member->granted != LL_GRANTS_MAX)
			return step_set(i, LL_GRANTS_MAX);
		if (!member->want)
			continue;
		if (member->want > LL_GRANTS_MAX - member->used)
			return (struct ll_grants_step){LL_GRANTS_REFUSE, i, 0};
		return (struct ll_grants_step){LL_GRANTS_SERVE, i, member->used + member->want};
	}
	return (struct ll_grants_step){.kind = LL_GRANTS_REST};
}

/* ---- a member that wants memory ---- */

/* Reduces the unused grant of one of the others: by the missing units, or by half of it if that is more. */
static struct ll_grants_step take_unused_of_others(const struct ll_grants *grants, size_t who, uint64_t missing)
{
	for (size_t i = 0; i < grants->count; i++) {
		const struct ll_grants_member *member = &grants->members[i];
		uint32_t kept = kept_by(member);
		if (i == who || member->granted <= kept)
			continue;
		uint32_t slack = member->granted - kept;
		uint32_t taken = larger_of(slack - slack / 2, missing < slack ? (uint32_t)missing : slack);
		return step_set(i, member->granted - taken);
	}
	return (struct ll_grants_step){.kind = LL_GRANTS_REST};
}

static struct ll_grants_step step_for(const struct ll_grants *grants, const struct sums *sums, size_t who)
{
	const struct ll_grants_member *member = &grants->members[who];
	uint64_t goal = (uint64_t)member->used + member->want;
	uint64_t others_charged = sums->charged - charged_by(member), others_kept = sums->kept - kept_by(member);
	if (goal <= member->granted)
		return (struct ll_grants_step){LL_GRANTS_SERVE, who, (uint32_t)goal};
	if (goal <= LL_GRANTS_MAX && others_charged + goal <= grants->limit)
		return step_set(who, cap_units(goal + (grants->limit - others_charged - goal) / 2));
	if (goal <= LL_GRANTS_MAX && others_kept + goal <= grants->limit)
		return take_unused_of_others(grants, who, others_charged + goal - grants->limit);
	if (goal <= LL_GRANTS_MAX && sums->used + member->want <= grants->limit)
		return (struct ll_grants_step){.kind = LL_GRANTS_REST};
	if (!member->has_asked && grants->count > 1)
		return (struct ll_grants_step){LL_GRANTS_REQUEST_RESERVES, who, 0};
	if (grants->is_asking && grants->count > 1)
		return (struct ll_grants_step){.kind = LL_GRANTS_REST};
	return (struct ll_grants_step){LL_GRANTS_REFUSE, who, 0};
}

/* Returns the first want after that number; count: there is none. */
static size_t next_want(const struct ll_grants *grants, uint64_t after)
{
	size_t found = grants->count;
	for (size_t i = 0; i < grants->count; i++) {
		const struct ll_grants_member *member = &grants->members[i];
		if (member->want && member->want_number > after &&
		    (found == grants->count || member->want_number < grants->members[found].want_number))
			found = i;
	}
	return found;
}

static struct ll_grants_step step_for_wants(const struct ll_grants *grants, const struct sums *sums)
{
	struct ll_grants_step step = {.kind = LL_GRANTS_REST};
	uint64_t number = 0;
	for (;;) {
		size_t who = next_want(grants, number);
		if (who == grants->count)
			return step;
		step = step_for(grants, sums, who);
		if (step.kind != LL_GRANTS_REST)
			return step;
		number = grants->members[who].want_number;
	}
}

/* ---- all members ---- */

/* Reduces the unused grant of a member while the sum is above the limit. */
static struct ll_grants_step step_shrink(const struct ll_grants *grants, uint64_t missing)
{
	for (size_t i = 0; i < grants->count; i++) {
		const struct ll_grants_member *member = &grants->members[i];
		if (member->granted <= member->used)
			continue;
		uint32_t slack = member->granted - member->used;
		return step_set(i, member->granted - (missing < slack ? (uint32_t)missing : slack));
	}
	return (struct ll_grants_step){.kind = LL_GRANTS_REST};
}

struct ll_grants_step ll_grants_next(const struct ll_grants *grants)
{
	if (!grants->limit)
		return step_without_limit(grants);
	struct sums sums = sum_up(grants);
	struct ll_grants_step step = {.kind = LL_GRANTS_REST};
	if (sums.charged > grants->limit)
		step = step_shrink(grants, sums.charged - grants->limit);
	else if (grants->count == 1 && grants->members->granted < cap_units(grants->limit - grants->leaving))
		step = step_set(0, cap_units(grants->limit - grants->leaving));
	return step.kind == LL_GRANTS_REST ? step_for_wants(grants, &sums) : step;
}
