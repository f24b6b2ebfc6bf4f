/*
 * sqlite.h - what the files of this folder share about SQLite.
 */
#ifndef LOADLINE_ACCOUNTS_SQLITE_H
#define LOADLINE_ACCOUNTS_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_err;

/* Sets the error of a call that returned that code of SQLite: -ENOSPC (full), -EUCLEAN (damaged, or no database),
 * -EBUSY, -EACCES, -ENOMEM, -ETIMEDOUT (it was interrupted), else -EIO. */
int ll_sqlite_fail(sqlite3 *sqlite, int code, const char *path, struct ll_err *err);

/* Sets the error of a file that a newer loadline has written. */
int ll_sqlite_refuse_newer(const char *path, int64_t version, struct ll_err *err);

/* Runs a query that gives one number. Returns SQLite's code. */
int ll_sqlite_number(sqlite3 *sqlite, const char *query, int64_t *ret_number);

/* Whether the table has a column that came later. Returns SQLite's code. */
int ll_sqlite_has_column(sqlite3 *sqlite, const char *table, const char *column, bool *ret_has);

/* Bind a value to a statement: a text that lives until the statement has run, a number that may be too large for
 * SQLite, which is then its largest. They return SQLite's code. */
int ll_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text);
int ll_sqlite_bind_number(sqlite3_stmt *statement, int index, uint64_t number);

/* Runs a prepared statement once, and makes it ready for the next values. bound: the codes of the values. */
int ll_sqlite_run_once(sqlite3_stmt *statement, int bound);

/* Copies the text of a column; NULL is an empty one. */
void ll_sqlite_copy_text(char *ret_text, size_t size, sqlite3_stmt *statement, int column);

/* Opens a file of accounts for reading alone, and checks that it is one: also of a file of another's making nothing
 * happens but that it is read. until_ns: reading ends then, by CLOCK_MONOTONIC; the caller keeps it until the file is
 * closed; NULL: when all is read. -ENOENT, -EACCES, -EINVAL (no plain file), -EPROTONOSUPPORT, -EUCLEAN, -ETIMEDOUT,
 * -EIO. The caller closes the file in each case. */
int ll_sqlite_open_read(const char *path, const uint64_t *until_ns, sqlite3 **ret_sqlite, struct ll_err *err);

/* ---- of history.h; they return SQLite's code ---- */

struct ll_history_query;
struct ll_past_job;
struct ll_past_status;

/* Makes the table and its indices, if they are not there. */
int ll_history_make(sqlite3 *sqlite);

/* Adds the jobs, then the statuses. */
int ll_history_write(sqlite3 *sqlite, const struct ll_past_job *jobs, size_t count,
		     const struct ll_past_status *statuses, size_t status_count);

/* Makes the query, whose columns only history.c knows. */
int ll_history_prepare(sqlite3 *sqlite, const struct ll_history_query *query, sqlite3_stmt **ret_statement);

/* Of database.h. */
struct ll_use_database;
sqlite3 *ll_use_database_sqlite(struct ll_use_database *database);

#endif
