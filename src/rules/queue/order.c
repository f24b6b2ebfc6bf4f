/*
 * The order of the waiting jobs.
 *
 * The order is made one place at a time. Each user's jobs stay in the order of their arrival, so a user's first one
 * stands for the user; the best of these gets the next place. What it will use is then added to its tenant's and its
 * user's use, so that a user with 200 jobs and one with 2 take turns.
 */

#include <stdlib.h>
#include <string.h>

#include "rules/queue/profile.h"
#include "rules/queue/queue.h"

/* The state while the order is made. */
struct arrangement {
	struct ll_queue *queue;
	const struct ll_queue_rules *rules;
	uint64_t now_ns;
	double *tenant_use_ns, *user_use_ns;
	struct ll_queue_amount *given; /* of the tenants in the groups: running, and what has its place */
	bool *is_seen;                 /* by user */
	size_t *left;                  /* by user: waiting jobs without a place */
	size_t users_left;             /* that have any */
};

/* Why one job goes before another: smaller numbers first. */
struct claim {
	struct ll_queue_job *job;
	bool is_unreserved, is_beyond;
	double tenant_use_ns, user_use_ns;
};

static void add_amount(struct ll_queue_amount *sum, const struct ll_queue_amount *need, uint64_t times)
{
	sum->cards += need->cards * times;
	sum->memory_bytes += need->memory_bytes * times;
	sum->compute_permille += need->compute_permille * times;
}

/* Returns a group in which the job stays within its tenant's guarantee; group_count: there is none. */
static uint32_t group_within_guarantee(const struct arrangement *arrangement, const struct ll_queue_job *job)
{
	const struct ll_queue_machine *machine = arrangement->queue->machine;
	uint32_t group = 0;
	for (; group < machine->group_count; group++) {
		const struct ll_queue_amount *guarantee = &machine->tenants[job->tenant].guarantees[group];
		struct ll_queue_amount sum = arrangement->given[job->tenant * machine->group_count + group];
		struct ll_queue_amount need = ll_queue_need(machine, job, group);
		bool is_in_group = false;
		for (uint32_t card = 0; card < machine->card_count; card++)
			is_in_group |= machine->cards[card].group == group && job->allowed >> card & 1;
		add_amount(&sum, &need, job->card_count);
		if (is_in_group && sum.cards <= guarantee->cards && sum.memory_bytes <= guarantee->memory_bytes &&
		    sum.compute_permille <= guarantee->compute_permille)
			break;
	}
	return group;
}

static struct claim claim_of(const struct arrangement *arrangement, struct ll_queue_job *job)
{
	const struct ll_queue_machine *machine = arrangement->queue->machine;
	uint64_t weight = machine->tenants[job->tenant].weight;
	bool has_reservation = false;
	for (size_t i = 0; i < machine->interval_count; i++) {
		const struct ll_queue_interval *interval = &machine->intervals[i];
		has_reservation |= interval->tenant == job->tenant && interval->begin_ns <= arrangement->now_ns &&
				   arrangement->now_ns < interval->end_ns && job->allowed >> interval->card & 1;
	}
	return (struct claim){
	    .job = job,
	    .is_unreserved = !has_reservation,
	    .is_beyond = group_within_guarantee(arrangement, job) == machine->group_count,
	    .tenant_use_ns = arrangement->tenant_use_ns[job->tenant] / (double)(weight ? weight : 1),
	    .user_use_ns = arrangement->user_use_ns[job->user],
	};
}

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_by(enum ll_queue_key key, const struct claim *a, const struct claim *b)
{
	switch (key) {
	case LL_QUEUE_BY_RESERVATION:
		return a->is_unreserved - b->is_unreserved;
	case LL_QUEUE_BY_GUARANTEE:
		return a->is_beyond - b->is_beyond;
	case LL_QUEUE_BY_FAIRSHARE:
		if (a->job->tenant == b->job->tenant)
			return compare_numbers(a->user_use_ns, b->user_use_ns);
		return compare_numbers(a->tenant_use_ns, b->tenant_use_ns);
	case LL_QUEUE_BY_AGE:
		return (a->job->number > b->job->number) - (a->job->number < b->job->number);
	}
	return 0;
}

/* What the job will use, on cards of an average group: one card each by card, else its part of the memory. */
static double future_use_ns(const struct ll_queue_machine *machine, const struct ll_queue_job *job)
{
	static const double whole_permille = 1000;
	double share = 0;
	for (uint32_t card = 0; card < machine->card_count; card++) {
		if (!((job->allowed & ~job->within) >> card & 1))
			continue;
		double memory = (double)job->memory_bytes / (double)machine->cards[card].memory_bytes;
		double compute = (double)job->compute_permille / whole_permille;
		share = machine->groups[machine->cards[card].group].is_whole ? 1 : memory > compute ? memory : compute;
		break;
	}
	return share * job->card_count * (double)job->duration_ns;
}

/* The job has its place: what it will use counts as used. */
static void count_placed(struct arrangement *arrangement, const struct ll_queue_job *job)
{
	const struct ll_queue_machine *machine = arrangement->queue->machine;
	uint32_t group = group_within_guarantee(arrangement, job);
	double use_ns = future_use_ns(machine, job);
	arrangement->tenant_use_ns[job->tenant] += use_ns;
	arrangement->user_use_ns[job->user] += use_ns;
	if (group == machine->group_count)
		return;
	struct ll_queue_amount need = ll_queue_need(machine, job, group);
	add_amount(&arrangement->given[job->tenant * machine->group_count + group], &need, job->card_count);
}

/* Puts the best of the users' first jobs at the place. */
static void fill_place(struct arrangement *arrangement, size_t place)
{
	struct ll_queue *queue = arrangement->queue;
	struct claim best = {0};
	size_t best_at = place, seen = 0;
	memset(arrangement->is_seen, 0, queue->user_count);
	for (size_t i = place; i < queue->count && seen < arrangement->users_left; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		if (arrangement->is_seen[job->user])
			continue;
		arrangement->is_seen[job->user] = true;
		seen++;
		struct claim claim = claim_of(arrangement, job);
		int order = 0;
		for (size_t k = 0; best.job && k < arrangement->rules->key_count && !order; k++)
			order = compare_by(arrangement->rules->keys[k], &claim, &best);
		if (best.job && (order ? order : compare_by(LL_QUEUE_BY_AGE, &claim, &best)) >= 0)
			continue;
		best = claim;
		best_at = i;
	}
	if (!best.job)
		return;
	memmove(&queue->jobs[place + 1], &queue->jobs[place], (best_at - place) * sizeof(struct ll_queue_job *));
	queue->jobs[place] = best.job;
	arrangement->users_left -= --arrangement->left[best.job->user] == 0;
	count_placed(arrangement, best.job);
}

static int by_arrival(const void *a, const void *b)
{
	const struct ll_queue_job *const *first = a, *const *second = b;
	return ((*first)->number > (*second)->number) - ((*first)->number < (*second)->number);
}

/* The jobs that an operator gave a position, from the first position on: each goes there. */
static void place_moved(struct ll_queue *queue)
{
	size_t waiting = queue->count - queue->running_count, moved = 0;
	struct ll_queue_job **jobs = queue->jobs + queue->running_count;
	for (size_t i = 0; i < waiting; i++)
		moved += jobs[i]->position != 0;
	for (size_t place = 1; place <= waiting && moved; place++) {
		size_t at = 0;
		while (at < waiting && jobs[at]->position != place)
			at++;
		if (at == waiting)
			continue;
		struct ll_queue_job *job = jobs[at];
		size_t to = place - 1;
		if (at > to)
			memmove(&jobs[to + 1], &jobs[to], (at - to) * sizeof(struct ll_queue_job *));
		else
			memmove(&jobs[at], &jobs[at + 1], (to - at) * sizeof(struct ll_queue_job *));
		jobs[to] = job;
		moved--;
	}
}

static bool start_arrangement(struct arrangement *arrangement)
{
	const struct ll_queue *queue = arrangement->queue;
	size_t tenants = queue->machine->tenant_count;
	arrangement->tenant_use_ns = calloc(tenants + 1, sizeof *arrangement->tenant_use_ns);
	arrangement->user_use_ns = calloc(queue->user_count + 1, sizeof *arrangement->user_use_ns);
	arrangement->given = calloc(tenants * queue->machine->group_count + 1, sizeof *arrangement->given);
	arrangement->is_seen = calloc(queue->user_count + 1, sizeof *arrangement->is_seen);
	arrangement->left = calloc(queue->user_count + 1, sizeof *arrangement->left);
	if (!arrangement->tenant_use_ns || !arrangement->user_use_ns || !arrangement->given || !arrangement->is_seen ||
	    !arrangement->left)
		return false;
	for (size_t i = queue->running_count; i < queue->count; i++)
		arrangement->users_left += arrangement->left[queue->jobs[i]->user]++ == 0;
	for (size_t i = 0; i < tenants; i++)
		arrangement->tenant_use_ns[i] = queue->tenant_use_ns[i];
	for (size_t i = 0; i < queue->user_count; i++)
		arrangement->user_use_ns[i] = queue->users[i].use_ns;
	for (size_t i = 0; i < queue->running_count; i++) {
		const struct ll_queue_job *job = queue->jobs[i];
		for (uint32_t card = 0; !job->is_lent && card < queue->machine->card_count; card++) {
			uint32_t group = queue->machine->cards[card].group;
			struct ll_queue_amount need = ll_queue_need(queue->machine, job, group);
			if (job->planned.cards >> card & 1)
				add_amount(&arrangement->given[job->tenant * queue->machine->group_count + group],
					   &need, 1);
		}
	}
	return true;
}

void ll_queue_arrange(struct ll_queue *queue, const struct ll_queue_rules *rules, uint64_t now_ns)
{
	struct arrangement arrangement = {.queue = queue, .rules = rules, .now_ns = now_ns};
	size_t waiting = queue->count - queue->running_count;
	if (!waiting)
		return;
	qsort(queue->jobs + queue->running_count, waiting, sizeof(struct ll_queue_job *), by_arrival);
	if (start_arrangement(&arrangement)) {
		for (size_t place = queue->running_count; place < queue->count; place++)
			fill_place(&arrangement, place);
	}
	free(arrangement.tenant_use_ns);
	free(arrangement.user_use_ns);
	free(arrangement.given);
	free(arrangement.is_seen);
	free(arrangement.left);
	place_moved(queue);
	queue->is_stale = true;
}
