#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The user's tenant of that name, or a new one. */
static struct ll_tenant *get_tenant(struct ll_books *books, const struct ll_job_facts *facts)
{
	bool is_named = facts->flags & LL_JOB_NAMED;
	struct ll_tenant **at = &books->tenants;
	for (; *at; at = &(*at)->next) {
		if (is_named && (*at)->is_named && (*at)->uid == facts->uid && strcmp((*at)->name, facts->tenant) == 0)
			return *at;
	}
	struct ll_tenant *tenant = calloc(1, sizeof *tenant);
	if (!tenant)
		return NULL;
	tenant->number = ++books->last_tenant;
	memcpy(tenant->name, facts->tenant, sizeof tenant->name);
	tenant->uid = facts->uid;
	tenant->is_named = is_named;
	*at = tenant;
	books->tenant_count++;
	return tenant;
}

struct ll_job *ll_books_find_id(const struct ll_books *books, uint64_t id)
{
	struct ll_job *job = books->jobs;
	while (job && job->facts.token[0] != id)
		job = job->next;
	return job;
}

/* The place of the number in the list, or of the job that has it. */
static struct ll_job **place_of(struct ll_books *books, uint64_t number)
{
	struct ll_job **at = &books->jobs;
	while (*at && (*at)->number < number)
		at = &(*at)->next;
	return at;
}

int ll_books_add(struct ll_books *books, const struct ll_job_facts *facts, uint64_t number, struct ll_job **ret_job)
{
	if (ll_books_find_id(books, facts->token[0]))
		return -EEXIST;
	struct ll_job *job = calloc(1, sizeof *job);
	struct ll_tenant *tenant = job ? get_tenant(books, facts) : NULL;
	if (!tenant) {
		free(job);
		return -ENOMEM;
	}
	struct ll_job **at = place_of(books, number);
	if (!number || (*at && (*at)->number == number))
		at = place_of(books, number = books->last_job + 1);
	job->number = number;
	books->last_job = number > books->last_job ? number : books->last_job;
	job->facts = *facts;
	job->tenant = tenant;
	job->process_fd = job->lifeline_fd = -1;
	job->pages = (struct ll_job_pages){.page_fd = -1, .orders_fd = -1};
	job->next = *at;
	*at = job;
	tenant->jobs++;
	books->job_count++;
	*ret_job = job;
	return 0;
}

void ll_books_remove(struct ll_books *books, struct ll_job *job)
{
	struct ll_job **at = &books->jobs;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (job->process_fd >= 0)
		close(job->process_fd);
	if (job->lifeline_fd >= 0)
		close(job->lifeline_fd);
	ll_pages_close(&job->pages);
	if (--job->tenant->jobs == 0) {
		struct ll_tenant **of = &books->tenants;
		while (*of != job->tenant)
			of = &(*of)->next;
		*of = job->tenant->next;
		books->tenant_count--;
		free(job->tenant);
	}
	books->job_count--;
	free(job);
}

struct ll_job *ll_books_find_number(const struct ll_books *books, uint64_t number)
{
	struct ll_job *job = books->jobs;
	while (job && job->number != number)
		job = job->next;
	return job;
}

struct ll_job *ll_books_after(const struct ll_books *books, uint64_t number)
{
	struct ll_job *job = books->jobs;
	while (job && job->number <= number)
		job = job->next;
	return job;
}

const struct ll_limits *ll_books_tenant_limits(const struct ll_books *books, const struct ll_tenant *tenant)
{
	const struct ll_job *job = books->jobs;
	while (job->tenant != tenant)
		job = job->next;
	return &job->facts.limits;
}

void ll_books_fini(struct ll_books *books)
{
	while (books->jobs)
		ll_books_remove(books, books->jobs);
}
