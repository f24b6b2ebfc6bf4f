#include "accounts/spent.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accounts/batch.h"
#include "accounts/sqlite.h"
#include "base/err.h"

_Static_assert((int)LL_SPENT_NAME_SIZE == (int)LL_USE_TENANT_SIZE, "a tenant has its whole name");

static const char query[] =
    "SELECT tenant, total(granted_ns * (hour >= ?1)) / 1e9, total(granted_ns * (hour >= ?2)) / 1e9,"
    "total(granted_ns * (hour >= ?3)) / 1e9 FROM use WHERE hour >= min(?1, ?2, ?3) GROUP BY tenant";

void ll_spent_set_periods(struct ll_spent *spent, int64_t now_s)
{
	enum { DAYS_OF_WEEK = 7 };
	time_t now = now_s;
	struct tm today;
	localtime_r(&now, &today);
	today.tm_sec = today.tm_min = today.tm_hour = 0;
	for (int period = LL_SPENT_DAY; period < LL_SPENT_PERIODS; period++) {
		struct tm begin = today;
		if (period == LL_SPENT_WEEK)
			begin.tm_mday -= (today.tm_wday + DAYS_OF_WEEK - 1) % DAYS_OF_WEEK;
		else if (period == LL_SPENT_MONTH)
			begin.tm_mday = 1;
		struct tm end = begin;
		end.tm_mday += period == LL_SPENT_DAY ? 1 : period == LL_SPENT_WEEK ? DAYS_OF_WEEK : 0;
		end.tm_mon += period == LL_SPENT_MONTH;
		begin.tm_isdst = end.tm_isdst = -1;
		spent->begin_s[period] = mktime(&begin);
		spent->end_s[period] = mktime(&end);
	}
}

int ll_spent_add(struct ll_spent *spent, const char *tenant, const double granted_s[LL_SPENT_PERIODS])
{
	size_t at = 0;
	while (at < spent->count && strcmp(spent->tenants[at].name, tenant) != 0)
		at++;
	if (at == spent->count) {
		struct ll_spent_tenant *tenants = reallocarray(spent->tenants, at + 1, sizeof *tenants);
		if (!tenants)
			return -ENOMEM;
		spent->tenants = tenants;
		tenants[spent->count++] = (struct ll_spent_tenant){0};
		snprintf(tenants[at].name, sizeof tenants[at].name, "%s", tenant);
	}
	for (int period = 0; period < LL_SPENT_PERIODS; period++)
		spent->tenants[at].granted_s[period] += granted_s[period];
	return 0;
}

static int add_row(struct ll_spent *spent, sqlite3_stmt *statement)
{
	const unsigned char *tenant = sqlite3_column_text(statement, 0);
	double granted_s[LL_SPENT_PERIODS];
	for (int period = 0; period < LL_SPENT_PERIODS; period++)
		granted_s[period] = sqlite3_column_double(statement, 1 + period);
	return tenant ? ll_spent_add(spent, (const char *)tenant, granted_s) : 0;
}

int ll_spent_read(struct ll_spent *spent, struct ll_use_database *database, struct ll_err *err)
{
	sqlite3 *sqlite = ll_use_database_sqlite(database);
	sqlite3_stmt *statement = NULL;
	int rc = 0, code = sqlite3_prepare_v2(sqlite, query, -1, &statement, NULL);
	for (int period = 0; period < LL_SPENT_PERIODS && code == SQLITE_OK; period++)
		code = sqlite3_bind_int64(statement, 1 + period, spent->begin_s[period]);
	while (!rc && code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		rc = add_row(spent, statement);
		code = SQLITE_OK;
	}
	if (rc)
		ll_err_set(err, rc, "out of memory");
	else if (code != SQLITE_DONE)
		rc = ll_sqlite_fail(sqlite, code, sqlite3_db_filename(sqlite, "main"), err);
	sqlite3_finalize(statement);
	return rc;
}

double ll_spent_s(const struct ll_spent *spent, const char *tenant, enum ll_spent_period period)
{
	for (size_t i = 0; i < spent->count; i++) {
		if (strcmp(spent->tenants[i].name, tenant) == 0)
			return spent->tenants[i].granted_s[period];
	}
	return 0;
}

void ll_spent_fini(struct ll_spent *spent)
{
	free(spent->tenants);
	*spent = (struct ll_spent){0};
}
