#include "daemon/jobs/books.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ll_tenant *find_tenant(const struct ll_books *books, const struct ll_job_facts *facts)
{
	if (!(facts->flags & LL_JOB_NAMED))
		return NULL;
	for (struct ll_tenant *tenant = books->tenants; tenant; tenant = tenant->next) {
		if (tenant->is_named && tenant->uid == facts->uid && strcmp(tenant->name, facts->tenant) == 0)
			return tenant;
	}
	return NULL;
}

static struct ll_tenant *add_tenant(struct ll_books *books, const struct ll_job_facts *facts)
{
	struct ll_tenant *tenant = calloc(1, sizeof *tenant);
	if (!tenant)
		return NULL;
	tenant->number = ++books->last_tenant;
	memcpy(tenant->name, facts->tenant, sizeof tenant->name);
	tenant->uid = facts->uid;
	tenant->is_named = facts->flags & LL_JOB_NAMED;
	struct ll_tenant **at = &books->tenants;
	while (*at)
		at = &(*at)->next;
	*at = tenant;
	books->tenant_count++;
	return tenant;
}

struct ll_job *ll_books_find(const struct ll_books *books, const uint64_t token[2])
{
	struct ll_job *job = books->jobs;
	while (job && (job->facts.token[0] != token[0] || job->facts.token[1] != token[1]))
		job = job->next;
	return job;
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
	if (ll_books_find(books, facts->token))
		return -EEXIST;
	struct ll_job *job = calloc(1, sizeof *job);
	struct ll_tenant *tenant = job ? find_tenant(books, facts) : NULL;
	if (job && !tenant)
		tenant = add_tenant(books, facts);
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
	job->lifeline_fd = -1;
	job->pages = (struct ll_job_pages){.page_fd = -1, .orders_fd = -1};
	job->next = *at;
	*at = job;
	tenant->jobs++;
	books->job_count++;
	*ret_job = job;
	return 0;
}

int ll_books_add_process(struct ll_books *books, struct ll_job *job, int fd, uint32_t role)
{
	struct ll_job_process *process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->fd = fd;
	process->role = role;
	process->next = job->processes;
	job->processes = process;
	job->tenant->processes++;
	books->process_count++;
	return 0;
}

static void remove_processes(struct ll_books *books, struct ll_job *job)
{
	while (job->processes) {
		struct ll_job_process *process = job->processes;
		job->processes = process->next;
		job->tenant->processes--;
		books->process_count--;
		close(process->fd);
		free(process);
	}
}

static void remove_tenant(struct ll_books *books, struct ll_tenant *tenant)
{
	struct ll_tenant **at = &books->tenants;
	while (*at != tenant)
		at = &(*at)->next;
	*at = tenant->next;
	books->tenant_count--;
	free(tenant);
}

void ll_books_remove(struct ll_books *books, struct ll_job *job)
{
	struct ll_job **at = &books->jobs;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	remove_processes(books, job);
	if (job->lifeline_fd >= 0)
		close(job->lifeline_fd);
	ll_pages_close(&job->pages);
	if (--job->tenant->jobs == 0)
		remove_tenant(books, job->tenant);
	books->job_count--;
	free(job);
}

struct ll_job *ll_books_after(const struct ll_books *books, uint64_t number)
{
	struct ll_job *job = books->jobs;
	while (job && job->number <= number)
		job = job->next;
	return job;
}

struct ll_tenant *ll_books_tenant_after(const struct ll_books *books, uint64_t number)
{
	struct ll_tenant *tenant = books->tenants;
	while (tenant && tenant->number <= number)
		tenant = tenant->next;
	return tenant;
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
