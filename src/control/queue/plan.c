/* The plan: strict order, then backfill. */
#include <errno.h>

#include "control/queue/profile.h"
#include "control/queue/queue.h"

/* A running job that is over its time ends a little later than now, as far as the plan goes. */
static uint64_t end_of_running(const struct ll_queue_job *job, uint64_t now_ns)
{
	uint64_t end_ns = ll_queue_end_ns(job);
	return end_ns > now_ns ? end_ns : now_ns + LL_QUEUE_OVERRUN_NS;
}

static bool has_overrun(const struct ll_queue *queue, uint64_t now_ns)
{
	for (size_t i = 0; i < queue->running_count; i++) {
		if (ll_queue_end_ns(queue->jobs[i]) <= now_ns)
			return true;
	}
	return false;
}

/* A start of the plan that has passed: the job could not start then. */
static bool has_missed(const struct ll_queue *queue, uint64_t now_ns)
{
	return ll_queue_next_ns(queue) < now_ns;
}

static void add_running(struct ll_queue *queue, uint64_t now_ns)
{
	ll_queue_profile_start(queue->profile, queue->machine, queue->user_count, now_ns);
	for (size_t i = 0; i < queue->running_count; i++)
		ll_queue_profile_add(queue->profile, queue->jobs[i], &queue->jobs[i]->planned,
				     end_of_running(queue->jobs[i], now_ns));
}

static void add_planned(struct ll_queue *queue)
{
	for (size_t i = queue->running_count; i < queue->count; i++)
		ll_queue_profile_add(queue->profile, queue->jobs[i], &queue->jobs[i]->planned,
				     ll_queue_end_ns(queue->jobs[i]));
}

/* A job without a start (each of its cards is out of use, or its user's limit is used up for ever) is left out: the
 * others do not wait for it. */
static void plan_in_strict_order(struct ll_queue *queue, uint64_t now_ns)
{
	uint64_t from_ns = now_ns;
	for (size_t i = queue->running_count; i < queue->count && !queue->profile->has_failed; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		job->strict = (struct ll_queue_slot){LL_QUEUE_NONE, 0};
		if (!job->is_held && ll_queue_profile_find(queue->profile, job, from_ns, LL_QUEUE_NONE, &job->strict))
			from_ns = job->strict.begin_ns;
		job->planned = job->strict;
		ll_queue_profile_add(queue->profile, job, &job->planned, ll_queue_end_ns(job));
	}
}

/* Moves each job to its earliest start, in order. The starts of all others stay. */
static void move_forward(struct ll_queue *queue, uint64_t now_ns)
{
	for (size_t i = queue->running_count; i < queue->count && !queue->profile->has_failed; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		struct ll_queue_slot slot = job->planned;
		if (job->is_held || slot.begin_ns <= now_ns)
			continue;
		ll_queue_profile_take(queue->profile, job, &job->planned, ll_queue_end_ns(job));
		if (ll_queue_profile_find(queue->profile, job, now_ns, job->planned.begin_ns, &slot))
			job->planned = slot;
		ll_queue_profile_add(queue->profile, job, &job->planned, ll_queue_end_ns(job));
	}
}

int ll_queue_plan(struct ll_queue *queue, uint64_t now_ns)
{
	bool is_stale = queue->is_stale || has_overrun(queue, now_ns) || has_missed(queue, now_ns);
	if (!is_stale && !queue->has_gaps)
		return 0;
	add_running(queue, now_ns);
	if (is_stale || !queue->has_backfill)
		plan_in_strict_order(queue, now_ns);
	else
		add_planned(queue);
	if (queue->has_backfill)
		move_forward(queue, now_ns);
	queue->is_stale = queue->profile->has_failed;
	queue->has_gaps = false;
	return queue->profile->has_failed ? -ENOMEM : 0;
}
