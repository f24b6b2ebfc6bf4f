/* Submitted jobs: the name of the log, the records, and what they say of jobs that nobody watches any more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/submit/submit.h"
#include "test.h"

static char folder[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-submit.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

TEST(the_log_has_the_number_of_the_job_and_is_in_the_working_directory)
{
	char path[PATH_MAX];
	assert_int_equal(ll_submit_log_path("loadline-%j.out", 12, "/home/ann", path), 0);
	assert_string_equal(path, "/home/ann/loadline-12.out");
	assert_int_equal(ll_submit_log_path("/logs/%j/100%%", 7, "/home/ann", path), 0);
	assert_string_equal(path, "/logs/7/100%");
	assert_int_equal(ll_submit_log_path("x%q", 7, "/", path), -EINVAL);
	assert_int_equal(ll_submit_log_path("x%", 7, "/", path), -EINVAL);
	char large[PATH_MAX + 1];
	memset(large, 'x', PATH_MAX);
	large[PATH_MAX] = '\0';
	assert_int_equal(ll_submit_log_path(large, 7, "/", path), -ENAMETOOLONG);
}

TEST(a_session_of_a_login_is_known_by_its_control_group)
{
	assert_true(ll_submit_is_in_session("/user.slice/user-1000.slice/session-4.scope"));
	assert_false(ll_submit_is_in_session("/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope"));
	assert_false(ll_submit_is_in_session("/system.slice/cron.service"));
}

static struct ll_submit_record own_record(uint64_t number)
{
	struct ll_submit_record record = {.number = number, .job = UINT64_C(0xfedcba9876543210), .is_queued = true};
	ll_boot_id_read(record.boot);
	record.supervisor = record.first = ll_process_self();
	record.state = LL_SUBMIT_RUNS;
	snprintf(record.command, sizeof record.command, "python \"train\".py \xff");
	snprintf(record.log, sizeof record.log, "/tmp/a b");
	return record;
}

TEST_WITH(set_up, tear_down, a_record_comes_back_as_it_was_written)
{
	struct ll_submit_record record = own_record(12), again;
	assert_int_equal(ll_submit_write(folder, &record, NULL), 0);
	assert_int_equal(ll_submit_read(folder, 12, &again, NULL), 0);
	assert_true(again.job == record.job && again.is_queued);
	assert_string_equal(again.command, "python \"train\".py ?");
	assert_string_equal(again.log, record.log);
	assert_int_equal(again.state, LL_SUBMIT_RUNS);
	assert_true(ll_submit_first_lives(&again));
	assert_int_equal(ll_submit_read(folder, 13, &again, NULL), -ENOENT);
}

/* The reading decides: a supervisor that ends after it may have written the end. */
static enum ll_submit_state state_when_read(const struct ll_submit_record *record)
{
	struct ll_submit_record again;
	assert_int_equal(ll_submit_write(folder, record, NULL), 0);
	assert_int_equal(ll_submit_read(folder, record->number, &again, NULL), 0);
	return again.state;
}

TEST_WITH(set_up, tear_down, a_job_without_its_supervisor_or_of_another_boot_is_lost)
{
	struct ll_submit_record record = own_record(1);
	record.supervisor.start_ticks++;
	assert_int_equal(state_when_read(&record), LL_SUBMIT_LOST);
	assert_true(ll_submit_first_lives(&record));
	record = own_record(1);
	record.boot[0] ^= 1;
	assert_int_equal(state_when_read(&record), LL_SUBMIT_LOST);
	assert_false(ll_submit_first_lives(&record));
	record.state = LL_SUBMIT_ENDED;
	assert_int_equal(state_when_read(&record), LL_SUBMIT_ENDED);
}

TEST_WITH(set_up, tear_down, numbers_without_a_queue_go_up_and_are_given_once)
{
	uint64_t number = 0;
	struct ll_submit_record record = own_record(41);
	assert_int_equal(ll_submit_write(folder, &record, NULL), 0);
	assert_int_equal(ll_submit_take_number(folder, &number, NULL), 0);
	assert_int_equal(number, 42);
	assert_int_equal(ll_submit_take_number(folder, &number, NULL), 0);
	assert_int_equal(number, 43);
}

TEST_WITH(set_up, tear_down, old_ends_are_removed_and_what_runs_or_is_new_stays)
{
	struct ll_submit_record old = own_record(1), runs = own_record(2), *records = NULL;
	size_t count = 0;
	old.state = LL_SUBMIT_ENDED;
	old.ended_s = 1000;
	assert_int_equal(ll_submit_write(folder, &old, NULL), 0);
	assert_int_equal(ll_submit_write(folder, &runs, NULL), 0);
	ll_submit_prune(folder);
	assert_int_equal(ll_submit_read_all(folder, &records, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(records[0].number, 2);
	free(records);
}
