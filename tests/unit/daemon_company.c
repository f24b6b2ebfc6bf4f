/* How jobs get on beside each other, as loadlined counts it over made-up pages. Times are made up too. */
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "protocol/company.h"
#include "test.h"

enum { MOST = 80, MOST_COUNTED = 16, UID = 1000 };

#define S LL_NS_PER_S

struct job {
	struct ll_page *page;
	struct ll_orders *orders;
	struct ll_card_job *share;
	struct ll_card_claim *claim;
};

static uv_loop_t loop;
static struct ll_cards cards;
static struct job jobs[MOST];
static size_t job_count;
static uint64_t now_ns;

static int setup(void **state)
{
	(void)state;
	job_count = 0;
	now_ns = 100 * S;
	memset(jobs, 0, sizeof jobs);
	return uv_loop_init(&loop) || ll_cards_init(&cards, &loop) ? -1 : 0;
}

static void leave(struct job *job)
{
	ll_card_claim_remove(job->claim);
	ll_card_job_leave(job->share);
	ll_page_unmap(job->page);
	ll_orders_unmap(job->orders);
	*job = (struct job){0};
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < job_count; i++)
		leave(&jobs[i]);
	ll_cards_fini(&cards);
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop);
}

TEST_EACH(setup, teardown);

static struct job *come_of(uint32_t uid, uint64_t program, const char *name, const struct ll_limits *limits)
{
	struct job *job = &jobs[job_count++];
	const uint64_t token[2] = {job_count, 1};
	char text[LL_PROGRAM_NAME_SIZE] = "";
	int page_fd, orders_fd;
	assert_int_equal(ll_page_make(&page_fd), 0);
	assert_int_equal(ll_orders_make(token, &orders_fd), 0);
	assert_int_equal(ll_page_map(page_fd, true, &job->page), 0);
	assert_int_equal(ll_orders_map(orders_fd, true, &job->orders), 0);
	close(page_fd);
	close(orders_fd);
	snprintf(text, sizeof text, "%s", name);
	ll_company_write_program(job->orders, program, text);
	const struct ll_card_join join = {
	    .uuid = "GPU-1", .id = job_count, .page = job->page, .orders = job->orders, .uid = uid, .limits = *limits};
	assert_int_equal(ll_cards_join(&cards, &join, &job->share), 0);
	job->page->slots[0].token = 1000 + job_count;
	assert_int_equal(ll_card_claim_add(job->share, 0, NULL, &job->claim), 0);
	return job;
}

static const struct ll_limits none;

static struct job *come(uint64_t program, const char *name, const struct ll_limits *limits)
{
	return come_of(UID, program, name, limits);
}

static void complete(struct job *job, uint64_t launches)
{
	job->page->slots[0].completed_launches += launches;
}

static bool look_after(uint64_t ns)
{
	now_ns += ns;
	return ll_cards_note_company(&cards, now_ns);
}

/* The rows that say anything. */
static size_t rows_of(const struct job *job, struct ll_company rows[LL_COMPANY_ROWS])
{
	size_t count = 0;
	for (size_t i = 0; i < LL_COMPANY_ROWS; i++)
		count += ll_company_read(&job->orders->company[i], &rows[count]);
	return count;
}

TEST(jobs_that_want_the_card_together_are_counted)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct job *one = come(11, "train.py", &none);
	complete(one, 500);
	assert_false(look_after(S)); /* it is alone */
	struct job *other = come(22, "infer.py", &none);
	assert_true(look_after(S));
	for (int i = 0; i < 6; i++) {
		complete(one, 100);
		complete(other, 10);
		assert_true(look_after(S));
	}
	/* At the first of these looks both were seen to work, and from then on it was the same company. */
	assert_int_equal(rows_of(one, rows), 1);
	assert_int_equal(rows[0].ns, 5 * S);
	assert_int_equal(rows[0].launches, 500);
	assert_int_equal(rows[0].way, LL_WAY_SLICES);
	assert_int_equal(rows[0].card, 0);
	assert_string_equal(rows[0].names, "infer.py");
	uint64_t key = ll_program_under(22, &none);
	assert_true(rows[0].program == ll_program_under(11, &none));
	assert_true(rows[0].others == ll_programs_key(&key, 1));
	assert_int_equal(rows_of(other, rows), 1);
	assert_int_equal(rows[0].launches, 50);
	assert_string_equal(rows[0].names, "train.py");
	struct ll_card_job_view view;
	ll_card_job_read(other->share, &view);
	assert_true(view.program == key && view.others == rows[0].others);
	assert_int_equal(view.company_ns, 5 * S);
	assert_int_equal(view.company_launches, 50);
}

TEST(who_rests_is_nobodys_company_and_who_waits_is)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct ll_card_job_view view;
	struct job *one = come(11, "train.py", &none), *other = come(22, "infer.py", &none);
	other->page->slots[0].want_since_ns = 1; /* a kernel of many seconds */
	for (int i = 0; i < 4; i++) {
		complete(one, 100);
		look_after(S);
	}
	assert_int_equal(rows_of(other, rows), 1);
	assert_int_equal(rows[0].launches, 0);
	assert_int_equal(rows[0].ns, 2 * S);
	other->page->slots[0].want_since_ns = 0;
	complete(one, 100);
	look_after(S);
	ll_card_job_read(one->share, &view);
	assert_int_equal(view.others, 0);
	assert_int_equal(rows_of(one, rows), 1);
	assert_int_equal(rows[0].ns, 2 * S);
}

TEST(another_company_another_limit_and_a_late_look_are_told_apart)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct job *one = come(11, "train.py", &none), *other = come(22, "infer.py", &none);
	for (int i = 0; i < 4; i++) {
		complete(one, 100);
		complete(other, 10);
		look_after(i == 3 ? 10 * S : S); /* after the last, who knows who came and went */
	}
	assert_int_equal(rows_of(one, rows), 1);
	assert_int_equal(rows[0].ns, S);
	struct job *third = come(33, "play", &none);
	for (int i = 0; i < 5; i++) {
		complete(one, 100);
		complete(other, 10);
		complete(third, 1);
		look_after(S);
	}
	assert_int_equal(rows_of(one, rows), 2);
	assert_int_equal(rows_of(third, rows), 1);
	assert_int_equal(rows[0].ns, 3 * S);
	assert_int_equal(rows[0].launches, 3);
	ll_card_job_set_limits(one->share, &(struct ll_limits){.weight_permille = 3000});
	for (int i = 0; i < 3; i++) {
		complete(one, 100);
		complete(other, 10);
		complete(third, 1);
		look_after(S);
	}
	assert_int_equal(rows_of(one, rows), 3);
	assert_int_equal(rows_of(third, rows), 2);
}

TEST(two_ways_at_once_unknown_programs_and_other_users_are_not_counted)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct job *one = come(11, "train.py", &none);
	struct job *bad[] = {come(22, "infer.py", &(struct ll_limits){.space_permille = 1000}), come(0, "", &none),
			     come_of(UID + 1, 44, "theirs", &none)};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		for (int i = 0; i < 4; i++) {
			complete(one, 100);
			complete(bad[k], 10);
			look_after(S);
		}
	}
	assert_int_equal(rows_of(one, rows), 0);
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
		assert_int_equal(rows_of(bad[k], rows), 0);
}

TEST(by_space_is_a_row_of_its_own)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct job *one = come(11, "train.py", &(struct ll_limits){.space_permille = 1000});
	struct job *other = come(22, "infer.py", &(struct ll_limits){.space_permille = 1000});
	for (int i = 0; i < 4; i++) {
		complete(one, 100);
		complete(other, 10);
		look_after(S);
	}
	assert_int_equal(rows_of(one, rows), 1);
	assert_int_equal(rows[0].way, LL_WAY_SPACE);
}

/* The shortest makes room. */
TEST(more_companies_than_rows_keep_the_longest)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	struct job *one = come(11, "train.py", &none), *other = come(22, "infer.py", &none);
	for (unsigned k = 0; k < LL_COMPANY_ROWS + 4; k++) {
		ll_card_job_set_limits(other->share, &(struct ll_limits){.weight_permille = 100 * (k + 1)});
		for (int i = 0; i < (k ? 3 : 30); i++) {
			complete(one, 100);
			complete(other, 10);
			look_after(S);
		}
	}
	assert_int_equal(rows_of(one, rows), LL_COMPANY_ROWS);
	uint64_t longest_ns = 0;
	for (size_t i = 0; i < LL_COMPANY_ROWS; i++)
		longest_ns = rows[i].ns > longest_ns ? rows[i].ns : longest_ns;
	assert_int_equal(longest_ns, 28 * S);
}

/* The looks go on when some of them rest. */
TEST(more_jobs_than_are_counted_change_nothing)
{
	struct ll_company rows[LL_COMPANY_ROWS];
	for (uint64_t i = 0; i < MOST; i++)
		come(11 + i, "busy", &none);
	for (int i = 0; i < 4; i++) {
		for (size_t k = 0; k < MOST; k++)
			complete(&jobs[k], 100);
		assert_true(look_after(S));
	}
	for (size_t k = 0; k < MOST; k++)
		assert_int_equal(rows_of(&jobs[k], rows), 0);
	for (int i = 0; i < 4; i++) {
		for (size_t k = 0; k < MOST_COUNTED; k++)
			complete(&jobs[k], 100);
		look_after(S);
	}
	assert_int_equal(rows_of(&jobs[0], rows), 1);
	assert_int_equal(rows[0].ns, 3 * S);
	assert_int_equal(rows_of(&jobs[MOST_COUNTED], rows), 0);
}
