/* What loadlined makes of the counters in a job's page, which the job's programs can write. */
#include "base/clock.h"
#include "daemon/account.h"
#include "daemon/overlap.h"
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
	}
	return sum;
}

TEST(used_and_granted_time_are_counted_once)
{
	jobs[0].facts.limits.compute_permille = 250;
	pages[0].cards[0].gpu_time_ns = 2 * S;
	struct ll_use use = read_at(BEGIN + 10 * S);
	assert_int_equal(use.used_ns, 2 * S);
	assert_int_equal(use.granted_ns, 10 * S / 4);
	assert_int_equal(use.idle_held_ns, 10 * S);
	use = read_at(BEGIN + 10 * S);
	assert_int_equal(use.used_ns, 2 * S);
	pages[0].cards[0].gpu_time_ns = 3 * S;
	use = read_at(BEGIN + 20 * S);
	assert_int_equal(use.used_ns, 3 * S);
	assert_int_equal(batch.row_count, 1);
	assert_string_equal(batch.rows[0].key.tenant, "team");
	assert_int_equal(batch.rows[0].key.uid, 7);
}

TEST(a_job_cannot_have_used_more_time_than_has_passed)
{
	pages[0].cards[0].gpu_time_ns = UINT64_MAX;
	assert_true(read_at(BEGIN + 5 * S).used_ns <= 8 * S);
	assert_true(read_at(BEGIN + 6 * S).used_ns <= 9 * S);
}

TEST(a_counter_that_goes_back_takes_nothing_away_and_is_not_counted_again)
{
	pages[0].cards[0].gpu_time_ns = 4 * S;
	assert_int_equal(read_at(BEGIN + 5 * S).used_ns, 4 * S);
	pages[0].cards[0].gpu_time_ns = 0;
	assert_int_equal(read_at(BEGIN + 6 * S).used_ns, 4 * S);
	pages[0].cards[0].gpu_time_ns = 4 * S;
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
	pages[0].cards[0].gpu_time_ns = 103 * S;
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

TEST(a_counter_of_another_boot_is_not_taken)
{
	const struct ll_use_counter counter = {.used_ns = 100 * S, .since_ns = 1, .at_ns = BEGIN + 100 * S};
	ll_account_set_base(accounts[0], &counter);
	pages[0].cards[0].gpu_time_ns = S;
	assert_int_equal(read_at(BEGIN + 2 * S).used_ns, S);
}

TEST(a_job_off_the_card_is_granted_nothing_unless_memory_is_promised_to_it)
{
	cards[0].claim_count = 0;
	assert_int_equal(read_at(BEGIN + S).granted_ns, 0);
	jobs[0].facts.limits.request_bytes = GIB;
	assert_int_equal(read_at(BEGIN + 3 * S).granted_ns, 2 * S);
}

static void work_in_bin(int job, uint64_t number, uint64_t bin_ns, uint64_t ns)
{
	struct ll_busy_bins *bins = &pages[job].cards[0].busy;
	uint64_t word = number << LL_BUSY_NUMBER_SHIFT | ns;
	if (bin_ns == LL_BUSY_BIN_NS)
		bins->words[number % LL_BUSY_BINS] = word;
	else
		bins->long_words[number % LL_BUSY_LONG_BINS] = word;
}

TEST(a_bin_that_two_jobs_have_filled_is_shared)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S, bin = (now_ns - S / 2) / LL_BUSY_LONG_BIN_NS;
	ll_overlap_read(&overlap, accounts[0], BEGIN);
	work_in_bin(0, bin, LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS);
	work_in_bin(1, bin, LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS);
	work_in_bin(0, bin - 1, LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS / 2); /* one after the other */
	work_in_bin(1, bin - 1, LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS / 2);
	assert_true(ll_overlap_read(&overlap, accounts[0], now_ns));
	assert_int_equal(accounts[0]->shared_ns, LL_BUSY_LONG_BIN_NS / 2);
	assert_int_equal(accounts[1]->shared_ns, LL_BUSY_LONG_BIN_NS / 2);
	ll_overlap_read(&overlap, accounts[0], now_ns + S / 10);
	assert_int_equal(accounts[0]->shared_ns, LL_BUSY_LONG_BIN_NS / 2);
	pages[0].cards[0].gpu_time_ns = LL_BUSY_LONG_BIN_NS * 3 / 2;
	assert_int_equal(read_at(now_ns).used_ns, LL_BUSY_LONG_BIN_NS);
}

/* Expected: a long bin with a pause in it is not full, and yet the overlap within it is found; not a second time by the
 * long bin. */
TEST(short_bins_find_an_overlap_beside_a_pause)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S, fine = (now_ns - S / 50) / LL_BUSY_BIN_NS;
	ll_overlap_read(&overlap, accounts[0], BEGIN + S / 2);
	for (int job = 0; job < JOBS; job++) {
		work_in_bin(job, fine, LL_BUSY_BIN_NS, LL_BUSY_BIN_NS);
		work_in_bin(job, fine * LL_BUSY_BIN_NS / LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS, LL_BUSY_BIN_NS);
	}
	ll_overlap_read_fine(&overlap, accounts[0], now_ns);
	assert_int_equal(accounts[0]->shared_ns + accounts[1]->shared_ns, LL_BUSY_BIN_NS);
	ll_overlap_read_fine(&overlap, accounts[0], now_ns + S / 100);
	ll_overlap_read(&overlap, accounts[0], now_ns + S / 2);
	assert_int_equal(accounts[0]->shared_ns + accounts[1]->shared_ns, LL_BUSY_BIN_NS);
}

TEST(a_job_alone_shares_nothing)
{
	struct ll_overlap overlap = {0};
	uint64_t now_ns = BEGIN + S;
	snprintf(cards[1].uuid, sizeof cards[1].uuid, "GPU-2");
	free(accounts[1]);
	accounts[1] = accounts[0]->next = ll_account_new(&cards[1], BEGIN);
	for (int job = 0; job < JOBS; job++)
		work_in_bin(job, (now_ns - S / 2) / LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS, LL_BUSY_LONG_BIN_NS);
	assert_false(ll_overlap_read(&overlap, accounts[0], now_ns));
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
