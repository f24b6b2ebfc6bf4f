/*
 * spent.h - what each tenant was granted since the begin of each period of budgets, from the accounts.
 */
#ifndef LOADLINE_ACCOUNTS_SPENT_H
#define LOADLINE_ACCOUNTS_SPENT_H

#include <stddef.h>
#include <stdint.h>

struct ll_err;
struct ll_use_database;

/* In the order of the words of the configuration. */
enum ll_spent_period { LL_SPENT_DAY, LL_SPENT_WEEK, LL_SPENT_MONTH };
enum { LL_SPENT_PERIODS = LL_SPENT_MONTH + 1, LL_SPENT_NAME_SIZE = 64 };

struct ll_spent_tenant {
	char name[LL_SPENT_NAME_SIZE];
	double granted_s[LL_SPENT_PERIODS];
};

/* Zeroed, it is empty. */
struct ll_spent {
	int64_t begin_s[LL_SPENT_PERIODS], end_s[LL_SPENT_PERIODS]; /* seconds since 1970 */
	struct ll_spent_tenant *tenants;
	size_t count;
};

/* Sets the begins and ends of the periods that contain now_s, in the time zone of the machine. A week begins on Monday.
 */
void ll_spent_set_periods(struct ll_spent *spent, int64_t now_s);

/* Adds to the tenant. -ENOMEM. */
int ll_spent_add(struct ll_spent *spent, const char *tenant, const double granted_s[LL_SPENT_PERIODS]);

/* Reads the sums of the periods that are set. Hours that began before a period do not count in it. It takes some 0.1 s
 * for a month of many jobs. Errors: ll_use_database_write. */
int ll_spent_read(struct ll_spent *spent, struct ll_use_database *database, struct ll_err *err);

/* Returns the tenant's seconds of a period; 0: it has none. */
double ll_spent_s(const struct ll_spent *spent, const char *tenant, enum ll_spent_period period);

void ll_spent_fini(struct ll_spent *spent);

#endif
