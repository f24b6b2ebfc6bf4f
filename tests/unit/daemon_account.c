/* What loadlined makes of the counters in a job's page, which the job's programs can write. */
#include "base/clock.h"
#include "daemon/accounts/account.h"
#include "protocol/accounts.h"
#include "test.h"

#define S LL_NS_PER_S
#define BEGIN (1000 * S)
#define HOUR INT64_C(3600000)
#define GIB (UINT64_C(1) << 30)

enum { JOBS = 2 };

static struct ll_page pages[JOBS];
static struct ll_orders orders[JOBS];
static struct ll_tenant tenant = {.name = "team"};
static struct ll_job jobs[JOBS];
static struct ll_job_card cards[JOBS];
static struct ll_account *accounts[JOBS];
static struct ll_use_batch batch;

static int begin(void **state)
{
	(void)state;
	memset(pages, 0, sizeof pages);
	memset(orders, 0, sizeof orders);
	memset(jobs, 0, sizeof jobs);
	memset(cards, 0, sizeof cards);
	for (int i = 0; i < JOBS; i++) {
		jobs[i].tenant = &tenant;
		jobs[i].facts.uid = 7;
		jobs[i].facts.token[0] = (uint64_t)i + 1;
		jobs[i].pages.page = &pages[i];
		jobs[i].pages.orders = &orders[i];
		cards[i] = (struct ll_job_card){.job = &jobs[i], .uuid = "GPU-1", .claim_count = 1};
		accounts[i] = ll_account_new(&cards[i], BEGIN);
		assert_non_null(accounts[i]);
	}
	accounts[0]->next = accounts[1];
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < JOBS; i++)
		free(accounts[i]);
	ll_use_batch_fini(&batch);
	return 0;
}

TEST_EACH(begin, end);

/* Reads job 0 at that time, and returns all that was collected of it so far. */
static struct ll_use read_at(uint64_t now_ns)
{
	struct ll_use sum = {0};
	ll_account_read(accounts[0], now_ns);
	assert_int_equal(ll_account_collect(accounts[0], &batch, 100, HOUR), 0);
	for (size_t i = 0; i < batch.row_count; i++) {
		sum.used_ns += batch.rows[i].use.used_ns;
		sum.granted_ns += batch.rows[i].use.granted_ns;
		sum.idle_held_ns += batch.rows[i].use.idle_held_ns;
		sum.memory_byte_s += batch.rows[i].use.memory_byte_s;
		sum.borrowed_ns += batch.rows[i].use.borrowed_ns;
		sum.borrowed_byte_s += batch.rows[i].use.borrowed_byte_s;
	}
	return sum;
}

TEST(used_and_granted_time_are_counted_once)
{
	jobs[0].facts.limits.compute_permille = 250;
	pages[0].cards[0].work_ns = 2 * S;
	struct ll_use use = read_at(BEGIN + 10 * S);
	assert_int_equal(use.used_ns, 2 * S);
	assert_int_equal(use.granted_ns, 10 * S / 4);
	assert_int_equal(use.idle_held_ns, 10 * S);
	use = read_at(BEGIN + 10 * S);
	assert_int_equal(use.used_ns, 2 * S);
	pages[0].cards[0].work_ns = 3 * S;
	use = read_at(BEGIN + 20 * S);
	assert_int_equal(use.used_ns, 3 * S);
	assert_int_equal(batch.row_count, 1);
	assert_string_equal(batch.rows[0].key.tenant, "team");
	assert_int_equal(batch.rows[0].key.uid, 7);
}

TEST(no_time_is_granted_to_a_job_that_sleeps)
{
	read_at(BEGIN + 10 * S);
	accounts[0]->is_asleep = true;
	struct ll_use use = read_at(BEGIN + 20 * S);
	assert_true(use.granted_ns == 10 * S && use.idle_held_ns == 10 * S);
	accounts[0]->is_asleep = false;
	use = read_at(BEGIN + 25 * S);
	assert_true(use.granted_ns == 15 * S && use.idle_held_ns == 15 * S);
}

TEST(a_job_cannot_have_used_more_time_than_has_passed)
{
	pages[0].cards[0].work_ns = UINT64_MAX;
	assert_true(read_at(BEGIN + 5 * S).used_ns <= 8 * S);
	assert_true(read_at(BEGIN + 6 * S).used_ns <= 9 * S);
}

TEST(a_counter_that_goes_back_takes_nothing_away_and_is_not_counted_again)
{
	pages[0].cards[0].work_ns = 4 * S;
	assert_int_equal(read_at(BEGIN + 5 * S).used_ns, 4 * S);
	pages[0].cards[0].work_ns = 0;
	assert_int_equal(read_at(BEGIN + 6 * S).used_ns, 4 * S);
	pages[0].cards[0].work_ns = 4 * S;
	assert_int_equal(read_at(BEGIN + 7 * S).used_ns, 4 * S);
}

TEST(a_job_cannot_have_held_more_memory_than_the_card_has)
{
	orders[0].cards[0].usable_bytes = 80 * GIB;
	pages[0].cards[0].ended_unit_ms = UINT64_MAX / 2;
	assert_true(read_at(BEGIN + 10 * S).memory_byte_s <= 80.0 * (double)GIB * 13);
}

TEST(memory_over_time_is_counted_in_byte_seconds)
{
	pages[0].cards[0].ended_unit_ms = 3 * GIB / LL_MEMORY_UNIT * 1000;
	assert_true(read_at(BEGIN + 10 * S).memory_byte_s == 3.0 * (double)GIB);
}

/* Expected: the rows have what is beyond the counter, and the time between the two loadlineds is granted. */
TEST(the_next_loadlined_continues_at_the_stored_counter)
{
	const struct ll_use_counter counter = {
	    .used_ns = 100 * S, .memory_unit_ms = 5000, .since_ns = BEGIN - 900 * S, .at_ns = BEGIN - 4 * S};
	pages[0].cards[0].work_ns = 103 * S;
	pages[0].cards[0].ended_unit_ms = 7000;
	ll_account_read(accounts[0], BEGIN + S / 2);
	ll_account_set_base(accounts[0], &counter);
	struct ll_use use = read_at(BEGIN + S);
	assert_int_equal(use.used_ns, 3 * S);
	assert_true(use.memory_byte_s == 2000.0 * LL_MEMORY_UNIT / 1000);
	assert_int_equal(use.granted_ns, 5 * S);
	assert_int_equal(batch.counters[0].used_ns, 103 * S);
	assert_int_equal(batch.counters[0].since_ns, BEGIN - 900 * S);
}

/* 3 s before it borrows, 4 s as a borrower, 5 s after; the next loadlined has 4 s of the counter, and 6 s are new. */
TEST(what_a_job_used_while_it_borrowed_is_told_apart_also_by_the_next_loadlined)
{
	pages[0].cards[0].work_ns = 3 * S;
	pages[0].cards[0].ended_unit_ms = 1000;
	read_at(BEGIN + 4 * S);
	pages[0].cards[0].work_ns = 7 * S;
	pages[0].cards[0].ended_unit_ms = 3000;
	accounts[0]->is_lent = true;
	struct ll_use use = read_at(BEGIN + 8 * S);
	assert_int_equal(use.borrowed_ns, 4 * S);
	assert_true(use.borrowed_byte_s == 2000.0 * LL_MEMORY_UNIT / 1000);
	pages[0].cards[0].work_ns = 12 * S;
	accounts[0]->is_lent = false;
	use = read_at(BEGIN + 14 * S);
	assert_int_equal(use.used_ns, 12 * S);
	assert_int_equal(use.borrowed_ns, 4 * S);
	struct ll_use_counter counter = batch.counters[0];
	assert_int_equal(counter.borrowed_ns, 4 * S);
	free(accounts[0]);
	accounts[0] = ll_account_new(&cards[0], BEGIN + 20 * S);
	accounts[0]->is_lent = true;
	pages[0].cards[0].work_ns = 18 * S;
	ll_account_read(accounts[0], BEGIN + 21 * S);
	ll_account_set_base(accounts[0], &counter);
	assert_int_equal(read_at(BEGIN + 21 * S).borrowed_ns, 10 * S);
	assert_int_equal(accounts[0]->last.borrowed_ns, 10 * S);
}

TEST(a_job_that_the_next_loadlined_sees_at_its_end_alone_has_what_it_used_since)
{
	const struct ll_use_counter counter = {.used_ns = 10 * S, .since_ns = BEGIN, .at_ns = BEGIN + 15 * S};
	pages[0].cards[0].work_ns = 30 * S;
	cards[0].claim_count = 0;
	free(accounts[0]);
	accounts[0] = ll_account_new(&cards[0], BEGIN + 60 * S);
	ll_account_read(accounts[0], BEGIN + 60 * S);
	ll_account_end(accounts[0], false, BEGIN + 60 * S);
	ll_account_set_base(accounts[0], &counter);
	struct ll_use use = read_at(BEGIN + 60 * S);
	assert_int_equal(use.used_ns, 20 * S);
	assert_int_equal(use.granted_ns, 20 * S);
}

TEST(a_counter_of_another_boot_is_not_taken)
{
	const struct ll_use_counter counter = {.used_ns = 100 * S, .since_ns = 1, .at_ns = BEGIN + 100 * S};
	ll_account_set_base(accounts[0], &counter);
	pages[0].cards[0].work_ns = S;
	assert_int_equal(read_at(BEGIN + 2 * S).used_ns, S);
}

TEST(a_job_off_the_card_is_granted_nothing_unless_memory_is_promised_to_it)
{
	cards[0].claim_count = 0;
	assert_int_equal(read_at(BEGIN + S).granted_ns, 0);
	jobs[0].facts.limits.request_bytes = GIB;
	assert_int_equal(read_at(BEGIN + 3 * S).granted_ns, 2 * S);
}

/* The job had work at these moments of a word. */
static void note_work(int job, uint64_t number, uint64_t samples)
{
	pages[job].cards[0].samples.words[number % LL_WORK_WORDS] = number << LL_WORK_SAMPLES | samples;
}

static void share_by_space(void)
{
	for (int job = 0; job < JOBS; job++)
		jobs[job].facts.limits.space_permille = 500;
}

TEST(a_moment_at_which_two_jobs_have_work_by_space_is_shared_and_others_are_not)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S, number = (now_ns - S / 2) / LL_WORK_WORD_NS;
	share_by_space();
	ll_overlap_read(&overlap, accounts[0], BEGIN);
	note_work(0, number, 0xff);
	note_work(1, number, 0xf0f);
	note_work(0, number - 1, 0xf); /* one after the other */
	note_work(1, number - 1, 0xf0);
	ll_overlap_read(&overlap, accounts[0], now_ns);
	assert_int_equal(accounts[0]->shared_ns, 4 * LL_WORK_SAMPLE_NS / 2);
	assert_int_equal(accounts[1]->shared_ns, accounts[0]->shared_ns);
	ll_overlap_read(&overlap, accounts[0], now_ns + S / 10);
	assert_int_equal(accounts[0]->shared_ns, 4 * LL_WORK_SAMPLE_NS / 2);
	pages[0].cards[0].work_ns = 100 * LL_WORK_SAMPLE_NS;
	assert_int_equal(read_at(now_ns).used_ns, 98 * LL_WORK_SAMPLE_NS);
}

/* By time slices each program counts its own part. */
TEST(by_slices_a_moment_is_not_shared)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S, number = (now_ns - S / 2) / LL_WORK_WORD_NS;
	ll_overlap_read(&overlap, accounts[0], BEGIN);
	note_work(0, number, LL_WORK_BITS);
	note_work(1, number, LL_WORK_BITS);
	ll_overlap_read(&overlap, accounts[0], now_ns);
	assert_int_equal(accounts[0]->shared_ns + accounts[1]->shared_ns, 0);
}

/* Expected: 12 s of work in 10 s; 2 s are taken off in proportion, and later work has room again. */
TEST(all_jobs_together_use_no_more_time_than_has_passed)
{
	struct ll_overlap overlap = {0};
	const uint64_t ends_ns = BEGIN + 10 * S;
	pages[0].cards[0].work_ns = 9 * S;
	pages[1].cards[0].work_ns = 3 * S;
	for (int job = 0; job < JOBS; job++)
		ll_account_read(accounts[job], ends_ns);
	ll_overlap_read(&overlap, accounts[0], ends_ns);
	assert_in_range(accounts[0]->shared_ns, 3 * S / 2 - 10, 3 * S / 2);
	assert_in_range(accounts[1]->shared_ns, S / 2 - 10, S / 2);
	pages[1].cards[0].work_ns = 4 * S;
	ll_account_read(accounts[1], ends_ns + S);
	ll_overlap_read(&overlap, accounts[0], ends_ns + S);
	assert_in_range(accounts[0]->shared_ns + accounts[1]->shared_ns, 2 * S - 20, 2 * S);
}

/* After a restart of loadlined: the job's time of before has been bounded by the former one. */
TEST(time_before_this_loadlined_is_not_bounded_again)
{
	struct ll_overlap overlap = {0};
	pages[0].cards[0].work_ns = 100 * S;
	struct ll_account *account = ll_account_new(&cards[0], BEGIN);
	assert_non_null(account);
	ll_overlap_read(&overlap, account, BEGIN);
	pages[0].cards[0].work_ns = 101 * S;
	ll_account_read(account, BEGIN + 2 * S);
	ll_overlap_read(&overlap, account, BEGIN + 2 * S);
	assert_int_equal(account->shared_ns, 0);
	free(account);
}

/* The number of a word is kept in 16 bits. */
TEST(a_word_of_another_time_is_not_read)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S, number = (now_ns - S / 2) / LL_WORK_WORD_NS;
	share_by_space();
	ll_overlap_read(&overlap, accounts[0], BEGIN);
	note_work(0, number, LL_WORK_BITS);
	note_work(1, number - LL_WORK_WORDS, LL_WORK_BITS);
	ll_overlap_read(&overlap, accounts[0], now_ns);
	assert_int_equal(accounts[0]->shared_ns + accounts[1]->shared_ns, 0);
}

TEST(a_job_alone_shares_nothing)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S;
	snprintf(cards[1].uuid, sizeof cards[1].uuid, "GPU-2");
	free(accounts[1]);
	accounts[1] = accounts[0]->next = ll_account_new(&cards[1], BEGIN);
	for (int job = 0; job < JOBS; job++)
		note_work(job, (now_ns - S / 2) / LL_WORK_WORD_NS, LL_WORK_BITS);
	ll_overlap_read(&overlap, accounts[0], now_ns);
	assert_int_equal(accounts[0]->shared_ns, 0);
	assert_int_equal(accounts[1]->shared_ns, 0);
}

/* The user of the second job knows the name of the first one, and chooses the tokens to get it. */
TEST(no_user_can_give_a_job_the_name_of_anothers)
{
	struct ll_job_facts facts = {.uid = 7, .token = {11, 12}}, forged = {.uid = 8, .token = {11, 12}};
	char name[LL_USE_JOB_SIZE], forged_name[LL_USE_JOB_SIZE];
	ll_account_name(&facts, name);
	ll_account_name(&forged, forged_name);
	assert_int_not_equal(strcmp(name, forged_name), 0);
	assert_int_equal(strncmp(name, forged_name, 16), 0);
}
