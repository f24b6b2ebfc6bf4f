/*
 * sqlite.h - what the files of this folder share about SQLite.
 */
#ifndef LOADLINE_ACCOUNTS_SQLITE_H
#define LOADLINE_ACCOUNTS_SQLITE_H

#include <sqlite3.h>
#include <stdint.h>

struct ll_err;

/* Sets the error of a call that returned that code of SQLite: -ENOSPC (full), -EUCLEAN (damaged, or no database),
 * -EBUSY, -EACCES, -ENOMEM, -ETIMEDOUT (it was interrupted), else -EIO. */
int ll_sqlite_fail(sqlite3 *sqlite, int code, const char *path, struct ll_err *err);

/* Sets the error of a file that a newer loadline has written. */
int ll_sqlite_refuse_newer(const char *path, int64_t version, struct ll_err *err);

/* Runs a query that gives one number. Returns SQLite's code. */
int ll_sqlite_number(sqlite3 *sqlite, const char *query, int64_t *ret_number);

/* Of database.h. */
struct ll_use_database;
sqlite3 *ll_use_database_sqlite(struct ll_use_database *database);

#endif
