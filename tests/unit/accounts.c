/* The accounts' file: what is written is read, once, whatever happens to the disk and the file. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "accounts/database.h"
#include "accounts/history.h"
#include "accounts/report.h"
#include "accounts/spent.h"
#include "accounts/sqlite.h"
#include "base/clock.h"
#include "test.h"

#define HOUR_S (INT64_C(1700000) * 3600)
#define CARD "GPU-1"

static char folder[64], path[128], moved[LL_USE_PATH_SIZE];
static struct ll_use_database *database;
static bool is_new;
static struct ll_err err;

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/ll-accounts-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/accounts.db", folder);
	database = NULL;
	return 0;
}

static int end(void **state)
{
	char command[100];
	(void)state;
	ll_use_database_close(database);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

TEST_EACH(begin, end);

static void open_it(void)
{
	ll_use_database_close(database);
	database = NULL;
	if (ll_use_database_open(path, &database, &is_new, moved, &err))
		fail_msg("%s", err.text);
}

static struct ll_use_key key_of(int64_t hour_s, const char *tenant, uint32_t uid, const char *job)
{
	struct ll_use_key key = {.hour_s = hour_s, .uid = uid, .card = CARD};
	snprintf(key.tenant, sizeof key.tenant, "%s", tenant);
	snprintf(key.job, sizeof key.job, "%s", job);
	return key;
}

static void add(struct ll_use_batch *batch, int64_t hour_s, const char *tenant, uint32_t uid, const char *job,
		uint64_t seconds)
{
	struct ll_use_key key = key_of(hour_s, tenant, uid, job);
	struct ll_use use = {.granted_ns = 4 * seconds * 1000000000,
			     .used_ns = 2 * seconds * 1000000000,
			     .idle_held_ns = seconds * 1000000000,
			     .memory_byte_s = 8e9 * (double)seconds};
	assert_int_equal(ll_use_batch_add(batch, &key, &use, LL_USE_BATCH_ROWS), 0);
}

static int write_one(int64_t hour_s, const char *tenant, uint32_t uid, uint64_t seconds)
{
	struct ll_use_batch batch = {0};
	add(&batch, hour_s, tenant, uid, "0123456789abcdef", seconds);
	int rc = ll_use_database_write(database, &batch, &err);
	ll_use_batch_fini(&batch);
	return rc;
}

/* The sums of the whole file. */
static struct ll_use_report read_all(enum ll_use_by by)
{
	const struct ll_use_query query = {.until_s = INT64_MAX, .by = by};
	struct ll_use_report report = {0};
	if (ll_use_report_read(&report, path, &query, &err))
		fail_msg("%s", err.text);
	ll_use_report_sort(&report, by);
	return report;
}

static double used_by_all(void)
{
	double used_s = 0;
	struct ll_use_report report = read_all(LL_USE_BY_CARD);
	for (size_t i = 0; i < report.count; i++)
		used_s += report.sums[i].used_s;
	ll_use_report_fini(&report);
	return used_s;
}

TEST(rows_of_one_key_are_added_up_and_what_nothing_measures_is_unknown)
{
	open_it();
	assert_int_equal(write_one(HOUR_S, "a", 1, 10), 0);
	assert_int_equal(write_one(HOUR_S, "a", 1, 5), 0);
	assert_int_equal(write_one(HOUR_S + 3600, "b", 2, 100), 0);
	struct ll_use_report report = read_all(LL_USE_BY_TENANT);
	assert_int_equal(report.count, 2);
	assert_string_equal(report.sums[0].key, "b");
	assert_string_equal(report.sums[1].key, "a");
	assert_true(report.sums[1].granted_s == 60 && report.sums[1].used_s == 30 && report.sums[1].idle_held_s == 15);
	assert_true(report.sums[1].memory_byte_s == 120e9);
	assert_true(isnan(report.sums[1].joules) && isnan(report.sums[1].lent_s));
	assert_true(report.sums[1].borrowed_s == 0 && report.sums[1].borrowed_byte_s == 0);
	ll_use_report_fini(&report);
}

static void write_joules(const char *tenant, double joules)
{
	struct ll_use_batch batch = {0};
	struct ll_use_key key = key_of(HOUR_S, tenant, 1, tenant);
	struct ll_use use = {.used_ns = 1, .joules = joules, .knows_joules = joules >= 0};
	if (joules < 0)
		use.joules = 0;
	assert_int_equal(ll_use_batch_add(&batch, &key, &use, LL_USE_BATCH_ROWS), 0);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
}

TEST(a_sum_of_joules_has_what_is_known_and_is_unknown_only_if_no_part_is_known)
{
	open_it();
	write_joules("a", -1);
	write_joules("a", 1.5);
	write_joules("a", -1);
	write_joules("a", 2.25);
	write_joules("b", -1);
	write_joules("b", -1);
	write_joules("c", 0);
	struct ll_use_report report = read_all(LL_USE_BY_TENANT);
	assert_int_equal(report.count, 3);
	for (size_t i = 0; i < report.count; i++) {
		if (report.sums[i].key[0] == 'b')
			assert_true(isnan(report.sums[i].joules));
		else
			assert_true(report.sums[i].joules == (report.sums[i].key[0] == 'a' ? 3.75 : 0));
	}
	ll_use_report_fini(&report);
	report = read_all(LL_USE_BY_CARD);
	assert_true(report.count == 1 && report.sums[0].joules == 3.75);
	ll_use_report_fini(&report);
}

TEST(a_report_has_the_hours_of_its_period_and_the_user_asked_for)
{
	struct ll_use_query query = {.since_s = HOUR_S, .until_s = HOUR_S + 3600, .by = LL_USE_BY_USER};
	struct ll_use_report report = {0};
	open_it();
	for (int64_t hour = -1; hour <= 1; hour++) {
		write_one(HOUR_S + hour * 3600, "a", 1, 1);
		write_one(HOUR_S + hour * 3600, "a", 2, 10);
	}
	assert_int_equal(ll_use_report_read(&report, path, &query, &err), 0);
	assert_int_equal(report.count, 2);
	ll_use_report_fini(&report);
	query.is_of_one_user = true;
	query.uid = 2;
	assert_int_equal(ll_use_report_read(&report, path, &query, &err), 0);
	assert_int_equal(report.count, 1);
	assert_string_equal(report.sums[0].key, "2");
	assert_true(report.sums[0].used_s == 20);
	ll_use_report_fini(&report);
}

TEST(files_of_several_machines_are_added_up)
{
	char other[160];
	struct ll_use_query query = {.until_s = INT64_MAX, .by = LL_USE_BY_TENANT};
	struct ll_use_report report = {0};
	open_it();
	write_one(HOUR_S, "a", 1, 1);
	ll_use_database_close(database);
	database = NULL;
	snprintf(other, sizeof other, "%s/other.db", folder);
	assert_int_equal(rename(path, other), 0);
	open_it();
	write_one(HOUR_S, "a", 1, 2);
	write_one(HOUR_S, "b", 1, 5);
	assert_int_equal(ll_use_report_read(&report, path, &query, &err), 0);
	assert_int_equal(ll_use_report_read(&report, other, &query, &err), 0);
	ll_use_report_sort(&report, LL_USE_BY_TENANT);
	assert_int_equal(report.count, 2);
	assert_true(report.sums[0].used_s == 10 && report.sums[1].used_s == 6);
	ll_use_report_fini(&report);
}

static struct ll_use_counter counter_of(const char *job, uint64_t used_ns, bool has_ended)
{
	struct ll_use_counter counter = {
	    .card = CARD, .used_ns = used_ns, .memory_unit_ms = 7, .since_ns = 1, .at_ns = 2, .has_ended = has_ended};
	snprintf(counter.job, sizeof counter.job, "%s", job);
	return counter;
}

TEST(counters_of_jobs_are_kept_until_the_jobs_end)
{
	struct ll_use_batch batch = {0};
	struct ll_use_counter one = counter_of("one", 10, false), two = counter_of("two", 20, false);
	open_it();
	ll_use_batch_count(&batch, &one);
	ll_use_batch_count(&batch, &two);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	one = counter_of("one", 11, false);
	two = counter_of("two", 21, true);
	ll_use_batch_count(&batch, &one);
	ll_use_batch_count(&batch, &two);
	assert_int_equal(batch.counter_count, 2);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
	open_it();
	assert_int_equal(ll_use_database_read_counters(database, &batch, &err), 0);
	assert_int_equal(batch.counter_count, 1);
	const struct ll_use_counter *found = ll_use_batch_find_counter(&batch, "one", CARD);
	assert_non_null(found);
	assert_true(found->used_ns == 11 && found->memory_unit_ms == 7 && found->since_ns == 1 && found->at_ns == 2);
	ll_use_batch_fini(&batch);
}

/* Expected: nothing of the failed transaction is there; with room everything is written once. */
TEST(a_batch_that_a_full_disk_refused_is_written_later_and_once)
{
	struct ll_use_batch batch = {0}, later = {0};
	open_it();
	assert_int_equal(write_one(HOUR_S, "a", 1, 1), 0);
	ll_use_database_limit_pages(database, 4);
	for (int i = 0; i < 300; i++) {
		char job[LL_USE_JOB_SIZE];
		snprintf(job, sizeof job, "%016d", i);
		add(&batch, HOUR_S, "a", 1, job, 1);
	}
	assert_int_equal(ll_use_database_write(database, &batch, &err), -ENOSPC);
	assert_true(used_by_all() == 2);
	add(&later, HOUR_S, "a", 1, "0000000000000007", 1);
	add(&later, HOUR_S, "z", 1, "0000000000000007", 1);
	assert_int_equal(ll_use_batch_merge(&batch, &later), 0);
	assert_int_equal(batch.row_count, 301);
	assert_true(ll_use_batch_is_empty(&later));
	ll_use_database_limit_pages(database, 0);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	assert_true(used_by_all() == 2 + 2 * 302);
	ll_use_batch_fini(&batch);
}

TEST(a_batch_takes_no_more_rows_than_it_may)
{
	struct ll_use_batch batch = {0};
	struct ll_use use = {.used_ns = 1};
	struct ll_use_key one = key_of(HOUR_S, "a", 1, "one"), two = key_of(HOUR_S, "a", 1, "two");
	assert_int_equal(ll_use_batch_add(&batch, &one, &use, 1), 0);
	assert_int_equal(ll_use_batch_add(&batch, &two, &use, 1), -ENOSPC);
	assert_int_equal(ll_use_batch_add(&batch, &one, &use, 1), 0);
	assert_int_equal(batch.rows[0].use.used_ns, 2);
	ll_use_batch_fini(&batch);
}

TEST(a_row_knows_its_joules_if_a_part_of_it_does)
{
	struct ll_use_batch batch = {0};
	struct ll_use unknown = {.used_ns = 1}, known = {.joules = 2.5, .knows_joules = true};
	struct ll_use_key key = key_of(HOUR_S, "a", 1, "one");
	assert_int_equal(ll_use_batch_add(&batch, &key, &unknown, 1), 0);
	assert_false(batch.rows[0].use.knows_joules);
	assert_int_equal(ll_use_batch_add(&batch, &key, &known, 1), 0);
	assert_int_equal(ll_use_batch_add(&batch, &key, &unknown, 1), 0);
	assert_true(batch.rows[0].use.knows_joules && batch.rows[0].use.joules == 2.5);
	ll_use_batch_fini(&batch);
}

static void damage(off_t at, size_t size)
{
	static char bytes[65536];
	memset(bytes, 0x5a, sizeof bytes);
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, at), (ssize_t)size);
	close(fd);
}

static void fill(unsigned rows)
{
	struct ll_use_batch batch = {0};
	open_it();
	for (unsigned i = 0; i < rows; i++) {
		char job[LL_USE_JOB_SIZE];
		snprintf(job, sizeof job, "%016u", i);
		add(&batch, HOUR_S, "a", 1, job, 1);
	}
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
	ll_use_database_close(database);
	database = NULL;
}

TEST(a_file_in_which_the_accounts_begin_is_told_from_one_that_has_some)
{
	open_it();
	assert_true(is_new);
	assert_false(ll_use_database_is_gone(database));
	open_it();
	assert_false(is_new);
	assert_int_equal(unlink(path), 0);
	assert_true(ll_use_database_is_gone(database));
	open_it();
	assert_true(is_new);
	ll_use_database_close(database);
	database = NULL;
	assert_int_equal(truncate(path, 0), 0);
	open_it();
	assert_true(is_new);
	assert_string_equal(moved, "");
}

/* Where midnight is between two hours of UTC. */
TEST(the_first_half_hour_of_a_day_counts_in_that_day)
{
	struct ll_spent spent = {0};
	setenv("TZ", "IST-5:30", 1);
	tzset();
	ll_spent_set_periods(&spent, HOUR_S);
	int64_t midnight_s = spent.begin_s[LL_SPENT_DAY];
	assert_int_equal(midnight_s % 3600, 1800);
	for (int64_t at_s = midnight_s - 900; at_s < midnight_s + 3600; at_s += 900) {
		open_it();
		assert_int_equal(write_one(ll_use_hour_s(at_s), at_s < midnight_s ? "before" : "after", 1, 1), 0);
	}
	assert_int_equal(ll_use_hour_s(midnight_s), midnight_s);
	assert_int_equal(ll_spent_read(&spent, database, &err), 0);
	assert_true(ll_spent_s(&spent, "before", LL_SPENT_DAY) == 0);
	assert_true(ll_spent_s(&spent, "after", LL_SPENT_DAY) == 4 * 4);
	ll_spent_fini(&spent);
	struct ll_use_report report = read_all(LL_USE_BY_DAY);
	assert_int_equal(report.count, 2);
	ll_use_report_fini(&report);
	unsetenv("TZ");
	tzset();
	assert_int_equal(ll_use_hour_s(HOUR_S + 3599), HOUR_S);
}

/* Expected: the damaged file is still there, under the name that is told, and a new one takes what comes. */
static void expect_moved(void)
{
	open_it();
	assert_true(strncmp(moved, path, strlen(path)) == 0 && strstr(moved, ".damaged-"));
	assert_int_equal(access(moved, F_OK), 0);
	assert_int_equal(write_one(HOUR_S, "b", 1, 3), 0);
	assert_true(used_by_all() == 6);
}

TEST(a_file_with_damaged_pages_is_moved_aside)
{
	fill(500);
	damage(8192, 20000);
	expect_moved();
}

TEST(a_file_that_is_no_database_is_moved_aside)
{
	fill(1);
	damage(0, 4096);
	expect_moved();
}

TEST(a_database_of_something_else_is_moved_aside)
{
	sqlite3 *sqlite;
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite, "CREATE TABLE songs (name TEXT)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(sqlite);
	expect_moved();
}

static void expect_refused(uint64_t until_ns, int code, const char *text)
{
	struct ll_use_report report = {0};
	const struct ll_use_query query = {.until_s = INT64_MAX, .until_ns = until_ns};
	alarm(60); /* it hangs */
	assert_fails(ll_use_report_read(&report, path, &query, &err), code, text);
	alarm(0);
	ll_use_report_fini(&report);
}

TEST(a_pipe_in_the_place_of_a_file_and_beside_it_is_refused_by_reports)
{
	char pipe[sizeof path + 16];
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refused(0, -EINVAL, "accounts.db: not a file");
	assert_int_equal(unlink(path), 0);
	fill(1);
	snprintf(pipe, sizeof pipe, "%s-journal", path);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	expect_refused(0, -EINVAL, "accounts.db-journal: not a file");
}

/* Makes a file that says that it has accounts. */
static void make_file(const char *schema)
{
	sqlite3 *sqlite;
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(sqlite, "PRAGMA application_id = 1819042147; PRAGMA user_version = 1", NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite, schema, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(sqlite);
}

TEST(a_view_in_the_place_of_the_table_is_not_read_by_reports)
{
	make_file("CREATE VIEW use AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
		  "SELECT 0 AS hour, 'a' AS tenant, 0 AS uid, '' AS job, '' AS project, '' AS card, i AS granted_ns,"
		  "0 AS used_ns, 0 AS idle_held_ns, 0.0 AS memory_byte_s, 0.0 AS joules, 0 AS lent_ns,"
		  "0 AS borrowed_ns FROM n");
	expect_refused(0, -EUCLEAN, "not a database of accounts");
}

TEST(a_table_that_is_endless_to_read_is_given_up_by_reports)
{
	make_file("CREATE TABLE use (hour INTEGER, tenant TEXT, uid INTEGER, job TEXT, project TEXT, card TEXT,"
		  "used_ns INTEGER, idle_held_ns INTEGER, memory_byte_s REAL, joules REAL, lent_ns INTEGER,"
		  "borrowed_ns INTEGER);"
		  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
		  "INSERT INTO use (hour, tenant) SELECT 0, 'a' FROM n;"
		  "ALTER TABLE use ADD COLUMN granted_ns INTEGER AS (length(hex(zeroblob(400000 + hour))))");
	expect_refused(ll_now_ns() + LL_NS_PER_S / 10, -ETIMEDOUT, "reading it takes too long");
}

TEST(a_newer_schema_is_refused_and_left_as_it_is)
{
	sqlite3 *sqlite;
	struct ll_use_report report = {0};
	const struct ll_use_query query = {.until_s = INT64_MAX};
	fill(10);
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sqlite, "PRAGMA user_version = 2", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(sqlite);
	assert_fails(ll_use_database_open(path, &database, &is_new, moved, &err), -EPROTONOSUPPORT,
		     "a newer loadline has written it");
	assert_string_equal(moved, "");
	assert_fails(ll_use_report_read(&report, path, &query, &err), -EPROTONOSUPPORT, "a newer loadline");
	assert_int_equal(access(path, F_OK), 0);
}

TEST(only_its_owner_can_read_the_file)
{
	struct stat st;
	open_it();
	assert_int_equal(write_one(HOUR_S, "a", 1, 1), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

TEST(old_rows_are_removed)
{
	open_it();
	write_one(HOUR_S - 3600, "a", 1, 10);
	write_one(HOUR_S, "a", 1, 1);
	assert_int_equal(ll_use_database_forget(database, HOUR_S, &err), 0);
	assert_true(used_by_all() == 2);
}

TEST(a_copy_of_the_file_alone_has_all_that_was_written)
{
	char command[4 * sizeof path + 40];
	open_it();
	write_one(HOUR_S, "a", 1, 10);
	snprintf(command, sizeof command, "mv %s %s.1 && cp %s.1 %s", path, path, path, path);
	ll_use_database_close(database);
	database = NULL;
	open_it();
	write_one(HOUR_S, "a", 1, 1);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "%s-wal", path);
	assert_int_equal(unlink(command), 0);
	assert_true(used_by_all() == 22);
}

/* ---- jobs that have ended ---- */

static struct ll_past_job past_job(uint64_t number, uint32_t uid, const char *tenant, enum ll_past_how how)
{
	struct ll_past_job job = {.number = number,
				  .uid = uid,
				  .by_uid = UINT32_MAX,
				  .how = how,
				  .came_s = HOUR_S + (int64_t)number,
				  .began_s = HOUR_S + 10 + (int64_t)number,
				  .ended_s = HOUR_S + 20 + (int64_t)number,
				  .card_count = 2,
				  .memory_bytes = UINT64_C(16) << 30,
				  .compute_permille = 250,
				  .time_ns = 5,
				  .class = 2,
				  .used_ns = 7,
				  .memory_byte_s = 1e12};
	snprintf(job.tenant, sizeof job.tenant, "%s", tenant);
	snprintf(job.command, sizeof job.command, "python");
	snprintf(job.cards, sizeof job.cards, "0,1");
	return job;
}

static void write_past(const struct ll_past_job *jobs, size_t count)
{
	struct ll_use_batch batch = {0};
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ll_use_batch_end(&batch, &jobs[i]), 0);
	assert_false(ll_use_batch_is_empty(&batch));
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
}

/* The numbers of the jobs that the query finds, as a text. */
static const char *past_numbers(struct ll_history_query query)
{
	static char text[64];
	struct ll_history history;
	size_t used = 0;
	query.until_s = query.until_s ? query.until_s : INT64_MAX;
	query.most = query.most ? query.most : 100;
	assert_int_equal(ll_history_read(path, &query, &history, &err), 0);
	text[0] = '\0';
	for (size_t i = 0; i < history.count; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%d ", (int)history.jobs[i].number);
	snprintf(text + used, sizeof text - used, "%s", history.has_more ? "..." : "");
	ll_history_fini(&history);
	return text;
}

TEST(a_file_of_an_earlier_loadline_is_read_and_gets_what_came_later)
{
	sqlite3 *sqlite;
	struct ll_use_batch batch = {0};
	struct ll_use_key key = key_of(HOUR_S, "a", 1, "0123456789abcdef");
	const struct ll_use use = {.used_ns = 2000000000, .borrowed_ns = 1000000000, .borrowed_byte_s = 7};
	struct ll_use_counter counter = {.job = "b", .card = "GPU-1", .borrowed_ns = 8, .borrowed_unit_ms = 9};
	const struct ll_history_query query = {.until_s = INT64_MAX, .most = 9};
	struct ll_past_job past = past_job(1, 1000, "a", LL_PAST_DONE);
	struct ll_history history;
	open_it();
	write_past(&past, 1);
	assert_int_equal(write_one(HOUR_S, "a", 1, 10), 0);
	ll_use_database_close(database);
	database = NULL;
	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(sqlite,
			 "ALTER TABLE use DROP COLUMN number; ALTER TABLE use DROP COLUMN borrowed_byte_s;"
			 "UPDATE use SET borrowed_ns = NULL; ALTER TABLE counter DROP COLUMN borrowed_ns;"
			 "ALTER TABLE counter DROP COLUMN borrowed_unit_ms;"
			 "ALTER TABLE job DROP COLUMN borrowed_ns; ALTER TABLE job DROP COLUMN slept_ns;"
			 "ALTER TABLE job DROP COLUMN lendable_ns;"
			 "ALTER TABLE job DROP COLUMN borrowed_byte_s; ALTER TABLE job DROP COLUMN recalls",
			 NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(sqlite);
	assert_int_equal(ll_history_read(path, &query, &history, &err), 0);
	assert_int_equal(history.count, 1);
	ll_history_fini(&history);
	struct ll_use_report report = read_all(LL_USE_BY_JOB);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.sums[0].number, 0);
	assert_true(isnan(report.sums[0].borrowed_s) && isnan(report.sums[0].borrowed_byte_s));
	ll_use_report_fini(&report);
	open_it();
	key.number = 17;
	past.number = 2;
	past.recalls = 3;
	past.slept_ns = 4;
	past.lendable_ns = 7;
	past.borrowed_ns = 5;
	past.borrowed_byte_s = 6;
	assert_int_equal(ll_use_batch_add(&batch, &key, &use, LL_USE_BATCH_ROWS), 0);
	assert_int_equal(ll_use_batch_end(&batch, &past), 0);
	assert_int_equal(ll_use_batch_count(&batch, &counter), 0);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
	report = read_all(LL_USE_BY_JOB);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.sums[0].number, 17);
	assert_string_equal(report.sums[0].key, "0123456789abcdef");
	assert_true(report.sums[0].borrowed_s == 1 && report.sums[0].borrowed_byte_s == 7);
	ll_use_report_fini(&report);
	assert_int_equal(ll_history_read(path, &query, &history, &err), 0);
	assert_int_equal(history.count, 2);
	assert_memory_equal(&history.jobs[0], &past, sizeof past);
	ll_history_fini(&history);
	assert_int_equal(ll_use_database_read_counters(database, &batch, &err), 0);
	assert_int_equal(batch.counters[0].borrowed_ns, 8);
	assert_int_equal(batch.counters[0].borrowed_unit_ms, 9);
	ll_use_batch_fini(&batch);
}

TEST(jobs_that_ended_are_found_by_user_tenant_end_and_moment)
{
	const struct ll_past_job jobs[] = {past_job(1, 1000, "a", LL_PAST_DONE), past_job(2, 1001, "a", LL_PAST_TIME),
					   past_job(3, 1000, "b", LL_PAST_TIME), past_job(4, 1001, "b", LL_PAST_DONE)};
	struct ll_history history;
	struct ll_history_query query = {.until_s = INT64_MAX, .most = 1};
	open_it();
	write_past(jobs, 4);
	assert_string_equal(past_numbers((struct ll_history_query){0}), "4 3 2 1 ");
	assert_string_equal(past_numbers((struct ll_history_query){.has_uid = true, .uid = 1000}), "3 1 ");
	assert_string_equal(past_numbers((struct ll_history_query){.tenant = "b"}), "4 3 ");
	assert_string_equal(past_numbers((struct ll_history_query){.how = LL_PAST_TIME}), "3 2 ");
	assert_string_equal(past_numbers((struct ll_history_query){.tenant = "b", .how = LL_PAST_TIME}), "3 ");
	assert_string_equal(past_numbers((struct ll_history_query){.since_s = HOUR_S + 23}), "4 3 ");
	assert_string_equal(past_numbers((struct ll_history_query){.until_s = HOUR_S + 22}), "1 ");
	assert_string_equal(past_numbers((struct ll_history_query){.most = 2}), "4 3 ...");
	assert_int_equal(ll_history_read(path, &query, &history, &err), 0);
	assert_memory_equal(&history.jobs[0], &jobs[3], sizeof jobs[3]);
	ll_history_fini(&history);
	assert_int_equal(ll_use_database_forget(database, HOUR_S + 23, &err), 0);
	assert_string_equal(past_numbers((struct ll_history_query){0}), "4 3 ");
}

/* Of a job that the former loadlined knew: it came again, it ended, or nobody told its end. */
TEST(a_job_whose_end_was_not_seen_has_ended_when_the_former_loadlined_wrote_last)
{
	struct ll_past_job jobs[] = {past_job(1, 1000, "a", 0), past_job(2, 1000, "a", 0), past_job(3, 1000, "a", 0)};
	struct ll_past_job again, ended = past_job(2, 1000, "a", LL_PAST_DONE);
	struct ll_use_counter counter = {.job = "0123456789abcdef", .card = CARD, .used_ns = 3};
	struct ll_use_batch batch = {0};
	struct ll_use_former former;
	struct ll_history history;
	const struct ll_history_query query = {.until_s = INT64_MAX, .most = 9};
	open_it();
	for (size_t i = 0; i < 3; i++) {
		jobs[i].ended_s = 0;
		jobs[i].began_s = 1; /* the counter is stored now, which is before HOUR_S */
		jobs[i].used_ns = 0;
		snprintf(jobs[i].job, sizeof jobs[i].job, "%s", i ? "another" : "0123456789abcdef");
		jobs[i].job[0] = (char)('0' + i);
	}
	again = jobs[2];
	again.number = 7; /* the next loadlined numbers anew */
	write_past(jobs, 3);
	assert_int_equal(write_one(HOUR_S, "a", 1, 10), 0);
	assert_int_equal(ll_use_batch_count(&batch, &counter), 0);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
	assert_string_equal(past_numbers((struct ll_history_query){0}), "");
	assert_int_equal(ll_use_database_forget(database, 1, &err), 0);
	assert_int_equal(ll_use_database_read_former(database, &former, &err), 0);
	write_past(&again, 1);
	write_past(&ended, 1);
	assert_int_equal(ll_use_database_end_former(database, &former, &err), 0);
	assert_string_equal(past_numbers((struct ll_history_query){0}), "2 1 ");
	assert_int_equal(ll_history_read(path, &query, &history, &err), 0);
	assert_int_equal(history.jobs[1].how, LL_PAST_ENDED);
	assert_string_equal(history.jobs[1].why, "no loadlined saw its end");
	assert_int_equal(history.jobs[1].ended_s, former.last_s);
	assert_int_equal(history.jobs[1].used_ns, 20 * LL_NS_PER_S);
	ll_history_fini(&history);
	again.ended_s = HOUR_S + 30;
	write_past(&again, 1);
	assert_int_equal(ll_use_database_read_former(database, &former, &err), 0);
	assert_int_equal(former.last_row, 0);
}

TEST(a_status_that_comes_later_is_added_to_a_job_whose_end_is_not_known)
{
	const struct ll_past_job jobs[] = {past_job(1, 1000, "a", LL_PAST_ENDED), past_job(2, 1000, "a", LL_PAST_TIME)};
	const struct ll_past_status statuses[] = {{1, 1000, 3 << 8}, {2, 1000, 9}, {3, 1000, 9}};
	const struct ll_past_job third = past_job(3, 1000, "a", LL_PAST_ENDED);
	struct ll_use_batch batch = {0};
	open_it();
	write_past(jobs, 2);
	assert_int_equal(ll_use_batch_end(&batch, &third), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ll_use_batch_set_status(&batch, &statuses[i]), 0);
	assert_int_equal(batch.status_count, 2);
	assert_int_equal(ll_use_database_write(database, &batch, &err), 0);
	ll_use_batch_fini(&batch);
	assert_string_equal(past_numbers((struct ll_history_query){.how = LL_PAST_FAILED}), "1 ");
	assert_string_equal(past_numbers((struct ll_history_query){.how = LL_PAST_TIME}), "2 ");
	assert_string_equal(past_numbers((struct ll_history_query){.how = LL_PAST_KILLED}), "3 ");
}

/* Neither all jobs are looked at nor any sorted, however many there are: a million then take no longer than what is
 * sent. */
TEST(each_way_to_choose_jobs_that_ended_has_an_index)
{
	static const struct ll_history_query queries[] = {
	    {.most = 10},
	    {.most = 10, .has_uid = true, .uid = 1003},
	    {.most = 10, .tenant = "t2"},
	    {.most = 10, .how = LL_PAST_TIME},
	    {.most = 10, .has_uid = true, .uid = 1003, .tenant = "t3", .how = LL_PAST_TIME},
	};
	static const char generate[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
				       "INSERT INTO job SELECT i, i, 1000 + i % 10, 't' || (i % 10), '', 'python', '', "
				       "'0', i, i, i, 1, 0, 0, 0, 0, 0,"
				       "0, 2 + i % 8, 0, 0, '', 0, 0, 0, 0, 0, '' FROM n";
	open_it();
	sqlite3 *sqlite = ll_use_database_sqlite(database);
	assert_int_equal(sqlite3_exec(sqlite, generate, NULL, NULL, NULL), SQLITE_OK);
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		struct ll_history_query query = queries[i];
		sqlite3_stmt *statement = NULL;
		size_t rows = 0;
		query.until_s = INT64_MAX;
		assert_int_equal(ll_history_prepare(sqlite, &query, &statement), SQLITE_OK);
		while (sqlite3_step(statement) == SQLITE_ROW)
			rows++;
		assert_true(rows >= 10);
		assert_int_equal(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_SORT, 0), 0);
		assert_int_equal(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
		assert_true(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0) < 5000);
		sqlite3_finalize(statement);
	}
}
