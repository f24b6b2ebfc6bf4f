/* How jobs of the queue ended, and what a job that waits for their good end does then. */
#include "daemon/queue/state.h"

#include <signal.h>
#include <string.h>

#include "test.h"

enum { ANN = 1001, BOB = 1002 };
#define SECOND_NS UINT64_C(1000000000)

static struct ll_ended ended;

static int set_up(void **state)
{
	(void)state;
	ended.count = 0;
	return 0;
}

static struct ll_ended_job job_of(uint32_t uid, uint64_t number)
{
	return (struct ll_ended_job){
	    .number = number, .token = number + 1000, .uid = uid, .has_run = true, .ended_ns = SECOND_NS};
}

static const char *why_not(const struct ll_ended_job *job, uint64_t number)
{
	static char text[128];
	ll_ended_explain(job, number, text, sizeof text);
	return text;
}

TEST_WITH(set_up, NULL, a_status_decides_and_is_told)
{
	struct ll_ended_job job = job_of(ANN, 5);
	ll_ended_add(&ended, &job);
	assert_false(ll_ended_set_status(&ended, 1005, BOB, 0));
	assert_false(ll_ended_set_status(&ended, 9999, ANN, 0));
	assert_true(ll_ended_set_status(&ended, 1005, ANN, 0));
	assert_int_equal(ll_ended_judge(ll_ended_find(&ended, 5), SECOND_NS), LL_ENDED_OK);
	assert_true(ll_ended_set_status(&ended, 1005, ANN, 3 << 8));
	assert_int_equal(ll_ended_judge(ll_ended_find(&ended, 5), SECOND_NS), LL_ENDED_FAILED);
	assert_string_equal(why_not(ll_ended_find(&ended, 5), 5), "job 5 ended with status 3");
	assert_true(ll_ended_set_status(&ended, 1005, ANN, SIGKILL));
	assert_int_equal(ll_ended_judge(ll_ended_find(&ended, 5), SECOND_NS), LL_ENDED_FAILED);
	assert_string_equal(why_not(ll_ended_find(&ended, 5), 5), "job 5 was ended by signal 9");
}

TEST_WITH(set_up, NULL, a_status_that_may_come_is_waited_for)
{
	struct ll_ended_job job = job_of(ANN, 5);
	assert_int_equal(ll_ended_judge(&job, SECOND_NS), LL_ENDED_UNKNOWN);
	job.tells_status = true;
	assert_int_equal(ll_ended_judge(&job, 3 * SECOND_NS), LL_ENDED_PENDING);
	assert_int_equal(ll_ended_judge(&job, 4 * SECOND_NS), LL_ENDED_UNKNOWN);
	job.ended_ns = 0; /* a former loadlined saw the end */
	assert_int_equal(ll_ended_judge(&job, SECOND_NS), LL_ENDED_UNKNOWN);
	assert_non_null(strstr(why_not(&job, 5), "nobody told its status"));
}

TEST_WITH(set_up, NULL, a_job_that_did_not_run_has_failed_and_an_unknown_one_is_unknown)
{
	struct ll_ended_job job = job_of(ANN, 5);
	job.has_run = false;
	assert_int_equal(ll_ended_judge(&job, SECOND_NS), LL_ENDED_FAILED);
	assert_string_equal(why_not(&job, 5), "job 5 was not run");
	assert_int_equal(ll_ended_judge(NULL, SECOND_NS), LL_ENDED_UNKNOWN);
	assert_string_equal(why_not(NULL, 7), "job 7: unknown, or it ended too long ago");
}

TEST_WITH(set_up, NULL, a_job_is_found_by_each_of_its_numbers)
{
	struct ll_ended_job job = job_of(ANN, 5);
	job.job_number = 8;
	ll_ended_add(&ended, &job);
	assert_int_equal(ll_ended_find(&ended, 5)->number, 5);
	assert_int_equal(ll_ended_find(&ended, 8)->number, 5);
	assert_null(ll_ended_find(&ended, 0));
	assert_null(ll_ended_find(&ended, 6));
}

TEST_WITH(set_up, NULL, a_user_with_many_jobs_does_not_push_out_those_of_others)
{
	struct ll_ended_job first = job_of(ANN, 1);
	ll_ended_add(&ended, &first);
	for (uint64_t number = 2; number < 2 * LL_ENDED_MAX; number++) {
		struct ll_ended_job job = job_of(BOB, number);
		ll_ended_add(&ended, &job);
	}
	assert_int_equal(ended.count, LL_ENDED_MAX);
	assert_non_null(ll_ended_find(&ended, 1));
	assert_null(ll_ended_find(&ended, 2));
	assert_non_null(ll_ended_find(&ended, 2 * LL_ENDED_MAX - 1));
}
