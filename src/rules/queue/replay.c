#include "rules/queue/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So many waiting jobs are looked at for a loan, as in loadlined. */
enum { LOOKS_MAX = 256 };

struct model {
	const struct ll_replay *replay;
	struct ll_queue queue;
	struct ll_lend lend;
	size_t arrived;
	uint64_t now_ns;
	int rc;
};

static struct ll_replay_job *replay_job_of(const struct ll_queue_job *job)
{
	return (struct ll_replay_job *)((char *)(uintptr_t)job - offsetof(struct ll_replay_job, queued));
}

static const struct ll_lend *read_lend(struct model *model)
{
	const struct ll_replay *replay = model->replay;
	struct ll_lend_job *jobs = model->lend.jobs;
	size_t count = model->queue.running_count;
	for (size_t i = 0; i < count; i++) {
		const struct ll_replay_job *its = replay_job_of(model->queue.jobs[i]);
		jobs[i] = (struct ll_lend_job){.job = &its->queued,
					       .state = its->state,
					       .is_pooled = its->is_pooled,
					       .is_spared = model->now_ns - its->since_ns < replay->min_runtime_ns};
	}
	model->lend.queue = &model->queue;
	model->lend.count = count;
	model->lend.now_ns = model->now_ns;
	model->lend.steps = replay->steps;
	model->lend.pool_bytes = replay->pool_bytes;
	model->lend.keep_free_bytes = replay->keep_free_bytes;
	return &model->lend;
}

/* ---- states ---- */

static void set_state(struct model *model, struct ll_replay_job *its, enum ll_lend_state state)
{
	bool was_on_card = its->state == LL_LEND_RUNS && its->began_ns != LL_QUEUE_NONE;
	uint64_t passed_ns = was_on_card ? model->now_ns - its->since_ns : 0;
	its->on_card_ns += passed_ns;
	its->borrowed_ns += its->queued.is_lent ? passed_ns : 0;
	/* Sleep is no part of its time. */
	if (its->state == LL_LEND_ASLEEP)
		its->queued.duration_ns += model->now_ns - its->since_ns;
	its->queued.is_asleep = state == LL_LEND_ASLEEP;
	its->state = state;
	its->since_ns = model->now_ns;
	if (state == LL_LEND_RUNS && its->began_ns == LL_QUEUE_NONE)
		its->began_ns = model->now_ns;
	if (its->queued.is_lent)
		ll_queue_changed(&model->queue);
}

static uint64_t end_of(const struct ll_replay_job *its)
{
	return its->state == LL_LEND_RUNS ? its->since_ns + its->runs_ns - its->on_card_ns : LL_QUEUE_NONE;
}

static uint64_t left_at(const struct ll_replay_job *its)
{
	return its->state == LL_LEND_LEAVING ? its->since_ns + LL_REPLAY_LEAVE_NS : LL_QUEUE_NONE;
}

/* Those that have ended, or left, by now; then those whose room is there. */
static void settle_running(struct model *model)
{
	struct ll_queue *queue = &model->queue;
	for (size_t i = 0; i < queue->running_count;) {
		struct ll_replay_job *its = replay_job_of(queue->jobs[i]);
		bool has_left = left_at(its) <= model->now_ns, has_ended = end_of(its) <= model->now_ns;
		if (has_left || has_ended)
			set_state(model, its, has_left ? LL_LEND_ASLEEP : LL_LEND_RUNS);
		if (has_ended || (has_left && !its->is_pooled))
			ll_queue_remove(queue, &its->queued, model->now_ns);
		else
			i++;
	}
	for (size_t i = 0; i < queue->running_count; i++) {
		struct ll_replay_job *its = replay_job_of(queue->jobs[i]);
		if (its->state == LL_LEND_RESERVED && ll_lend_is_there(read_lend(model), &its->queued))
			set_state(model, its, LL_LEND_RUNS);
	}
}

/* Recalls the borrowers in the way, and gives the job its place or reserves it. Returns false, and touches nobody, if
 * the job would not fit then. */
static bool claim_room(struct model *model, struct ll_replay_job *its)
{
	read_lend(model);
	if (!ll_lend_claim(&model->lend, &its->queued))
		return false;
	bool is_there = ll_lend_is_there(&model->lend, &its->queued);
	if (!its->queued.is_running)
		ll_queue_start(&model->queue, &its->queued, model->now_ns);
	set_state(model, its, is_there ? LL_LEND_RUNS : LL_LEND_RESERVED);
	for (size_t i = 0; i < model->lend.count; i++) {
		struct ll_replay_job *victim = replay_job_of(model->lend.jobs[i].job);
		if (!model->lend.jobs[i].step)
			continue;
		set_state(model, victim, LL_LEND_LEAVING);
		victim->recalls++;
		victim->pauses++;
	}
	return true;
}

/* A borrower for which the plan has room is one no more. If it sleeps, it claims that room. */
static void make_rightful(struct model *model, struct ll_replay_job *its)
{
	struct ll_queue_job wanted = its->queued;
	wanted.overtook = LL_QUEUE_NONE;
	if (!ll_queue_may_change(&model->queue, &its->queued, &wanted, model->now_ns))
		return;
	if (its->state != LL_LEND_ASLEEP)
		set_state(model, its, its->state);
	else if (!claim_room(model, its))
		return;
	its->queued.is_lent = its->is_pooled = false;
	its->pauses = 0;
	ll_queue_changed(&model->queue);
}

static void start_due(struct model *model)
{
	struct ll_queue *queue = &model->queue;
	struct ll_queue_job *job;
	if (ll_queue_plan(queue, model->now_ns))
		model->rc = -ENOMEM;
	while (!model->rc && (job = ll_queue_due(queue, model->now_ns))) {
		uint64_t cards = ll_lend_free_cards(read_lend(model), job);
		cards = ll_queue_start_among(queue, job, cards, model->now_ns);
		if (cards && cards != job->planned.cards) {
			job->planned.cards = cards;
			ll_queue_changed(queue);
		}
		if (!claim_room(model, replay_job_of(job)))
			break; /* borrowers keep min-runtime */
	}
}

/* Whether the job asks for as much as one that got nothing: then it gets nothing either. There are no windows here, so
 * its time does not matter. */
static bool is_refused_with(const struct ll_queue_job *job, const struct ll_queue_job *const *refused, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ll_queue_job *other = refused[i];
		if (job->tenant == other->tenant && job->uid == other->uid && job->allowed == other->allowed &&
		    job->card_count == other->card_count && job->memory_bytes >= other->memory_bytes &&
		    job->compute_permille >= other->compute_permille)
			return true;
	}
	return false;
}

static void lend_room(struct model *model)
{
	struct ll_queue *queue = &model->queue;
	const struct ll_queue_job *refused[LOOKS_MAX];
	size_t looks = 0, refused_count = 0;
	for (size_t i = 0; i < queue->running_count; i++) {
		struct ll_replay_job *its = replay_job_of(queue->jobs[i]);
		if (its->state == LL_LEND_ASLEEP && model->now_ns - its->since_ns >= ll_lend_pause_ns(its->pauses) &&
		    ll_lend_may_return(read_lend(model), &its->queued))
			set_state(model, its, LL_LEND_RUNS);
	}
	for (size_t i = queue->running_count; i < queue->count && looks < LOOKS_MAX; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		struct ll_replay_job *its = replay_job_of(job);
		bool is_pooled = false;
		looks += its->may_borrow;
		if (!its->may_borrow || is_refused_with(job, refused, refused_count))
			continue;
		uint64_t cards = ll_lend_borrow(read_lend(model), job, &is_pooled);
		if (!cards) {
			refused[refused_count++] = job;
			continue;
		}
		job->planned = (struct ll_queue_slot){model->now_ns, cards};
		job->is_lent = true;
		its->is_pooled = is_pooled;
		ll_queue_start(queue, job, model->now_ns);
		set_state(model, its, LL_LEND_RUNS);
	}
}

/* ---- time ---- */

static void keep_earliest(uint64_t *at_ns, uint64_t other_ns, uint64_t after_ns)
{
	if (other_ns > after_ns && other_ns < *at_ns)
		*at_ns = other_ns;
}

static uint64_t next_event(const struct model *model)
{
	const struct ll_replay *replay = model->replay;
	uint64_t now_ns = model->now_ns, next_ns = LL_QUEUE_NONE;
	if (model->arrived < replay->count)
		next_ns = replay->jobs[model->arrived].came_ns;
	keep_earliest(&next_ns, ll_queue_next_ns(&model->queue), now_ns);
	for (size_t i = 0; i < model->queue.running_count; i++) {
		const struct ll_replay_job *its = replay_job_of(model->queue.jobs[i]);
		keep_earliest(&next_ns, end_of(its), now_ns);
		keep_earliest(&next_ns, left_at(its), now_ns);
		if (its->state == LL_LEND_ASLEEP)
			keep_earliest(&next_ns, its->since_ns + ll_lend_pause_ns(its->pauses), now_ns);
		if (its->queued.is_lent)
			keep_earliest(&next_ns, its->since_ns + replay->min_runtime_ns, now_ns);
	}
	return next_ns;
}

/* Returns whether any has come. */
static bool let_arrive(struct model *model)
{
	const struct ll_replay *replay = model->replay;
	bool has_come = false;
	for (; model->arrived < replay->count && replay->jobs[model->arrived].came_ns <= model->now_ns;
	     model->arrived++) {
		struct ll_replay_job *its = &replay->jobs[model->arrived];
		its->began_ns = LL_QUEUE_NONE;
		its->queued.number = model->arrived + 1;
		if (its->is_refused)
			continue;
		has_come = true;
		if (ll_queue_add(&model->queue, &its->queued))
			model->rc = -ENOMEM;
	}
	return has_come;
}

static void look_at_queue(struct model *model)
{
	const struct ll_replay *replay = model->replay;
	struct ll_queue *queue = &model->queue;
	ll_queue_charge(queue, model->now_ns, replay->half_life_ns);
	settle_running(model);
	if (let_arrive(model))
		ll_queue_arrange(queue, &replay->rules, model->now_ns);
	if (ll_queue_plan(queue, model->now_ns))
		model->rc = -ENOMEM;
	for (size_t i = 0; i < queue->running_count && !model->rc; i++) {
		struct ll_replay_job *its = replay_job_of(queue->jobs[i]);
		if (its->queued.is_lent && its->state != LL_LEND_LEAVING)
			make_rightful(model, its);
	}
	start_due(model);
	if (replay->steps && !model->rc)
		lend_room(model);
}

int ll_replay_run(const struct ll_replay *replay)
{
	struct model model = {.replay = replay};
	int rc = ll_queue_init(&model.queue, replay->machine);
	if (rc)
		return rc;
	model.lend.jobs = calloc(replay->count + 1, sizeof *model.lend.jobs);
	model.rc = model.lend.jobs ? 0 : -ENOMEM;
	model.queue.has_backfill = replay->has_backfill;
	model.queue.planned_most = LL_REPLAY_PLANNED_MAX;
	model.queue.planned_of_user = LL_REPLAY_PLANNED_OF_USER;
	model.queue.charged_ns = replay->count ? replay->jobs[0].came_ns : 0;
	for (uint64_t at_ns; !model.rc && (at_ns = next_event(&model)) != LL_QUEUE_NONE;) {
		model.now_ns = at_ns > model.now_ns ? at_ns : model.now_ns;
		look_at_queue(&model);
	}
	free(model.lend.jobs);
	ll_queue_fini(&model.queue);
	return model.rc;
}
