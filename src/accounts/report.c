#include "accounts/report.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts/database.h"
#include "accounts/sqlite.h"
#include "base/clock.h"
#include "base/err.h"

static const char *const key_columns[LL_USE_BYS] = {
    [LL_USE_BY_TENANT] = "tenant", [LL_USE_BY_USER] = "uid",
    [LL_USE_BY_JOB] = "job",       [LL_USE_BY_PROJECT] = "project",
    [LL_USE_BY_CARD] = "card",     [LL_USE_BY_DAY] = "strftime('%Y-%m-%d', hour, 'unixepoch', 'localtime')",
};

static const char sums_text[] =
    "SELECT %s AS key, total(granted_ns) / 1e9, total(used_ns) / 1e9,"
    "total(idle_held_ns) / 1e9, total(memory_byte_s), sum(joules), sum(lent_ns) / 1e9,"
    "sum(borrowed_ns) / 1e9, %s, %s FROM use WHERE hour >= ?1 AND hour < ?2 AND (?3 OR uid = ?4)"
    "GROUP BY key";

/* A view has no pages. */
static const char is_table[] =
    "SELECT count(*) FROM sqlite_master WHERE name = 'use' AND type = 'table' AND rootpage > 0";

/* ---- sums ---- */

static double add_known(double one, double other)
{
	return isnan(one) ? other : isnan(other) ? one : one + other;
}

int ll_use_report_add(struct ll_use_report *report, const struct ll_use_sum *sum)
{
	if (report->count == report->room) {
		size_t room = report->room ? 2 * report->room : 16;
		struct ll_use_sum *sums = reallocarray(report->sums, room, sizeof *sums);
		if (!sums)
			return -ENOMEM;
		report->sums = sums;
		report->room = room;
	}
	report->sums[report->count++] = *sum;
	return 0;
}

void ll_use_sum_add(struct ll_use_sum *sum, const struct ll_use_sum *other)
{
	sum->granted_s += other->granted_s;
	sum->used_s += other->used_s;
	sum->idle_held_s += other->idle_held_s;
	sum->memory_byte_s += other->memory_byte_s;
	sum->joules = add_known(sum->joules, other->joules);
	sum->lent_s = add_known(sum->lent_s, other->lent_s);
	sum->borrowed_s = add_known(sum->borrowed_s, other->borrowed_s);
	sum->borrowed_byte_s = add_known(sum->borrowed_byte_s, other->borrowed_byte_s);
}

static int compare_use(const void *one, const void *other)
{
	const struct ll_use_sum *a = one, *b = other;
	if (a->used_s != b->used_s)
		return a->used_s < b->used_s ? 1 : -1;
	return strcmp(a->key, b->key);
}

static int compare_keys(const void *one, const void *other)
{
	return strcmp(((const struct ll_use_sum *)one)->key, ((const struct ll_use_sum *)other)->key);
}

void ll_use_report_sort(struct ll_use_report *report, enum ll_use_by by)
{
	size_t count = 0;
	if (!report->count)
		return;
	qsort(report->sums, report->count, sizeof *report->sums, compare_keys);
	for (size_t i = 0; i < report->count; i++) {
		const struct ll_use_sum *other = &report->sums[i];
		if (count && strcmp(report->sums[count - 1].key, other->key) == 0)
			ll_use_sum_add(&report->sums[count - 1], other);
		else
			report->sums[count++] = *other;
	}
	report->count = count;
	if (by != LL_USE_BY_DAY)
		qsort(report->sums, report->count, sizeof *report->sums, compare_use);
}

void ll_use_report_fini(struct ll_use_report *report)
{
	free(report->sums);
	*report = (struct ll_use_report){0};
}

/* ---- prices ---- */

bool ll_use_prices_are_set(const struct ll_use_prices *prices)
{
	return prices->gpu_hour > 0 || prices->gib_hour > 0;
}

double ll_use_cost(const struct ll_use_prices *prices, const struct ll_use_sum *sum)
{
	const double s_per_h = 3600, bytes_per_gib = 1073741824;
	if (!ll_use_prices_are_set(prices))
		return NAN;
	return sum->granted_s / s_per_h * prices->gpu_hour +
	       sum->memory_byte_s / bytes_per_gib / s_per_h * prices->gib_hour;
}

/* ---- a file ---- */

static int is_over(void *data)
{
	const uint64_t *until_ns = data;
	return ll_now_ns() >= *until_ns;
}

/* What a schema of another's making could do beyond being read is switched off. Even without it pages that refer to
 * each other can make a small file endless, so the time is bounded. */
static void confine(sqlite3 *sqlite, const uint64_t *until_ns)
{
	enum { STEPS = 1000, LONGEST_BYTES = 1 << 20 };
	sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(sqlite, SQLITE_LIMIT_LENGTH, LONGEST_BYTES);
	if (until_ns)
		sqlite3_progress_handler(sqlite, STEPS, is_over, (void *)(uintptr_t)until_ns);
}

/* A copy of a file in a folder that may not be written cannot have the files of SQLite's log. If there is no log, the
 * file alone has all. */
static int open_file(const char *path, const uint64_t *until_ns, sqlite3 **ret_sqlite)
{
	char name[3 * LL_USE_PATH_SIZE];
	snprintf(name, sizeof name, "%s-wal", path);
	int64_t ignored;
	int code = sqlite3_open_v2(path, ret_sqlite, SQLITE_OPEN_READONLY, NULL);
	if (code == SQLITE_OK) {
		sqlite3_busy_timeout(*ret_sqlite, 5000); /* ms */
		confine(*ret_sqlite, until_ns);
		code = ll_sqlite_number(*ret_sqlite, "SELECT count(*) FROM sqlite_master", &ignored);
	}
	if ((code & 0xff) != SQLITE_CANTOPEN || access(name, F_OK) == 0 || strpbrk(path, "?#%"))
		return code;
	sqlite3_close(*ret_sqlite);
	snprintf(name, sizeof name, "file:%s?immutable=1", path);
	code = sqlite3_open_v2(name, ret_sqlite, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
	if (code == SQLITE_OK)
		confine(*ret_sqlite, until_ns);
	return code;
}

/* A pipe beside the file, under the name of one of SQLite's own files, would be waited for too. */
static int check_is_file(const char *path, struct ll_err *err)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
	char name[LL_USE_PATH_SIZE + 16];
	struct stat st;
	if (access(path, R_OK))
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		if ((size_t)snprintf(name, sizeof name, "%s%s", path, endings[i]) >= sizeof name)
			return ll_err_set(err, -ENAMETOOLONG, "%.80s...: the name is too long", path);
		if (stat(name, &st) == 0 && !S_ISREG(st.st_mode))
			return ll_err_set(err, -EINVAL, "%.200s: not a file", name);
	}
	return 0;
}

static int check_kind(sqlite3 *sqlite, const char *path, struct ll_err *err)
{
	int64_t application = 0, version = 0, tables = 0;
	int code = ll_sqlite_number(sqlite, "PRAGMA application_id", &application);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, "PRAGMA user_version", &version);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, is_table, &tables);
	if (code != SQLITE_OK)
		return ll_sqlite_fail(sqlite, code, path, err);
	if (application == LL_USE_APPLICATION_ID && version > LL_USE_SCHEMA)
		return ll_sqlite_refuse_newer(path, version, err);
	if (application != LL_USE_APPLICATION_ID || !tables)
		return ll_err_set(err, -EUCLEAN, "%.200s: not a database of accounts", path);
	return 0;
}

static double number_or_nan(sqlite3_stmt *statement, int column)
{
	return sqlite3_column_type(statement, column) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, column);
}

static int add_row(struct ll_use_report *report, sqlite3_stmt *statement)
{
	const unsigned char *key = sqlite3_column_text(statement, 0);
	struct ll_use_sum sum = {.granted_s = sqlite3_column_double(statement, 1),
				 .used_s = sqlite3_column_double(statement, 2),
				 .idle_held_s = sqlite3_column_double(statement, 3),
				 .memory_byte_s = sqlite3_column_double(statement, 4),
				 .joules = number_or_nan(statement, 5),
				 .lent_s = number_or_nan(statement, 6),
				 .borrowed_s = number_or_nan(statement, 7),
				 .borrowed_byte_s = number_or_nan(statement, 9)};
	int64_t number = sqlite3_column_int64(statement, 8);
	sum.number = number > 0 ? (uint64_t)number : 0;
	snprintf(sum.key, sizeof sum.key, "%s", key ? (const char *)key : "");
	return ll_use_report_add(report, &sum);
}

static int add_rows(struct ll_use_report *report, sqlite3 *sqlite, const char *path, const struct ll_use_query *query,
		    struct ll_err *err)
{
	char text[sizeof sums_text + 80];
	sqlite3_stmt *statement = NULL;
	bool has_numbers = false, has_borrowed = false;
	int rc = 0, code = ll_sqlite_has_column(sqlite, "use", "number", &has_numbers);
	if (code == SQLITE_OK)
		code = ll_sqlite_has_column(sqlite, "use", "borrowed_byte_s", &has_borrowed);
	snprintf(text, sizeof text, sums_text, key_columns[query->by],
		 has_numbers && query->by == LL_USE_BY_JOB ? "max(number)" : "0",
		 has_borrowed ? "sum(borrowed_byte_s)" : "NULL");
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, text, -1, &statement, NULL);
	if (code == SQLITE_OK) {
		code = sqlite3_bind_int64(statement, 1, query->since_s);
		code |= sqlite3_bind_int64(statement, 2, query->until_s);
		code |= sqlite3_bind_int(statement, 3, !query->is_of_one_user);
		code |= sqlite3_bind_int64(statement, 4, query->uid);
	}
	while (!rc && code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		rc = add_row(report, statement);
		code = SQLITE_OK;
	}
	if (rc)
		ll_err_set(err, rc, "out of memory");
	else if (code != SQLITE_DONE)
		rc = ll_sqlite_fail(sqlite, code, path, err);
	sqlite3_finalize(statement);
	return rc;
}

int ll_sqlite_open_read(const char *path, const uint64_t *until_ns, sqlite3 **ret_sqlite, struct ll_err *err)
{
	int rc = check_is_file(path, err);
	if (rc)
		return rc;
	int code = open_file(path, until_ns, ret_sqlite);
	return code == SQLITE_OK ? check_kind(*ret_sqlite, path, err) : ll_sqlite_fail(*ret_sqlite, code, path, err);
}

int ll_use_report_read(struct ll_use_report *report, const char *path, const struct ll_use_query *query,
		       struct ll_err *err)
{
	sqlite3 *sqlite = NULL;
	int rc = ll_sqlite_open_read(path, query->until_ns ? &query->until_ns : NULL, &sqlite, err);
	if (!rc)
		rc = add_rows(report, sqlite, path, query, err);
	sqlite3_close(sqlite);
	return rc;
}
