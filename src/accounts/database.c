#include "accounts/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "accounts/sqlite.h"
#include "base/clock.h"
#include "base/err.h"

enum { MOST_PAGES = 1073741823 }; /* SQLite's own default for max_page_count */

struct ll_use_database {
	sqlite3 *sqlite;
};

static const char schema[] = "CREATE TABLE use ("
			     "hour INTEGER NOT NULL, tenant TEXT NOT NULL, uid INTEGER NOT NULL, job TEXT NOT NULL,"
			     "project TEXT NOT NULL, card TEXT NOT NULL,"
			     "granted_ns INTEGER NOT NULL, used_ns INTEGER NOT NULL, idle_held_ns INTEGER NOT NULL,"
			     "memory_byte_s REAL NOT NULL, joules REAL, lent_ns INTEGER, borrowed_ns INTEGER,"
			     "number INTEGER, borrowed_byte_s REAL,"
			     "PRIMARY KEY (hour, uid, job, card, tenant, project)) WITHOUT ROWID;"
			     "CREATE TABLE counter ("
			     "job TEXT NOT NULL, card TEXT NOT NULL, used_ns INTEGER NOT NULL,"
			     "memory_unit_ms INTEGER NOT NULL, since_ns INTEGER NOT NULL, at_ns INTEGER NOT NULL,"
			     "stored INTEGER NOT NULL, borrowed_ns INTEGER, borrowed_unit_ms INTEGER,"
			     "PRIMARY KEY (job, card)) WITHOUT ROWID;";

static const char add_use[] =
    "INSERT INTO use (hour, tenant, uid, job, project, card, granted_ns, used_ns,"
    "idle_held_ns, memory_byte_s, joules, number, borrowed_ns, borrowed_byte_s)"
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    "ON CONFLICT DO UPDATE SET granted_ns = granted_ns + excluded.granted_ns,"
    "used_ns = used_ns + excluded.used_ns, idle_held_ns = idle_held_ns + excluded.idle_held_ns,"
    "memory_byte_s = memory_byte_s + excluded.memory_byte_s, number = excluded.number,"
    "borrowed_ns = ifnull(borrowed_ns, 0) + excluded.borrowed_ns,"
    "borrowed_byte_s = ifnull(borrowed_byte_s, 0) + excluded.borrowed_byte_s,"
    "joules = CASE WHEN excluded.joules IS NULL THEN joules ELSE ifnull(joules, 0) + excluded.joules END";
static const char set_counter[] = "INSERT OR REPLACE INTO counter (job, card, used_ns, memory_unit_ms, since_ns,"
				  "at_ns, stored, borrowed_ns, borrowed_unit_ms)"
				  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char end_counter[] = "DELETE FROM counter WHERE job = ?1 AND card = ?2";

/* ---- open ---- */

static int make_schema(sqlite3 *sqlite)
{
	char text[160];
	snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d;", LL_USE_APPLICATION_ID,
		 LL_USE_SCHEMA);
	int code = sqlite3_exec(sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sqlite, schema, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sqlite, text, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sqlite, "COMMIT", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		sqlite3_exec(sqlite, "ROLLBACK", NULL, NULL, NULL);
	return code;
}

static int is_sound(sqlite3 *sqlite, bool *ret_is_sound)
{
	sqlite3_stmt *check;
	int code = sqlite3_prepare_v2(sqlite, "PRAGMA quick_check(1)", -1, &check, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(check);
	if (code == SQLITE_ROW) {
		const unsigned char *answer = sqlite3_column_text(check, 0);
		*ret_is_sound = answer && strcmp((const char *)answer, "ok") == 0;
		code = SQLITE_OK;
	}
	sqlite3_finalize(check);
	return code;
}

/* Of a file of an earlier loadline. */
static int add_late_columns(sqlite3 *sqlite)
{
	static const char *const columns[][3] = {
	    {"use", "number", "INTEGER"},          {"use", "borrowed_byte_s", "REAL"},
	    {"counter", "borrowed_ns", "INTEGER"}, {"counter", "borrowed_unit_ms", "INTEGER"},
	    {"job", "borrowed_ns", "INTEGER"},     {"job", "borrowed_byte_s", "REAL"},
	    {"job", "recalls", "INTEGER"},         {"job", "slept_ns", "INTEGER"},
	    {"job", "lendable_ns", "INTEGER"},     {"job", "job", "TEXT"},
	};
	int code = SQLITE_OK;
	for (size_t i = 0; i < sizeof columns / sizeof *columns && code == SQLITE_OK; i++) {
		char text[120];
		bool has_column = false;
		const char *table = columns[i][0], *column = columns[i][1];
		code = ll_sqlite_has_column(sqlite, table, column, &has_column);
		snprintf(text, sizeof text, "ALTER TABLE %s ADD COLUMN %s %s", table, column, columns[i][2]);
		if (code == SQLITE_OK && !has_column)
			code = sqlite3_exec(sqlite, text, NULL, NULL, NULL);
	}
	return code;
}

/* -EUCLEAN: the file is to be moved aside. */
static int check_file(sqlite3 *sqlite, const char *path, bool *ret_is_new, struct ll_err *err)
{
	bool sound = false;
	int64_t application = 0, version = 0, tables = 0;
	/* A commit waits until the disk has it (FULL), which is cheap at one commit in 9 s. */
	sqlite3_busy_timeout(sqlite, 5000); /* ms */
	int code = sqlite3_exec(sqlite, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = is_sound(sqlite, &sound);
	if (code == SQLITE_OK && !sound)
		return ll_err_set(err, -EUCLEAN, "%s: the file is damaged", path);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, "PRAGMA application_id", &application);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, "PRAGMA user_version", &version);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, "SELECT count(*) FROM sqlite_master", &tables);
	bool is_empty = code == SQLITE_OK && !tables && !application;
	if (is_empty)
		code = make_schema(sqlite);
	else if (code == SQLITE_OK && application != LL_USE_APPLICATION_ID)
		return ll_err_set(err, -EUCLEAN, "%s: not a database of accounts", path);
	else if (code == SQLITE_OK && version > LL_USE_SCHEMA)
		return ll_sqlite_refuse_newer(path, version, err);
	if (code == SQLITE_OK)
		code = ll_history_make(sqlite);
	if (code == SQLITE_OK)
		code = add_late_columns(sqlite);
	if (code != SQLITE_OK)
		return ll_sqlite_fail(sqlite, code, path, err);
	*ret_is_new = is_empty;
	return 0;
}

static int open_once(const char *path, sqlite3 **ret_sqlite, bool *ret_is_new, struct ll_err *err)
{
	sqlite3 *sqlite = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	int code = sqlite3_open_v2(path, &sqlite, SQLITE_OPEN_READWRITE, NULL);
	int rc =
	    code == SQLITE_OK ? check_file(sqlite, path, ret_is_new, err) : ll_sqlite_fail(sqlite, code, path, err);
	if (rc)
		sqlite3_close(sqlite);
	else
		*ret_sqlite = sqlite;
	return rc;
}

/* The files of SQLite's log belong to the file, and are moved with it. */
static int move_aside(const char *path, char ret_moved[LL_USE_PATH_SIZE], struct ll_err *err)
{
	static const char *const endings[] = {"", "-wal", "-shm"};
	char from[LL_USE_PATH_SIZE + 8], to[LL_USE_PATH_SIZE + 8], when[32];
	time_t now = (time_t)(ll_wall_ns() / LL_NS_PER_S);
	struct tm parts;
	gmtime_r(&now, &parts);
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &parts);
	if ((size_t)snprintf(ret_moved, LL_USE_PATH_SIZE, "%.3900s.damaged-%s", path, when) >= LL_USE_PATH_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "%.80s...: the name is too long", path);
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(from, sizeof from, "%s%s", path, endings[i]);
		snprintf(to, sizeof to, "%s%s", ret_moved, endings[i]);
		if (rename(from, to) && errno != ENOENT)
			return ll_err_set(err, -errno, "%s: the damaged file cannot be moved aside: %s", from,
					  strerror(errno));
	}
	return 0;
}

int ll_use_database_open(const char *path, struct ll_use_database **ret_database, bool *ret_is_new,
			 char ret_moved[LL_USE_PATH_SIZE], struct ll_err *err)
{
	struct ll_use_database *database = calloc(1, sizeof *database);
	ret_moved[0] = '\0';
	if (!database)
		return ll_err_set(err, -ENOMEM, "out of memory");
	int rc = open_once(path, &database->sqlite, ret_is_new, err);
	if (rc == -EUCLEAN) {
		rc = move_aside(path, ret_moved, err);
		if (!rc)
			rc = open_once(path, &database->sqlite, ret_is_new, err);
	}
	if (rc)
		free(database);
	else
		*ret_database = database;
	return rc;
}

void ll_use_database_close(struct ll_use_database *database)
{
	if (!database)
		return;
	sqlite3_close(database->sqlite);
	free(database);
}

/* ---- write ---- */

static int write_rows(sqlite3 *sqlite, const struct ll_use_batch *batch)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(sqlite, add_use, -1, &statement, NULL);
	for (size_t i = 0; i < batch->row_count && code == SQLITE_OK; i++) {
		const struct ll_use_key *key = &batch->rows[i].key;
		const struct ll_use *use = &batch->rows[i].use;
		int bound = sqlite3_bind_int64(statement, 1, key->hour_s);
		bound |= ll_sqlite_bind_text(statement, 2, key->tenant);
		bound |= ll_sqlite_bind_number(statement, 3, key->uid);
		bound |= ll_sqlite_bind_text(statement, 4, key->job);
		bound |= ll_sqlite_bind_text(statement, 5, key->project);
		bound |= ll_sqlite_bind_text(statement, 6, key->card);
		bound |= ll_sqlite_bind_number(statement, 7, use->granted_ns);
		bound |= ll_sqlite_bind_number(statement, 8, use->used_ns);
		bound |= ll_sqlite_bind_number(statement, 9, use->idle_held_ns);
		bound |= sqlite3_bind_double(statement, 10, use->memory_byte_s);
		bound |= use->knows_joules ? sqlite3_bind_double(statement, 11, use->joules)
					   : sqlite3_bind_null(statement, 11);
		bound |= ll_sqlite_bind_number(statement, 12, key->number);
		bound |= ll_sqlite_bind_number(statement, 13, use->borrowed_ns);
		bound |= sqlite3_bind_double(statement, 14, use->borrowed_byte_s);
		code = ll_sqlite_run_once(statement, bound);
	}
	sqlite3_finalize(statement);
	return code;
}

static int write_counters(sqlite3 *sqlite, const struct ll_use_batch *batch)
{
	sqlite3_stmt *set = NULL, *end = NULL;
	int code = sqlite3_prepare_v2(sqlite, set_counter, -1, &set, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, end_counter, -1, &end, NULL);
	for (size_t i = 0; i < batch->counter_count && code == SQLITE_OK; i++) {
		const struct ll_use_counter *counter = &batch->counters[i];
		sqlite3_stmt *statement = counter->has_ended ? end : set;
		int bound = ll_sqlite_bind_text(statement, 1, counter->job);
		bound |= ll_sqlite_bind_text(statement, 2, counter->card);
		if (!counter->has_ended) {
			bound |= ll_sqlite_bind_number(statement, 3, counter->used_ns);
			bound |= ll_sqlite_bind_number(statement, 4, counter->memory_unit_ms);
			bound |= ll_sqlite_bind_number(statement, 5, counter->since_ns);
			bound |= ll_sqlite_bind_number(statement, 6, counter->at_ns);
			bound |= ll_sqlite_bind_number(statement, 7, ll_wall_ns() / LL_NS_PER_S);
			bound |= ll_sqlite_bind_number(statement, 8, counter->borrowed_ns);
			bound |= ll_sqlite_bind_number(statement, 9, counter->borrowed_unit_ms);
		}
		code = ll_sqlite_run_once(statement, bound);
	}
	sqlite3_finalize(set);
	sqlite3_finalize(end);
	return code;
}

int ll_use_database_write(struct ll_use_database *database, const struct ll_use_batch *batch, struct ll_err *err)
{
	sqlite3 *sqlite = database->sqlite;
	int code = sqlite3_exec(sqlite, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = write_rows(sqlite, batch);
	if (code == SQLITE_OK)
		code = write_counters(sqlite, batch);
	if (code == SQLITE_OK)
		code = ll_history_write(sqlite, batch->past, batch->past_count, batch->statuses, batch->status_count);
	if (code == SQLITE_OK)
		code = sqlite3_exec(sqlite, "COMMIT", NULL, NULL, NULL);
	if (code == SQLITE_OK) {
		/* Most of the time the file alone has all, so that a plain copy of it does too. */
		sqlite3_wal_checkpoint_v2(sqlite, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
		return 0;
	}
	int rc = ll_sqlite_fail(sqlite, code, sqlite3_db_filename(sqlite, "main"), err);
	if (!sqlite3_get_autocommit(sqlite))
		sqlite3_exec(sqlite, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

/* ---- counters, and the end of old rows ---- */

int ll_use_database_read_counters(struct ll_use_database *database, struct ll_use_batch *ret_batch, struct ll_err *err)
{
	sqlite3 *sqlite = database->sqlite;
	struct ll_use_batch batch = {0};
	sqlite3_stmt *statement = NULL;
	int rc = 0, code = sqlite3_prepare_v2(sqlite,
					      "SELECT job, card, used_ns, memory_unit_ms, since_ns, at_ns, borrowed_ns,"
					      "borrowed_unit_ms FROM counter",
					      -1, &statement, NULL);
	while (!rc && code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct ll_use_counter counter = {
		    .used_ns = (uint64_t)sqlite3_column_int64(statement, 2),
		    .memory_unit_ms = (uint64_t)sqlite3_column_int64(statement, 3),
		    .since_ns = (uint64_t)sqlite3_column_int64(statement, 4),
		    .at_ns = (uint64_t)sqlite3_column_int64(statement, 5),
		    .borrowed_ns = (uint64_t)sqlite3_column_int64(statement, 6),
		    .borrowed_unit_ms = (uint64_t)sqlite3_column_int64(statement, 7),
		};
		ll_sqlite_copy_text(counter.job, sizeof counter.job, statement, 0);
		ll_sqlite_copy_text(counter.card, sizeof counter.card, statement, 1);
		rc = ll_use_batch_count(&batch, &counter);
		code = SQLITE_OK;
	}
	if (rc)
		ll_err_set(err, rc, "out of memory");
	else if (code != SQLITE_DONE)
		rc = ll_sqlite_fail(sqlite, code, sqlite3_db_filename(sqlite, "main"), err);
	sqlite3_finalize(statement);
	if (rc)
		ll_use_batch_fini(&batch);
	else
		*ret_batch = batch;
	return rc;
}

int ll_use_database_read_former(struct ll_use_database *database, struct ll_use_former *ret_former, struct ll_err *err)
{
	struct ll_use_former former = {0};
	sqlite3 *sqlite = database->sqlite;
	int code = ll_sqlite_number(sqlite, "SELECT ifnull(max(id), 0) FROM job WHERE ended = 0", &former.last_row);
	if (code == SQLITE_OK)
		code = ll_sqlite_number(sqlite, "SELECT ifnull(max(stored), 0) FROM counter", &former.last_s);
	if (code != SQLITE_OK)
		return ll_sqlite_fail(sqlite, code, sqlite3_db_filename(sqlite, "main"), err);
	*ret_former = former;
	return 0;
}

int ll_use_database_end_former(struct ll_use_database *database, const struct ll_use_former *former, struct ll_err *err)
{
	char text[640];
	/* The hour of a use is the hour's beginning. */
	snprintf(text, sizeof text,
		 "UPDATE job SET how = %d, why = 'no loadlined saw its end', ended = max(began, %lld),"
		 "(used_ns, memory_byte_s, borrowed_ns, borrowed_byte_s) = (SELECT ifnull(sum(used_ns), 0),"
		 "ifnull(sum(memory_byte_s), 0), sum(borrowed_ns), sum(borrowed_byte_s) FROM use "
		 "WHERE use.job = job.job AND hour > job.began - 3600) WHERE ended = 0 AND id <= %lld",
		 LL_PAST_ENDED, (long long)former->last_s, (long long)former->last_row);
	int code = sqlite3_exec(database->sqlite, text, NULL, NULL, NULL);
	return code == SQLITE_OK
		   ? 0
		   : ll_sqlite_fail(database->sqlite, code, sqlite3_db_filename(database->sqlite, "main"), err);
}

int ll_use_database_forget(struct ll_use_database *database, int64_t before_s, struct ll_err *err)
{
	char text[200];
	snprintf(text, sizeof text,
		 "DELETE FROM use WHERE hour < %lld; DELETE FROM counter WHERE stored < %lld;"
		 "DELETE FROM job WHERE ended < %lld AND ended > 0",
		 (long long)before_s, (long long)before_s, (long long)before_s);
	int code = sqlite3_exec(database->sqlite, text, NULL, NULL, NULL);
	return code == SQLITE_OK
		   ? 0
		   : ll_sqlite_fail(database->sqlite, code, sqlite3_db_filename(database->sqlite, "main"), err);
}

bool ll_use_database_is_gone(struct ll_use_database *database)
{
	int has_moved = 0;
	return sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK &&
	       has_moved;
}

sqlite3 *ll_use_database_sqlite(struct ll_use_database *database)
{
	return database->sqlite;
}

void ll_use_database_limit_pages(struct ll_use_database *database, unsigned pages)
{
	char text[64];
	snprintf(text, sizeof text, "PRAGMA max_page_count = %u", pages ? pages : (unsigned)MOST_PAGES);
	sqlite3_exec(database->sqlite, text, NULL, NULL, NULL);
}
