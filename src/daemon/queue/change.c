/* What a job takes of its cards, and what it may have of them: the same at its start and at each change. */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/core/server.h"
#include "daemon/queue/state.h"

enum { WHOLE_PERMILLE = 1000 };
#define GIB ((double)(UINT64_C(1) << 30))

static uint64_t larger_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

void ll_admission_size(const struct ll_admission_machine *described, struct ll_admission_entry *entry)
{
	const struct ll_limits *limits = &entry->limits;
	struct ll_queue_job *job = &entry->queued;
	uint64_t cards = entry->uuid_count ? ll_admission_mask(described, entry) : job->allowed;
	job->compute_permille = limits->compute_permille ? limits->compute_permille : limits->space_permille;
	job->memory_bytes = limits->memory_bytes;
	for (uint32_t card = 0; !limits->memory_bytes && card < described->machine.card_count; card++) {
		const struct ll_queue_card *its = &described->queue_cards[card];
		if (cards >> card & 1 && !described->groups[its->group].is_whole)
			job->memory_bytes = larger_of(job->memory_bytes, its->memory_bytes);
	}
}

bool ll_admission_allows_time(const struct ll_config_tenant *tenant, uint64_t time_ns)
{
	return !tenant || tenant->each_user.max_time_ns == LL_CONFIG_NONE || time_ns <= tenant->each_user.max_time_ns;
}

bool ll_admission_may_last(struct ll_admission *admission, const struct ll_admission_entry *entry, uint64_t time_ns)
{
	struct ll_queue_job wanted = entry->queued;
	wanted.duration_ns = time_ns;
	return ll_admission_is_waiting(entry) || !admission->has_queue ||
	       ll_queue_may_change(&admission->queue, &entry->queued, &wanted, ll_now_ns());
}

/* ---- limits of a job that has its place ---- */

static struct ll_admission_entry *find_place(const struct ll_server *server, const struct ll_job *job)
{
	struct ll_admission *admission = server->admission;
	struct ll_admission_entry *entry =
	    admission && admission->has_queue ? ll_admission_find(admission, job->number) : NULL;
	return entry && entry->job_number == job->number && entry->uuid_count ? entry : NULL;
}

/* With limits that take no less than its place has: what a job does not use now is not given to others. 0 is no limit,
 * which takes all. */
static void raise_limits(const struct ll_admission_machine *described, struct ll_admission_entry *entry,
			 const struct ll_limits *limits)
{
	struct ll_limits *own = &entry->limits;
	if (!limits->memory_bytes || (own->memory_bytes && limits->memory_bytes > own->memory_bytes))
		own->memory_bytes = limits->memory_bytes;
	if (own->compute_permille)
		own->compute_permille = limits->compute_permille
					    ? (uint32_t)larger_of(own->compute_permille, limits->compute_permille)
					    : WHOLE_PERMILLE;
	own->priority = limits->priority;
	ll_admission_size(described, entry);
}

static int explain_change(const struct ll_admission_entry *entry, const struct ll_queue_job *wanted, struct ll_err *err)
{
	const struct ll_queue_job *had = &entry->queued;
	if (wanted->memory_bytes > had->memory_bytes)
		return ll_err_set(
		    err, -EACCES,
		    "memory: %.4g GiB asked for, the job's place on a card has %.4g GiB, and no more is left",
		    (double)wanted->memory_bytes / GIB, (double)had->memory_bytes / GIB);
	return ll_err_set(err, -EACCES,
			  "compute: %g%% asked for, the job's place on a card has %g%%, and no more is left",
			  (double)wanted->compute_permille / 10, (double)had->compute_permille / 10);
}

int ll_admission_check_limits(const struct ll_server *server, const struct ll_job *job, const struct ll_limits *limits,
			      struct ll_err *err)
{
	const struct ll_admission_entry *entry = find_place(server, job);
	if (!entry)
		return 0;
	struct ll_admission *admission = server->admission;
	struct ll_admission_entry wanted = *entry;
	raise_limits(&admission->described, &wanted, limits);
	wanted.queued.allowed = entry->queued.planned.cards;
	bool is_more = wanted.queued.memory_bytes > entry->queued.memory_bytes ||
		       wanted.queued.compute_permille > entry->queued.compute_permille;
	if (is_more && !ll_queue_may_change(&admission->queue, &entry->queued, &wanted.queued, ll_now_ns()))
		return explain_change(entry, &wanted.queued, err);
	bool is_high = is_more || limits->priority != entry->limits.priority;
	return is_high ? ll_admission_check_high_now(admission, &wanted, err) : 0;
}

void ll_admission_set_limits(const struct ll_server *server, const struct ll_job *job)
{
	struct ll_admission_entry *entry = find_place(server, job);
	if (!entry)
		return;
	raise_limits(&server->admission->described, entry, &job->facts.limits);
	ll_queue_changed(&server->admission->queue);
	ll_admission_wake(server->admission);
}
