#include "daemon/arbiter/classes.h"

#include <math.h>

#include "daemon/arbiter/decisions.h"
#include "daemon/arbiter/gang.h"

/* The most jobs of a class that are measured. If there are more, their class has work, but their speed is unknown. */
enum { MOST_JOBS = 32 };

/* A job that is held itself makes no progress. */
static bool is_at_work(const struct ll_share_job *job, uint64_t now_ns)
{
	if (ll_share_is_held(job))
		return false;
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->want_since_ns && !ll_share_is_unresponsive(claim, now_ns))
			return true;
	}
	return false;
}

static bool wanted_lately(const struct ll_share_job *job, uint64_t now_ns)
{
	LL_SHARE_EACH_OF(job, claim)
	{
		if (ll_share_is_lately(claim->wanted_ns, now_ns))
			return true;
	}
	return false;
}

bool ll_share_has_beneath(const struct ll_share_card *card, unsigned rank, uint64_t now_ns)
{
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (job->rank > rank && wanted_lately(job, now_ns))
			return true;
	}
	return false;
}

static uint64_t completed_of(const struct ll_share_job *job)
{
	uint64_t completed = 0;
	LL_SHARE_EACH_OF(job, claim)
	completed += claim->said.completed_launches;
	return completed;
}

static size_t describe_class(struct ll_share_card *card, unsigned rank, uint64_t now_ns, struct ll_lever_job *jobs)
{
	size_t count = 0;
	for (struct ll_share_job *job = card->jobs; job && count < MOST_JOBS; job = job->next) {
		if (job->rank == rank && job->claims)
			jobs[count++] = (struct ll_lever_job){.gauge = &job->gauge,
							      .id = job->id,
							      .completed = completed_of(job),
							      .slowdown_permille = job->slowdown_permille,
							      .has_work = is_at_work(job, now_ns)};
	}
	return count;
}

static void note_wanting(struct ll_share_card *card, uint64_t now_ns)
{
	LL_SHARE_EACH_WANTING(card, claim)
	{
		if (!claim->was_unresponsive)
			claim->wanted_ns = now_ns;
	}
}

/* Returns the forced part; negative: nothing is forced. */
static double part_of(enum ll_limit_sharing forced)
{
	switch (forced) {
	case LL_LIMIT_SHARING_HELD_NONE:
		return 0;
	case LL_LIMIT_SHARING_HELD_HALF:
		return 0.5;
	case LL_LIMIT_SHARING_HELD_ALL:
		return 1;
	default:
		return -1;
	}
}

uint64_t ll_share_step_classes(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new)
{
	struct ll_lever_job jobs[MOST_JOBS];
	uint64_t due_ns = UINT64_MAX;
	note_wanting(card, now_ns);
	bool is_without = ll_share_is_forced(card) || ll_share_has_gang(card, now_ns);
	for (unsigned rank = 0; rank < LL_SHARE_CLASSES; rank++) {
		struct ll_lever *lever = &card->levers[rank];
		bool was_held = lever->is_held;
		bool is_parted = !is_without && ll_share_has_beneath(card, rank, now_ns);
		if (!is_parted && !lever->stepped_ns)
			continue;
		lever->is_forced = part_of(card->forced) >= 0;
		if (lever->is_forced)
			lever->part = part_of(card->forced);
		size_t count = describe_class(card, rank, now_ns, jobs);
		ll_lever_step(lever, jobs, count, is_parted, now_ns);
		if (is_parted && count)
			ll_decisions_note_lever(card, rank, jobs, count, now_ns);
		*ret_is_new |= was_held != lever->is_held;
		due_ns = lever->due_ns < due_ns ? lever->due_ns : due_ns;
	}
	return due_ns;
}

bool ll_share_is_held(const struct ll_share_job *job)
{
	for (unsigned rank = 0; rank < job->rank && rank < LL_SHARE_CLASSES; rank++) {
		if (job->card->levers[rank].is_held)
			return true;
	}
	return false;
}

bool ll_share_has_classes(const struct ll_share_card *card, uint64_t now_ns)
{
	const struct ll_share_job *first = NULL;
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (!wanted_lately(job, now_ns))
			continue;
		if (first && first->rank != job->rank)
			return true;
		first = job;
	}
	return false;
}

/* ---- for users ---- */

/* Returns NULL if no job was beneath it yet. */
static const struct ll_lever *lever_of(const struct ll_share_job *job)
{
	const struct ll_lever *lever = job->rank < LL_SHARE_CLASSES ? &job->card->levers[job->rank] : NULL;
	return lever && lever->stepped_ns && job->gauge.seen_ns ? lever : NULL;
}

unsigned ll_share_held_permille(const struct ll_share_job *job)
{
	const struct ll_lever *lever = lever_of(job);
	return lever ? (unsigned)lrint(1000 * lever->part) : 0;
}

unsigned ll_share_slowdown_permille(const struct ll_share_job *job)
{
	const struct ll_lever *lever = lever_of(job);
	return lever ? (unsigned)lrint(1000 * ll_lever_slowdown(lever, &job->gauge)) : 0;
}
