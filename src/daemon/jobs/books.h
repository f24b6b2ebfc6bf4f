/*
 * books.h - the list of tenants, their jobs, and the jobs' processes.
 *
 * A tenant is a name of one user, or a single job without a name. A job is what one `run` started. The books are plain
 * data, without clock or sockets. They close a row's descriptors when they remove the row.
 */
#ifndef LOADLINE_DAEMON_JOBS_BOOKS_H
#define LOADLINE_DAEMON_JOBS_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/jobs/job_stop.h"
#include "daemon/jobs/pages.h"
#include "protocol/message.h"

struct ll_tenant {
	struct ll_tenant *next;
	uint64_t number;
	char name[LL_NAME_SIZE];
	uint32_t uid;
	bool is_named;
	uint32_t jobs, processes;
};

struct ll_job_process {
	struct ll_job_process *next;
	int fd; /* process.h */
	uint32_t role;
};

struct ll_job {
	struct ll_job *next;
	uint64_t number; /* by which everybody knows it; one that was in the queue has its number there */
	struct ll_job_facts facts;
	struct ll_tenant *tenant;
	char department_tenant[LL_NAME_SIZE]; /* the configured tenant (policy/policy_of_jobs.h); empty: none */
	char project[LL_NAME_SIZE];           /* for the accounts; empty: none */
	char name[LL_NAME_SIZE];              /* that its user gave it; empty: none */
	int64_t began_s;                      /* since 1970; when this loadlined learnt of it */
	uint64_t refused_ns;                  /* when it was last refused memory beyond its limit; 0: never */
	uint32_t status;                      /* of its first process, as waitpid() gives it */
	bool has_status;
	uint64_t said; /* enum ll_set_field: the limits that the user gave, by `run` or `set` */
	struct ll_job_process *processes;
	int lifeline_fd; /* readable end of a pipe whose other end the job's processes have; -1: none */
	struct ll_job_pages pages;
	struct ll_job_claims *claims;      /* claims.h */
	unsigned place_tries;              /* requests to the keeper for it (job_group.h) */
	bool has_group;                    /* control group of its own (job_group.h) */
	bool is_group_lost;                /* the keeper could not signal it */
	struct ll_job_stop stop;           /* of a job without a place in the queue; why NULL: it is not stopped */
	uint64_t idle_told_ns, watched_ns; /* job_watch.c, low_use.c; 0: not yet */
	void *upkeep;                      /* job_upkeep.c owns it: it watches the job; NULL: nothing yet */
};

struct ll_books {
	struct ll_tenant *tenants; /* in the order of their creation */
	struct ll_job *jobs;       /* in the order of their numbers */
	uint64_t last_job, last_tenant;
	uint32_t tenant_count, job_count, process_count;
};

/*
 * Adds a job without processes. Adds its tenant if that user has none of that name. number: its number; 0, or one that
 * a job has: the next one. -EEXIST: there is a job with this token. -ENOMEM.
 */
int ll_books_add(struct ll_books *books, const struct ll_job_facts *facts, uint64_t number, struct ll_job **ret_job);

/* Adds a process. The books own the descriptor. -ENOMEM: the caller keeps it. */
int ll_books_add_process(struct ll_books *books, struct ll_job *job, int fd, uint32_t role);

struct ll_job *ll_books_find(const struct ll_books *books, const uint64_t token[2]);

/* Finds a job by token[0] alone, which the job's processes know. */
struct ll_job *ll_books_find_id(const struct ll_books *books, uint64_t id);

/* Removes the job with its processes, and closes their descriptors. Removes the tenant if this was its last job. */
void ll_books_remove(struct ll_books *books, struct ll_job *job);

/* Returns the first job with a higher number; NULL: there is none. */
struct ll_job *ll_books_after(const struct ll_books *books, uint64_t number);
struct ll_tenant *ll_books_tenant_after(const struct ll_books *books, uint64_t number);

/* The limits of a tenant are those of its first job. */
const struct ll_limits *ll_books_tenant_limits(const struct ll_books *books, const struct ll_tenant *tenant);

void ll_books_fini(struct ll_books *books);

#endif
