/*
 * report.h - sums of the accounts of one or several machines, by tenant, user, job, project, card or day.
 */
#ifndef LOADLINE_ACCOUNTS_REPORT_H
#define LOADLINE_ACCOUNTS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_err;

enum ll_use_by { LL_USE_BY_TENANT, LL_USE_BY_USER, LL_USE_BY_JOB, LL_USE_BY_PROJECT, LL_USE_BY_CARD, LL_USE_BY_DAY };
enum { LL_USE_BYS = LL_USE_BY_DAY + 1, LL_USE_SUM_KEY_SIZE = 96 };

struct ll_use_query {
	int64_t since_s, until_s; /* hours that begin at since_s or later, and before until_s; since 1970 */
	enum ll_use_by by;
	bool is_of_one_user;
	uint32_t uid;      /* that user */
	uint64_t until_ns; /* reading ends then, by CLOCK_MONOTONIC; 0: when it has all */
};

/* A sum in seconds of one card. NAN: nothing measured it. */
struct ll_use_sum {
	char key[LL_USE_SUM_KEY_SIZE]; /* a user as a number; a day as YYYY-MM-DD of this machine's time zone */
	double granted_s, used_s, idle_held_s;
	double memory_byte_s;
	double joules, lent_s, borrowed_s, borrowed_byte_s;
	uint64_t number; /* by job: as `queue` and `history` have it; 0: not known */
};

/* Adds the amounts of the other one. NAN and a number give the number. */
void ll_use_sum_add(struct ll_use_sum *sum, const struct ll_use_sum *other);

/* What a granted GPU hour and a GiB hour of memory cost; 0: nothing. */
struct ll_use_prices {
	double gpu_hour, gib_hour;
	char currency[64]; /* empty: not said */
};

bool ll_use_prices_are_set(const struct ll_use_prices *prices);

/* The cost of a sum. NAN: there are no prices. */
double ll_use_cost(const struct ll_use_prices *prices, const struct ll_use_sum *sum);

struct ll_use_report {
	struct ll_use_sum *sums;
	size_t count, room;
};

/* Adds a sum. ll_use_report_sort makes one of those of each key. -ENOMEM. */
int ll_use_report_add(struct ll_use_report *report, const struct ll_use_sum *sum);

/* Adds the sums of a file. It is opened for reading alone; loadlined may write meanwhile. Whoever made the file, it is
 * no more than a table of numbers and names: what is no file is not opened, no view is read, and until_ns bounds the
 * time. -ENOENT, -EACCES, -EPROTONOSUPPORT, -EUCLEAN, -EINVAL: no plain file; -ETIMEDOUT, -EIO, -ENOMEM. */
int ll_use_report_read(struct ll_use_report *report, const char *path, const struct ll_use_query *query,
		       struct ll_err *err);

/* Makes one sum of those of each key, where NAN and a number give the number. Then sorts: days by time, others by used
 * time, the largest first. */
void ll_use_report_sort(struct ll_use_report *report, enum ll_use_by by);

void ll_use_report_fini(struct ll_use_report *report);

#endif
