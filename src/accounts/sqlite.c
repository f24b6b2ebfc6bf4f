#include "accounts/sqlite.h"

#include <errno.h>
#include <stdio.h>

#include "accounts/database.h"
#include "base/err.h"

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
		return -EACCES;
	case SQLITE_INTERRUPT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

int ll_sqlite_fail(sqlite3 *sqlite, int code, const char *path, struct ll_err *err)
{
	if ((code & 0xff) == SQLITE_INTERRUPT)
		return ll_err_set(err, -ETIMEDOUT, "%.200s: reading it takes too long", path);
	const char *what = sqlite ? sqlite3_errmsg(sqlite) : sqlite3_errstr(code);
	return ll_err_set(err, errno_of(code), "%.200s: %.150s", path, what);
}

int ll_sqlite_refuse_newer(const char *path, int64_t version, struct ll_err *err)
{
	ll_err_set(err, -EPROTONOSUPPORT, "%.200s: a newer loadline has written it (schema %lld, this one knows %d)",
		   path, (long long)version, LL_USE_SCHEMA);
	return ll_err_hint(err, "use that loadline, or another file");
}

int ll_sqlite_number(sqlite3 *sqlite, const char *query, int64_t *ret_number)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(sqlite, query, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_number = sqlite3_column_int64(statement, 0);
		code = SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return code;
}

int ll_sqlite_has_column(sqlite3 *sqlite, const char *table, const char *column, bool *ret_has)
{
	char text[120];
	int64_t count = 0;
	snprintf(text, sizeof text, "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", table, column);
	int code = ll_sqlite_number(sqlite, text, &count);
	*ret_has = count > 0;
	return code;
}

int ll_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
	return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

int ll_sqlite_bind_number(sqlite3_stmt *statement, int index, uint64_t number)
{
	return sqlite3_bind_int64(statement, index, number < INT64_MAX ? (int64_t)number : INT64_MAX);
}

int ll_sqlite_run_once(sqlite3_stmt *statement, int bound)
{
	int code = bound == SQLITE_OK ? sqlite3_step(statement) : bound;
	sqlite3_reset(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

void ll_sqlite_copy_text(char *ret_text, size_t size, sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);
	snprintf(ret_text, size, "%s", text ? (const char *)text : "");
}
