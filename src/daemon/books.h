/*
 * books.h - who there is: tenants, their jobs, the jobs' processes.
 *
 * A tenant is a name of one user, or a single job without one. A job is what one `run` started. The books are plain
 * data: no clock, no sockets. The descriptors in them are closed when their row goes.
 */
#ifndef LOADLINE_DAEMON_BOOKS_H
#define LOADLINE_DAEMON_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pages.h"
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
	uint64_t number; /* grows: a job that comes later has a higher one */
	struct ll_job_facts facts;
	struct ll_tenant *tenant;
	struct ll_job_process *processes;
	int lifeline_fd; /* readable end of a pipe whose other end the job's processes have; -1: none */
	struct ll_job_pages pages;
	struct ll_job_claims *claims; /* claims.h */
	void *keeper;                 /* of the server: what watches the job; NULL: nothing yet */
};

struct ll_books {
	struct ll_tenant *tenants; /* in the order in which they came */
	struct ll_job *jobs;       /* in the order of their numbers */
	uint64_t last_job, last_tenant;
	uint32_t tenant_count, job_count, process_count;
};

/*
 * Adds a job, and its tenant if there is none of that name and user. It has no processes yet. -EEXIST: there is a job
 * with this token. -ENOMEM.
 */
int ll_books_add(struct ll_books *books, const struct ll_job_facts *facts, struct ll_job **ret_job);

/* Adds a process; the descriptor becomes the books'. -ENOMEM: it stays the caller's. */
int ll_books_add_process(struct ll_books *books, struct ll_job *job, int fd, uint32_t role);

struct ll_job *ll_books_find(const struct ll_books *books, const uint64_t token[2]);

/* By token[0] alone, which the job's processes know. */
struct ll_job *ll_books_find_id(const struct ll_books *books, uint64_t id);

/* Removes the job with its processes, and its tenant if it was the last job. Closes their descriptors. */
void ll_books_remove(struct ll_books *books, struct ll_job *job);

/* The first job with a higher number. NULL: there is none. */
struct ll_job *ll_books_after(const struct ll_books *books, uint64_t number);
struct ll_tenant *ll_books_tenant_after(const struct ll_books *books, uint64_t number);

/* The limits of a tenant are those of its first job. */
const struct ll_limits *ll_books_tenant_limits(const struct ll_books *books, const struct ll_tenant *tenant);

void ll_books_fini(struct ll_books *books);

#endif
