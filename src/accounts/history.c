#include "accounts/history.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accounts/sqlite.h"
#include "base/clock.h"
#include "base/err.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS job ("
    "id INTEGER PRIMARY KEY, number INTEGER NOT NULL, uid INTEGER NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL,"
    "command TEXT NOT NULL, project TEXT NOT NULL, cards TEXT NOT NULL, came INTEGER NOT NULL,"
    "began INTEGER NOT NULL, ended INTEGER NOT NULL, asked_cards INTEGER NOT NULL, asked_memory INTEGER NOT NULL,"
    "asked_compute INTEGER NOT NULL, asked_time_ns INTEGER NOT NULL, class INTEGER NOT NULL,"
    "used_ns INTEGER NOT NULL, memory_byte_s REAL NOT NULL, how INTEGER NOT NULL, status INTEGER NOT NULL,"
    "by_uid INTEGER NOT NULL, why TEXT NOT NULL,"
    "borrowed_ns INTEGER, borrowed_byte_s REAL, recalls INTEGER, slept_ns INTEGER, lendable_ns INTEGER, job TEXT);"
    "CREATE INDEX IF NOT EXISTS job_number ON job (number, uid);"
    "CREATE INDEX IF NOT EXISTS job_ended ON job (ended);"
    "CREATE INDEX IF NOT EXISTS job_uid ON job (uid, ended);"
    "CREATE INDEX IF NOT EXISTS job_tenant ON job (tenant, ended);"
    "CREATE INDEX IF NOT EXISTS job_how ON job (how, ended);";

/* A file of another's making may be endless. */
#define LONGEST_NS (60 * LL_NS_PER_S)

#define COLUMNS                                                                                                        \
	"number, uid, tenant, name, command, project, cards, came, began, ended, asked_cards, asked_memory,"           \
	"asked_compute, asked_time_ns, class, used_ns, memory_byte_s, how, status, by_uid, why"
/* They came later. */
#define LATE_COLUMNS "borrowed_ns, borrowed_byte_s, recalls, slept_ns, lendable_ns"

static const char add_job[] =
    "INSERT INTO job (" COLUMNS "," LATE_COLUMNS ", job) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
    "?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)";
/* What was there while the job ran. The queue knows jobs by their numbers alone. */
static const char end_running[] = "DELETE FROM job WHERE ended = 0 AND id < last_insert_rowid() AND (job = ?1 OR "
				  "(?1 = '' AND number = ?2 AND uid = ?3))";
/* ?3: LL_PAST_ENDED, as which the job is there. */
static const char set_status[] = "UPDATE job SET how = ?4, status = ?5 WHERE how = ?3 AND id = (SELECT max(id) FROM "
				 "job WHERE number = ?1 AND uid = ?2)";

enum ll_past_how ll_past_how_of(uint32_t status)
{
	return WIFSIGNALED((int)status) ? LL_PAST_KILLED : status ? LL_PAST_FAILED : LL_PAST_DONE;
}

int ll_history_make(sqlite3 *sqlite)
{
	return sqlite3_exec(sqlite, schema, NULL, NULL, NULL);
}

/* ---- write ---- */

static int remove_running(sqlite3_stmt *statement, const struct ll_past_job *job)
{
	int bound = ll_sqlite_bind_text(statement, 1, job->job);
	bound |= ll_sqlite_bind_number(statement, 2, job->number);
	bound |= ll_sqlite_bind_number(statement, 3, job->uid);
	return ll_sqlite_run_once(statement, bound);
}

static int write_job(sqlite3_stmt *statement, const struct ll_past_job *job)
{
	int code = ll_sqlite_bind_number(statement, 1, job->number);
	code |= ll_sqlite_bind_number(statement, 2, job->uid);
	code |= ll_sqlite_bind_text(statement, 3, job->tenant);
	code |= ll_sqlite_bind_text(statement, 4, job->name);
	code |= ll_sqlite_bind_text(statement, 5, job->command);
	code |= ll_sqlite_bind_text(statement, 6, job->project);
	code |= ll_sqlite_bind_text(statement, 7, job->cards);
	code |= sqlite3_bind_int64(statement, 8, job->came_s);
	code |= sqlite3_bind_int64(statement, 9, job->began_s);
	code |= sqlite3_bind_int64(statement, 10, job->ended_s);
	code |= ll_sqlite_bind_number(statement, 11, job->card_count);
	code |= ll_sqlite_bind_number(statement, 12, job->memory_bytes);
	code |= ll_sqlite_bind_number(statement, 13, job->compute_permille);
	code |= ll_sqlite_bind_number(statement, 14, job->time_ns);
	code |= ll_sqlite_bind_number(statement, 15, job->class);
	code |= ll_sqlite_bind_number(statement, 16, job->used_ns);
	code |= sqlite3_bind_double(statement, 17, job->memory_byte_s);
	code |= ll_sqlite_bind_number(statement, 18, job->how);
	code |= ll_sqlite_bind_number(statement, 19, job->status);
	code |= ll_sqlite_bind_number(statement, 20, job->by_uid);
	code |= ll_sqlite_bind_text(statement, 21, job->why);
	code |= ll_sqlite_bind_number(statement, 22, job->borrowed_ns);
	code |= sqlite3_bind_double(statement, 23, job->borrowed_byte_s);
	code |= ll_sqlite_bind_number(statement, 24, job->recalls);
	code |= ll_sqlite_bind_number(statement, 25, job->slept_ns);
	code |= ll_sqlite_bind_number(statement, 26, job->lendable_ns);
	code |= ll_sqlite_bind_text(statement, 27, job->job);
	return ll_sqlite_run_once(statement, code);
}

int ll_history_write(sqlite3 *sqlite, const struct ll_past_job *jobs, size_t count,
		     const struct ll_past_status *statuses, size_t status_count)
{
	sqlite3_stmt *add = NULL, *end = NULL, *set = NULL;
	int code = sqlite3_prepare_v2(sqlite, add_job, -1, &add, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, end_running, -1, &end, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, set_status, -1, &set, NULL);
	for (size_t i = 0; i < count && code == SQLITE_OK; i++) {
		code = write_job(add, &jobs[i]);
		if (code == SQLITE_OK)
			code = remove_running(end, &jobs[i]);
	}
	for (size_t i = 0; i < status_count && code == SQLITE_OK; i++) {
		int bound = ll_sqlite_bind_number(set, 1, statuses[i].number);
		bound |= ll_sqlite_bind_number(set, 2, statuses[i].uid);
		bound |= sqlite3_bind_int(set, 3, LL_PAST_ENDED);
		bound |= sqlite3_bind_int(set, 4, (int)ll_past_how_of(statuses[i].status));
		bound |= ll_sqlite_bind_number(set, 5, statuses[i].status);
		code = ll_sqlite_run_once(set, bound);
	}
	sqlite3_finalize(add);
	sqlite3_finalize(end);
	sqlite3_finalize(set);
	return code;
}

/* ---- read ---- */

static uint64_t number_at(sqlite3_stmt *statement, int column)
{
	int64_t number = sqlite3_column_int64(statement, column);
	return number > 0 ? (uint64_t)number : 0;
}

static void read_job(sqlite3_stmt *statement, struct ll_past_job *ret_job)
{
	*ret_job = (struct ll_past_job){
	    .number = number_at(statement, 0),
	    .uid = (uint32_t)number_at(statement, 1),
	    .came_s = sqlite3_column_int64(statement, 7),
	    .began_s = sqlite3_column_int64(statement, 8),
	    .ended_s = sqlite3_column_int64(statement, 9),
	    .card_count = (uint32_t)number_at(statement, 10),
	    .memory_bytes = number_at(statement, 11),
	    .compute_permille = number_at(statement, 12),
	    .time_ns = number_at(statement, 13),
	    .class = (uint32_t)number_at(statement, 14),
	    .used_ns = number_at(statement, 15),
	    .memory_byte_s = sqlite3_column_double(statement, 16),
	    .how = (uint32_t)number_at(statement, 17),
	    .status = (uint32_t)number_at(statement, 18),
	    .by_uid = (uint32_t)number_at(statement, 19),
	    .borrowed_ns = number_at(statement, 21),
	    .borrowed_byte_s = sqlite3_column_double(statement, 22),
	    .recalls = (uint32_t)number_at(statement, 23),
	    .slept_ns = number_at(statement, 24),
	    .lendable_ns = number_at(statement, 25),
	};
	ll_sqlite_copy_text(ret_job->tenant, sizeof ret_job->tenant, statement, 2);
	ll_sqlite_copy_text(ret_job->name, sizeof ret_job->name, statement, 3);
	ll_sqlite_copy_text(ret_job->command, sizeof ret_job->command, statement, 4);
	ll_sqlite_copy_text(ret_job->project, sizeof ret_job->project, statement, 5);
	ll_sqlite_copy_text(ret_job->cards, sizeof ret_job->cards, statement, 6);
	ll_sqlite_copy_text(ret_job->why, sizeof ret_job->why, statement, 20);
}

int ll_history_prepare(sqlite3 *sqlite, const struct ll_history_query *query, sqlite3_stmt **ret_statement)
{
	char text[640];
	bool has_late = false;
	int code = ll_sqlite_has_column(sqlite, "job", "lendable_ns", &has_late);
	if (code != SQLITE_OK)
		return code;
	snprintf(text, sizeof text,
		 "SELECT " COLUMNS
		 ", %s FROM job WHERE ended >= ?1 AND ended < ?2%s%s%s ORDER BY ended DESC, id DESC LIMIT ?6",
		 has_late ? LATE_COLUMNS : "0, 0, 0, 0, 0", query->has_uid ? " AND uid = ?3" : "",
		 query->tenant ? " AND tenant = ?4" : "", query->how ? " AND how = ?5" : "");
	code = sqlite3_prepare_v2(sqlite, text, -1, ret_statement, NULL);
	if (code != SQLITE_OK)
		return code;
	sqlite3_stmt *statement = *ret_statement;
	code = sqlite3_bind_int64(statement, 1, query->since_s > 0 ? query->since_s : 1);
	code |= sqlite3_bind_int64(statement, 2, query->until_s);
	code |= query->has_uid ? sqlite3_bind_int64(statement, 3, query->uid) : SQLITE_OK;
	code |= query->tenant ? ll_sqlite_bind_text(statement, 4, query->tenant) : SQLITE_OK;
	code |= query->how ? sqlite3_bind_int64(statement, 5, query->how) : SQLITE_OK;
	code |= ll_sqlite_bind_number(statement, 6, query->most + 1);
	return code;
}

static int read_jobs(sqlite3 *sqlite, const char *path, const struct ll_history_query *query,
		     struct ll_history *history, struct ll_err *err)
{
	sqlite3_stmt *statement = NULL;
	size_t room = 0;
	int rc = 0, code = ll_history_prepare(sqlite, query, &statement);
	while (!rc && code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		code = SQLITE_OK;
		if (history->count == query->most) {
			history->has_more = true;
			code = SQLITE_DONE;
			break;
		}
		if (history->count == room) {
			room = room ? 2 * room : 64;
			struct ll_past_job *jobs = reallocarray(history->jobs, room, sizeof *jobs);
			if (!jobs) {
				rc = ll_err_set(err, -ENOMEM, "out of memory");
				break;
			}
			history->jobs = jobs;
		}
		read_job(statement, &history->jobs[history->count++]);
	}
	if (!rc && code != SQLITE_DONE)
		rc = ll_sqlite_fail(sqlite, code, path, err);
	sqlite3_finalize(statement);
	return rc;
}

int ll_history_read(const char *path, const struct ll_history_query *query, struct ll_history *ret_history,
		    struct ll_err *err)
{
	struct ll_history history = {0};
	sqlite3 *sqlite = NULL;
	int64_t tables = 0;
	uint64_t until_ns = ll_now_ns() + LONGEST_NS;
	int rc = ll_sqlite_open_read(path, &until_ns, &sqlite, err);
	int code =
	    rc ? SQLITE_OK : ll_sqlite_number(sqlite, "SELECT count(*) FROM sqlite_master WHERE name = 'job'", &tables);
	if (!rc && code != SQLITE_OK)
		rc = ll_sqlite_fail(sqlite, code, path, err);
	if (!rc && tables) /* without the table an older loadline has written the file */
		rc = read_jobs(sqlite, path, query, &history, err);
	sqlite3_close(sqlite);
	if (rc)
		ll_history_fini(&history);
	else
		*ret_history = history;
	return rc;
}

void ll_history_fini(struct ll_history *history)
{
	free(history->jobs);
	*history = (struct ll_history){0};
}
