/* The list of jobs, their users, and the use that fairshare counts. plan.c makes the plan, order.c the order. */
#include "rules/queue/queue.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/queue/profile.h"

enum { JOBS_AT_FIRST = 16 };

int ll_queue_init(struct ll_queue *queue, const struct ll_queue_machine *machine)
{
	*queue = (struct ll_queue){
	    .has_backfill = true, .planned_most = LL_QUEUE_PLANNED_MAX, .planned_of_user = LL_QUEUE_PLANNED_OF_USER};
	queue->profile = calloc(1, sizeof *queue->profile);
	int rc = queue->profile ? ll_queue_set_machine(queue, machine) : -ENOMEM;
	if (rc)
		ll_queue_fini(queue);
	return rc;
}

void ll_queue_fini(struct ll_queue *queue)
{
	if (queue->profile)
		ll_queue_profile_fini(queue->profile);
	free(queue->profile);
	free(queue->jobs);
	free(queue->users);
	free(queue->tenant_use_ns);
	*queue = (struct ll_queue){0};
}

int ll_queue_set_machine(struct ll_queue *queue, const struct ll_queue_machine *machine)
{
	size_t before = queue->machine ? queue->machine->tenant_count : 0;
	double *use_ns = calloc(machine->tenant_count + 1, sizeof *use_ns);
	if (!use_ns)
		return -ENOMEM;
	for (size_t i = 0; i < before && i < machine->tenant_count; i++)
		use_ns[i] = queue->tenant_use_ns[i];
	free(queue->tenant_use_ns);
	queue->tenant_use_ns = use_ns;
	queue->machine = machine;
	queue->is_stale = true;
	return 0;
}

void ll_queue_changed(struct ll_queue *queue)
{
	queue->is_stale = true;
}

/* ---- jobs ---- */

static int find_user(struct ll_queue *queue, uint32_t tenant, uint32_t uid, uint32_t *ret_user)
{
	size_t at = 0;
	while (at < queue->user_count && (queue->users[at].tenant != tenant || queue->users[at].uid != uid))
		at++;
	if (at == queue->user_count) {
		struct ll_queue_user *users = realloc(queue->users, (at + 1) * sizeof *users);
		if (!users)
			return -ENOMEM;
		users[at] = (struct ll_queue_user){.tenant = tenant, .uid = uid};
		queue->users = users;
		queue->user_count++;
	}
	*ret_user = (uint32_t)at;
	return 0;
}

int ll_queue_add_use(struct ll_queue *queue, uint32_t tenant, uint32_t uid, double use_ns)
{
	uint32_t user;
	int rc = find_user(queue, tenant, uid, &user);
	if (!rc)
		queue->users[user].use_ns += use_ns;
	return rc;
}

static int make_room(struct ll_queue *queue)
{
	if (queue->count < queue->room)
		return 0;
	size_t room = queue->room ? 2 * queue->room : JOBS_AT_FIRST;
	struct ll_queue_job **jobs = realloc(queue->jobs, room * sizeof(struct ll_queue_job *));
	if (!jobs)
		return -ENOMEM;
	queue->jobs = jobs;
	queue->room = room;
	return 0;
}

int ll_queue_add(struct ll_queue *queue, struct ll_queue_job *job)
{
	int rc = make_room(queue);
	if (!rc)
		rc = find_user(queue, job->tenant, job->uid, &job->user);
	if (rc)
		return rc;
	job->is_running = false;
	job->strict = job->planned = (struct ll_queue_slot){LL_QUEUE_NONE, 0};
	queue->jobs[queue->count++] = job;
	queue->is_stale = true;
	return 0;
}

static size_t index_of(const struct ll_queue *queue, const struct ll_queue_job *job)
{
	size_t at = 0;
	while (at < queue->count && queue->jobs[at] != job)
		at++;
	return at;
}

/* Moves a waiting job behind the running ones. */
static void move_to_running(struct ll_queue *queue, struct ll_queue_job *job)
{
	size_t at = index_of(queue, job);
	memmove(&queue->jobs[queue->running_count + 1], &queue->jobs[queue->running_count],
		(at - queue->running_count) * sizeof(struct ll_queue_job *));
	queue->jobs[queue->running_count++] = job;
	job->is_running = true;
}

int ll_queue_add_running(struct ll_queue *queue, struct ll_queue_job *job, uint64_t begin_ns, uint64_t cards)
{
	int rc = ll_queue_add(queue, job);
	if (rc)
		return rc;
	job->strict = job->planned = (struct ll_queue_slot){begin_ns, cards};
	move_to_running(queue, job);
	return 0;
}

void ll_queue_remove(struct ll_queue *queue, struct ll_queue_job *job, uint64_t now_ns)
{
	size_t at = index_of(queue, job);
	if (at == queue->count)
		return;
	bool leaves_gap = job->planned.begin_ns != LL_QUEUE_NONE && ll_queue_end_ns(job) > now_ns;
	memmove(&queue->jobs[at], &queue->jobs[at + 1], (queue->count - at - 1) * sizeof(struct ll_queue_job *));
	queue->count--;
	queue->running_count -= job->is_running;
	queue->has_gaps |= leaves_gap;
	queue->is_stale |= job->is_running && !leaves_gap && ll_queue_end_ns(job) < now_ns;
}

struct ll_queue_job *ll_queue_due(const struct ll_queue *queue, uint64_t now_ns)
{
	for (size_t i = queue->running_count; i < queue->count; i++) {
		if (queue->jobs[i]->planned.begin_ns <= now_ns)
			return queue->jobs[i];
	}
	return NULL;
}

void ll_queue_start(struct ll_queue *queue, struct ll_queue_job *job, uint64_t now_ns)
{
	job->overtook = 0;
	/* Jobs that are ahead of it and have a start by the plan. */
	for (size_t i = queue->running_count; i < queue->count && queue->jobs[i] != job; i++) {
		const struct ll_queue_job *other = queue->jobs[i];
		if (!other->is_held && other->planned.begin_ns != LL_QUEUE_NONE && other->number > job->overtook)
			job->overtook = other->number;
	}
	queue->is_stale |= job->planned.begin_ns != now_ns;
	job->planned.begin_ns = now_ns;
	move_to_running(queue, job);
}

/* ---- questions ---- */

uint64_t ll_queue_next_ns(const struct ll_queue *queue)
{
	uint64_t next_ns = LL_QUEUE_NONE;
	for (size_t i = queue->running_count; i < queue->count; i++) {
		if (queue->jobs[i]->planned.begin_ns < next_ns)
			next_ns = queue->jobs[i]->planned.begin_ns;
	}
	return next_ns;
}

uint64_t ll_queue_end_ns(const struct ll_queue_job *job)
{
	uint64_t begin_ns = job->planned.begin_ns;
	if (begin_ns == LL_QUEUE_NONE || job->duration_ns >= LL_QUEUE_NONE - begin_ns)
		return LL_QUEUE_NONE;
	return begin_ns + job->duration_ns;
}

size_t ll_queue_position(const struct ll_queue *queue, const struct ll_queue_job *job)
{
	return index_of(queue, job) - queue->running_count + 1;
}

const struct ll_queue_job *ll_queue_ahead(const struct ll_queue *queue, const struct ll_queue_job *job)
{
	size_t at = index_of(queue, job);
	return at > queue->running_count && at < queue->count ? queue->jobs[at - 1] : NULL;
}

const struct ll_queue_job *ll_queue_blocker(const struct ll_queue *queue, const struct ll_queue_job *job)
{
	const struct ll_queue_job *best = NULL;
	uint64_t best_ns = 0;
	for (size_t i = 0; i < queue->count && job->planned.begin_ns != LL_QUEUE_NONE; i++) {
		const struct ll_queue_job *other = queue->jobs[i];
		uint64_t end_ns = ll_queue_end_ns(other);
		bool is_near = other->planned.cards & job->planned.cards || other->tenant == job->tenant;
		if (other == job || other->is_lent || other->planned.begin_ns == LL_QUEUE_NONE ||
		    end_ns > job->planned.begin_ns || !is_near)
			continue;
		if (!best || end_ns > best_ns) {
			best = other;
			best_ns = end_ns;
		}
	}
	return best;
}

size_t ll_queue_untimed_ahead(const struct ll_queue *queue, const struct ll_queue_job *job)
{
	size_t count = 0;
	for (size_t i = 0; i < queue->count && queue->jobs[i] != job; i++)
		count += !queue->jobs[i]->has_time && !queue->jobs[i]->is_held && !queue->jobs[i]->is_lent;
	return count;
}

/* ---- use ---- */

/* The part of one card that the job has: of a shared card the larger one of memory and compute. */
static double share_of_card(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint32_t card)
{
	static const double whole_permille = 1000;
	uint32_t group = machine->cards[card].group;
	if (machine->groups[group].is_whole || !machine->cards[card].memory_bytes)
		return 1;
	return fmax((double)job->memory_bytes / (double)machine->cards[card].memory_bytes,
		    (double)job->compute_permille / whole_permille);
}

void ll_queue_charge(struct ll_queue *queue, uint64_t now_ns, uint64_t half_life_ns)
{
	if (now_ns <= queue->charged_ns)
		return;
	bool never_halves = half_life_ns == LL_QUEUE_NONE || !half_life_ns;
	double kept = never_halves ? 1 : exp2(-(double)(now_ns - queue->charged_ns) / (double)half_life_ns);
	for (size_t i = 0; i < queue->machine->tenant_count; i++)
		queue->tenant_use_ns[i] *= kept;
	for (size_t i = 0; i < queue->user_count; i++)
		queue->users[i].use_ns *= kept;
	for (size_t i = 0; i < queue->running_count; i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		uint64_t since_ns =
		    job->planned.begin_ns > queue->charged_ns ? job->planned.begin_ns : queue->charged_ns;
		double share = 0;
		for (uint32_t card = 0; card < queue->machine->card_count; card++)
			share += job->planned.cards >> card & 1 ? share_of_card(queue->machine, job, card) : 0;
		double use_ns = now_ns > since_ns && !job->is_asleep ? (double)(now_ns - since_ns) * share : 0;
		queue->tenant_use_ns[job->tenant] += use_ns;
		queue->users[job->user].use_ns += use_ns;
	}
	queue->charged_ns = now_ns;
}
