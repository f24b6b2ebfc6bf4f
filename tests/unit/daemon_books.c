#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

static struct ll_job_facts facts_of(uint64_t token, const char *tenant, bool is_named, uint32_t uid)
{
	struct ll_job_facts facts = {.token = {token, 1}, .uid = uid, .state = LL_JOB_RUNNING};
	facts.flags = is_named ? LL_JOB_NAMED : 0;
	facts.limits.memory_bytes = token << 30;
	ll_message_text_set(facts.tenant, sizeof facts.tenant, tenant);
	return facts;
}

static struct ll_job *add(struct ll_books *books, struct ll_job_facts facts)
{
	struct ll_job *job = NULL;
	assert_int_equal(ll_books_add(books, &facts, 0, &job), 0);
	return job;
}

static int some_fd(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

TEST(a_name_of_a_user_is_one_tenant_and_a_job_without_a_name_its_own)
{
	struct ll_books books = {0};
	struct ll_job *one = add(&books, facts_of(1, "team", true, 1000));
	struct ll_job *two = add(&books, facts_of(2, "team", true, 1000));
	struct ll_job *other_user = add(&books, facts_of(3, "team", true, 1001));
	struct ll_job *unnamed = add(&books, facts_of(4, "team", false, 1000));
	struct ll_job *unnamed_too = add(&books, facts_of(5, "team", false, 1000));
	assert_ptr_equal(one->tenant, two->tenant);
	assert_ptr_not_equal(one->tenant, other_user->tenant);
	assert_ptr_not_equal(one->tenant, unnamed->tenant);
	assert_ptr_not_equal(unnamed->tenant, unnamed_too->tenant);
	assert_int_equal(books.tenant_count, 4);
	assert_int_equal(books.job_count, 5);
	assert_true(ll_books_tenant_limits(&books, one->tenant)->memory_bytes == UINT64_C(1)
										     << 30); /* its first job's */
	ll_books_fini(&books);
}

TEST(a_job_keeps_the_number_that_it_has_in_the_queue)
{
	struct ll_books books = {.last_job = 7};
	struct ll_job_facts first = facts_of(1, "team", true, 1000), second = facts_of(2, "team", true, 1000);
	struct ll_job_facts third = facts_of(3, "team", true, 1000);
	struct ll_job *queued = NULL, *other = NULL, *taken = NULL;
	assert_int_equal(ll_books_add(&books, &first, 0, &other), 0);
	assert_int_equal(ll_books_add(&books, &second, 5, &queued), 0);
	assert_int_equal(ll_books_add(&books, &third, 5, &taken), 0);
	assert_int_equal(other->number, 8);
	assert_int_equal(queued->number, 5);
	assert_int_equal(taken->number, 9);
	assert_ptr_equal(ll_books_after(&books, 0), queued);
	assert_ptr_equal(ll_books_after(&books, 5), other);
	ll_books_fini(&books);
}

TEST(the_books_sum_at_jobs_and_tenants)
{
	struct ll_books books = {0};
	struct ll_job *one = add(&books, facts_of(1, "team", true, 1000));
	struct ll_job *two = add(&books, facts_of(2, "team", true, 1000));
	assert_int_equal(one->tenant->jobs, 2);
	ll_books_remove(&books, one);
	assert_int_equal(two->tenant->jobs, 1);
	ll_books_remove(&books, two);
	assert_int_equal(books.tenant_count + books.job_count, 0);
	assert_null(books.tenants);
	assert_null(books.jobs);
}

TEST(what_goes_from_the_books_is_closed)
{
	struct ll_books books = {0};
	struct ll_job *job = add(&books, facts_of(1, "team", true, 1000));
	int process_fd = some_fd(), lifeline_fd = some_fd();
	job->process_fd = process_fd;
	job->lifeline_fd = lifeline_fd;
	ll_books_remove(&books, job);
	assert_int_equal(fcntl(process_fd, F_GETFD), -1);
	assert_int_equal(fcntl(lifeline_fd, F_GETFD), -1);
}

TEST(a_token_is_in_the_books_once)
{
	struct ll_books books = {0};
	struct ll_job_facts facts = facts_of(1, "other", true, 1000);
	struct ll_job *job = add(&books, facts_of(1, "team", true, 1000)), *none = NULL;
	assert_int_equal(ll_books_add(&books, &facts, 0, &none), -EEXIST);
	assert_null(none);
	assert_ptr_equal(ll_books_find_id(&books, facts.token[0]), job);
	assert_int_equal(books.tenant_count, 1);
	ll_books_fini(&books);
}

/* A list goes by numbers, so that jobs may come and go while it is sent. */
TEST(numbers_grow_and_are_not_used_again)
{
	struct ll_books books = {0};
	struct ll_job *one = add(&books, facts_of(1, "a", true, 1000));
	uint64_t first = one->number;
	ll_books_remove(&books, one);
	struct ll_job *two = add(&books, facts_of(2, "b", true, 1000));
	assert_true(two->number > first);
	assert_ptr_equal(ll_books_after(&books, first), two);
	assert_null(ll_books_after(&books, two->number));
	ll_books_fini(&books);
}
