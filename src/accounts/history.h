/*
 * history.h - the jobs that have ended, in the database of the accounts: what each asked for, what it had, and how it
 * ended. database.h writes them with a batch; here they are read.
 *
 * A job that runs is there too, without an end, and no query finds it. If its end is never told, because loadlined or
 * the machine ended before, a later loadlined ends it (ll_use_database_end_former).
 *
 * They are in a table of their own, `job`. An older loadline leaves the table alone, and a file of it gets the table
 * when it is opened. Each way to choose has an index, so that a million jobs are no hindrance.
 */
#ifndef LOADLINE_ACCOUNTS_HISTORY_H
#define LOADLINE_ACCOUNTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_err;

enum { LL_USE_JOB_SIZE = 28, LL_PAST_NAME_SIZE = 64, LL_PAST_CARDS_SIZE = 96, LL_PAST_MOST = 10000 };

/* How a job ended. The numbers are in the database. */
enum ll_past_how {
	LL_PAST_ENDED = 1, /* nobody told how */
	LL_PAST_DONE,      /* with status 0 */
	LL_PAST_FAILED,    /* with another one */
	LL_PAST_KILLED,    /* by a signal */
	LL_PAST_TIME,      /* its time was over */
	LL_PAST_CANCELED,  /* by its user or an operator, while it waited or ran */
	LL_PAST_MEMORY,    /* with a status other than 0, soon after it was refused memory beyond its limit */
	LL_PAST_STOPPED,   /* by a rule of the configuration; why says it */
	LL_PAST_NOT_RUN,   /* it left the queue without a place; why says it */
	LL_PAST_REQUEUED,  /* it was stopped, and is in the queue again under its number; why says it */
};

/* Moments are seconds since 1970. */
struct ll_past_job {
	uint64_t number;
	int64_t came_s, began_s, ended_s;                 /* began_s 0: it had no place; ended_s 0: it runs */
	uint64_t memory_bytes, compute_permille, time_ns; /* asked for, on each card; 0: it did not say */
	uint64_t used_ns;                                 /* GPU time of all its cards */
	double memory_byte_s;
	uint64_t borrowed_ns, slept_ns; /* borrowed_...: while it borrowed; slept_ns: after recalls */
	uint64_t lendable_ns; /* how long it waited although a loan would have started it (reclaim: observe) */
	double borrowed_byte_s;
	uint32_t uid, by_uid;       /* by_uid: who canceled it; UINT32_MAX: nobody */
	uint32_t how, status;       /* status: as waitpid() gives it, if how says one */
	uint32_t card_count, class; /* asked for; class: enum ll_limit_class */
	uint32_t recalls;           /* of its memory, which was lent */
	char tenant[LL_PAST_NAME_SIZE], command[LL_PAST_NAME_SIZE], name[LL_PAST_NAME_SIZE], project[LL_PAST_NAME_SIZE];
	char cards[LL_PAST_CARDS_SIZE]; /* "0,1", a slice "7:0"; perhaps cut */
	char why[LL_PAST_CARDS_SIZE];   /* a phrase; empty: none */
	char job[LL_USE_JOB_SIZE];      /* as in struct ll_use_key; empty: not known. It is not read */
};

/* The status of a job that ended is known after all. */
struct ll_past_status {
	uint64_t number;
	uint32_t uid, status;
};

struct ll_history_query {
	int64_t since_s, until_s; /* of their ends */
	bool has_uid;
	uint32_t uid;
	const char *tenant; /* NULL: any */
	uint32_t how;       /* 0: any */
	size_t most;        /* the last ones; at most LL_PAST_MOST */
};

/* The last ones that ended first. */
struct ll_history {
	struct ll_past_job *jobs;
	size_t count;
	bool has_more; /* than query.most */
};

/* Whether a status is one of how, and which: DONE, FAILED or KILLED. */
enum ll_past_how ll_past_how_of(uint32_t status);

/* Opens the file for reading alone. The caller frees the jobs. -ENOENT, -EACCES, -EPROTONOSUPPORT, -EUCLEAN, -EIO,
 * -ENOMEM. */
int ll_history_read(const char *path, const struct ll_history_query *query, struct ll_history *ret_history,
		    struct ll_err *err);
void ll_history_fini(struct ll_history *history);

#endif
