#include "daemon/arbiter/classes.h"

#include <math.h>
#include <string.h>

#include "daemon/arbiter/contender.h"
#include "daemon/arbiter/decisions.h"
#include "daemon/arbiter/gang.h"
#include "daemon/arbiter/slices.h"

/* The most jobs of a class that are measured. If there are more, their class has work, but their speed is unknown. */
enum { MOST_JOBS = 32 };

bool ll_share_is_stopped(const struct ll_share_job *job)
{
	for (unsigned rank = 0; rank < job->rank && rank < LL_SHARE_CLASSES; rank++) {
		if (job->card->levers[rank].is_held)
			return true;
	}
	return false;
}

/* A job that is stopped itself makes no progress. */
static bool is_at_work(const struct ll_share_job *job, uint64_t now_ns)
{
	if (ll_share_is_stopped(job))
		return false;
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->want_since_ns && !ll_share_is_unresponsive(claim, now_ns))
			return true;
	}
	return false;
}

bool ll_share_wanted_lately(const struct ll_share_job *job, uint64_t now_ns)
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
		if (job->rank > rank && ll_share_wanted_lately(job, now_ns))
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

/* ---- time slices ---- */

/* Whether each working job that has a higher class above it can be taken off the card. */
static bool can_slice(const struct ll_share_card *card, uint64_t now_ns)
{
	bool has_any = false;
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (!ll_share_has_superior(job, now_ns) || !ll_share_wanted_lately(job, now_ns))
			continue;
		LL_SHARE_EACH_OF(job, claim)
		{
			bool is_lately = ll_share_is_lately(claim->wanted_ns, now_ns);
			if (is_lately && (job->is_by_space || claim->said.lever != LL_TIME_LEVER_WORKS))
				return false;
			has_any |= is_lately;
		}
	}
	return has_any;
}

/* Whether a working process is still on the card, or off it, other than was ordered. */
static bool is_pending(const struct ll_share_card *card, unsigned rank, uint64_t now_ns)
{
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (job->rank <= rank)
			continue;
		LL_SHARE_EACH_OF(job, claim)
		{
			if (claim->want_since_ns && claim->said.is_off != (job->time.period_ns != 0) &&
			    !ll_share_is_unresponsive(claim, now_ns))
				return true;
		}
	}
	return false;
}

/* What was measured of other jobs says nothing. */
static void note_mix(struct ll_share_card *card)
{
	uint64_t mix = 0;
	for (const struct ll_share_job *job = card->jobs; job; job = job->next)
		mix += job->claims ? (job->id + job->weight_permille) * UINT64_C(0x9e3779b97f4a7c15) + job->rank +
					 job->slowdown_permille
				   : 0;
	if (mix != card->class_mix) {
		memset(card->class_slices, 0, sizeof card->class_slices);
		card->keeps_slices = card->has_long_slices = false;
		card->long_again_ns = 0;
	}
	card->class_mix = mix;
}

/* A higher class that seldom has work meets the first slice, a short one. Else the slice is found by measurement. A
 * change empties the gauges, so the decision has what they were. */
static void step_slices(struct ll_share_card *card, unsigned rank, const struct ll_lever_job *jobs, size_t count,
			uint64_t now_ns)
{
	struct ll_class_slices *slices = &card->class_slices[rank];
	struct ll_lever_job noted[MOST_JOBS];
	struct ll_lever_gauge gauges[MOST_JOBS];
	unsigned before_us = slices->slice_us;
	if (card->levers[rank].busy < LL_LEVER_SPARSE)
		*slices = (struct ll_class_slices){0};
	for (size_t i = 0; i < count; i++) {
		gauges[i] = *jobs[i].gauge;
		noted[i] = jobs[i];
		noted[i].gauge = &gauges[i];
	}
	ll_class_slices_step(slices, jobs, count, now_ns);
	if (slices->slice_us != before_us)
		ll_decisions_note_slices(card, rank, noted, count, now_ns);
}

/* ---- the step ---- */

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
	bool had_slices = card->has_class_slices;
	card->has_class_slices = card->forced == LL_LIMIT_SHARING_MEASURED && !is_without && can_slice(card, now_ns);
	*ret_is_new |= had_slices != card->has_class_slices;
	note_mix(card);
	for (unsigned rank = 0; rank < LL_SHARE_CLASSES; rank++) {
		struct ll_lever *lever = &card->levers[rank];
		bool was_held = lever->is_held;
		bool is_parted = !is_without && ll_share_has_beneath(card, rank, now_ns);
		if (!is_parted && !lever->stepped_ns)
			continue;
		lever->is_forced = part_of(card->forced) >= 0 || card->has_class_slices;
		if (lever->is_forced)
			lever->part = card->has_class_slices ? card->class_slices[rank].part : part_of(card->forced);
		lever->is_pending = card->has_class_slices && is_pending(card, rank, now_ns);
		size_t count = describe_class(card, rank, now_ns, jobs);
		ll_lever_step(lever, jobs, count, is_parted, now_ns);
		if (card->has_class_slices && is_parted && count)
			step_slices(card, rank, jobs, count, now_ns);
		if (is_parted && count)
			ll_decisions_note_lever(card, rank, jobs, count, now_ns);
		*ret_is_new |= was_held != lever->is_held;
		due_ns = lever->due_ns < due_ns ? lever->due_ns : due_ns;
	}
	uint64_t slices_ns =
	    ll_share_order_slices(card, card->forced != LL_LIMIT_SHARING_MEASURED || is_without, now_ns, ret_is_new);
	return slices_ns < due_ns ? slices_ns : due_ns;
}

bool ll_share_is_held(const struct ll_share_job *job)
{
	return ll_share_is_stopped(job) && !job->card->has_class_slices;
}

bool ll_share_has_classes(const struct ll_share_card *card, uint64_t now_ns)
{
	const struct ll_share_job *first = NULL;
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (!ll_share_wanted_lately(job, now_ns))
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
	double slowdown = lever ? ll_lever_slowdown(lever, &job->gauge) : 0;
	double speed = slowdown > 0 ? 1 / slowdown - ll_lever_loss(&job->gauge) : 0;
	return speed > 0 ? (unsigned)lrint(1000 / speed) : 0;
}
