/* The plan: strict order, then backfill. */
#include <errno.h>

#include "rules/queue/profile.h"
#include "rules/queue/queue.h"

/* A running job that is over its time ends a little later than now, as far as the plan goes. */
static uint64_t end_of_running(const struct ll_queue_job *job, uint64_t now_ns)
{
	uint64_t end_ns = ll_queue_end_ns(job);
	return end_ns > now_ns ? end_ns : now_ns + LL_QUEUE_OVERRUN_NS;
}

static bool has_slot(const struct ll_queue_job *job)
{
	return job->planned.begin_ns != LL_QUEUE_NONE;
}

/* ---- how many ---- */

static void begin_count(struct ll_queue *queue)
{
	for (size_t i = 0; i < queue->user_count; i++)
		queue->users[i].planned = 0;
}

static bool is_left_out(const struct ll_queue *queue, const struct ll_queue_job *job, size_t planned)
{
	return planned >= queue->planned_most || queue->users[job->user].planned >= queue->planned_of_user;
}

static size_t count_slot(struct ll_queue *queue, const struct ll_queue_job *job)
{
	queue->users[job->user].planned += has_slot(job);
	return has_slot(job);
}

/* ---- the plan ---- */

/* A job without a start (each of its cards is out of use, or its user's limit is used up for ever) is left out: the
 * others do not wait for it. */
static void plan_in_strict_order(struct ll_queue *queue, uint64_t now_ns)
{
	uint64_t from_ns = now_ns;
	size_t planned = 0;
	bool has_left_out = false;
	begin_count(queue);
	for (size_t i = queue->running_count; i < queue->count && !queue->profile->has_failed; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		bool must_wait = job->is_held || is_left_out(queue, job, planned);
		has_left_out |= must_wait && !job->is_held;
		job->strict = (struct ll_queue_slot){LL_QUEUE_NONE, 0};
		if (!must_wait && ll_queue_profile_find(queue->profile, job, from_ns, LL_QUEUE_NONE, &job->strict))
			from_ns = job->strict.begin_ns;
		job->planned = job->strict;
		planned += count_slot(queue, job);
		ll_queue_profile_add(queue->profile, job, &job->planned, ll_queue_end_ns(job));
	}
	queue->planned_beside = has_left_out ? planned : 0;
}

/* Moves each job to its earliest start, in order. The starts of all others stay. A job without a start gets one as long
 * as not too many before it have theirs. */
static void move_forward(struct ll_queue *queue, uint64_t now_ns)
{
	size_t planned = 0;
	begin_count(queue);
	for (size_t i = queue->running_count; i < queue->count && !queue->profile->has_failed; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		struct ll_queue_slot slot = job->planned;
		planned += count_slot(queue, job);
		if (job->is_held || slot.begin_ns <= now_ns || (!has_slot(job) && is_left_out(queue, job, planned)))
			continue;
		ll_queue_profile_take(queue->profile, job, &job->planned, ll_queue_end_ns(job));
		if (ll_queue_profile_find(queue->profile, job, now_ns, job->planned.begin_ns, &slot))
			job->planned = slot;
		ll_queue_profile_add(queue->profile, job, &job->planned, ll_queue_end_ns(job));
	}
}

int ll_queue_plan(struct ll_queue *queue, uint64_t now_ns)
{
	/* A start of the plan that has passed: the job could not start then. */
	bool is_stale = queue->is_stale || ll_queue_next_ns(queue) < now_ns;
	size_t planned = 0;
	for (size_t i = 0; i < queue->running_count && !is_stale; i++)
		is_stale = ll_queue_end_ns(queue->jobs[i]) <= now_ns;
	for (size_t i = queue->running_count; i < queue->count; i++)
		planned += has_slot(queue->jobs[i]);
	/* Half of those that were planned have begun, and others wait to come into the plan. */
	is_stale |= queue->planned_beside && 2 * planned <= queue->planned_beside;
	if (!is_stale && !queue->has_gaps)
		return 0;
	bool is_strict = is_stale || !queue->has_backfill;
	ll_queue_profile_start(queue->profile, queue->machine, queue->user_count, now_ns);
	for (size_t i = 0; i < (is_strict ? queue->running_count : queue->count); i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		ll_queue_profile_add(queue->profile, job, &job->planned,
				     i < queue->running_count ? end_of_running(job, now_ns) : ll_queue_end_ns(job));
	}
	if (is_strict)
		plan_in_strict_order(queue, now_ns);
	if (queue->has_backfill)
		move_forward(queue, now_ns);
	queue->is_stale = queue->profile->has_failed;
	queue->has_gaps = false;
	return queue->profile->has_failed ? -ENOMEM : 0;
}

/* ---- a change ---- */

/* What the job must fit beside: the other running ones, and those that it is let forward of once it is changed, where
 * they are planned. */
static void add_others(struct ll_queue *queue, const struct ll_queue_job *than, const struct ll_queue_job *changed,
		       uint64_t now_ns)
{
	ll_queue_profile_start(queue->profile, queue->machine, queue->user_count, now_ns);
	for (size_t i = 0; i < queue->count; i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		bool is_overtaken = i >= queue->running_count && job->number <= changed->overtook;
		if (job == than || (i >= queue->running_count && !is_overtaken))
			continue;
		ll_queue_profile_add(queue->profile, job, &job->planned,
				     is_overtaken ? ll_queue_end_ns(job) : end_of_running(job, now_ns));
	}
}

bool ll_queue_may_change(struct ll_queue *queue, const struct ll_queue_job *job, const struct ll_queue_job *wanted,
			 uint64_t now_ns)
{
	struct ll_queue_job changed = *job;
	changed.memory_bytes = wanted->memory_bytes;
	changed.compute_permille = wanted->compute_permille;
	changed.duration_ns = wanted->duration_ns;
	changed.is_lent = false;
	uint64_t end_ns = end_of_running(&changed, now_ns);
	if (ll_queue_plan(queue, now_ns))
		return false;
	add_others(queue, job, wanted, now_ns);
	bool may_change = !queue->profile->has_failed;
	const struct ll_queue_machine *machine = queue->machine;
	for (size_t at = 0; may_change && at < queue->profile->count && queue->profile->steps[at].begin_ns < end_ns;
	     at++) {
		const uint64_t *row = queue->profile->steps[at].row;
		for (uint32_t card = 0; may_change && card < machine->card_count; card++)
			may_change = !(job->planned.cards >> card & 1) ||
				     (!ll_queue_refusal(machine, row, &changed, machine->cards[card].group, NULL) &&
				      ll_queue_card_has_room(machine, row, &changed, card));
	}
	return may_change;
}

uint64_t ll_queue_start_among(struct ll_queue *queue, const struct ll_queue_job *job, uint64_t cards, uint64_t now_ns)
{
	struct ll_queue_job among = *job;
	struct ll_queue_slot slot = {LL_QUEUE_NONE, 0};
	among.allowed &= cards;
	among.overtook = LL_QUEUE_NONE; /* it delays no waiting job either */
	add_others(queue, job, &among, now_ns);
	if (queue->profile->has_failed || !ll_queue_profile_find(queue->profile, &among, now_ns, now_ns + 1, &slot))
		return 0;
	return slot.cards;
}
