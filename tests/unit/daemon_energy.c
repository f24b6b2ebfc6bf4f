/* Which job a card's energy belongs to. */
#include <math.h>

#include "base/clock.h"
#include "daemon/accounts/account.h"
#include "protocol/message_rows.h"
#include "test.h"

#define S LL_NS_PER_S
#define BEGIN (1000 * S)
#define HOUR INT64_C(3600000)

enum { PARTS = 3 };

static struct ll_energy_part parts[PARTS];

static void part(int i, double used_s, double idle_held_s, double on_card_s)
{
	parts[i] = (struct ll_energy_part){.used_ns = (uint64_t)(used_s * (double)S),
					   .idle_held_ns = (uint64_t)(idle_held_s * (double)S),
					   .on_card_ns = (uint64_t)(on_card_s * (double)S)};
}

static void assert_near(double value, double wanted, double tolerance)
{
	if (!(fabs(value - wanted) <= tolerance))
		fail_msg("%g is not within %g of %g", value, tolerance, wanted);
}

/* Divides 1000 J of 10 s. Expected: the first two parts get so much, and nobody the rest. */
static void expect_two(double first, double second, double nobody)
{
	double rest = ll_energy_divide(1000, 10 * S, parts, 2);
	assert_near(parts[0].joules, first, 1e-6);
	assert_near(parts[1].joules, second, 1e-6);
	assert_near(rest, nobody, 1e-6);
}

TEST(busy_time_divides_the_energy_and_the_rest_goes_to_those_that_hold_the_card_idle)
{
	part(0, 6, 0, 10);
	part(1, 2, 8, 10);
	expect_two(600, 400, 0);
	part(0, 0, 10, 10);
	part(1, 0, 5, 10);
	expect_two(1000. * 2 / 3, 1000. / 3, 0);
	part(0, 10, 0, 10);
	part(1, 0, 10, 10);
	expect_two(1000, 0, 0);
}

TEST(pauses_that_are_too_short_to_be_idle_held_belong_to_the_jobs_on_the_card)
{
	part(0, 4, 0, 10);
	part(1, 2, 0, 5);
	expect_two(400 + 400. * 2 / 3, 200 + 400. / 3, 0);
}

TEST(the_time_without_jobs_is_nobodys)
{
	part(0, 1, 0, 2);
	part(1, 0, 0, 0);
	expect_two(200, 0, 800);
	assert_near(ll_energy_divide(1000, 10 * S, NULL, 0), 1000, 0);
	assert_near(ll_energy_divide(1000, 0, parts, 2), 1000, 0);
}

TEST(jobs_that_say_more_than_the_time_that_has_passed_share_what_there_is)
{
	part(0, 30, 0, 10);
	part(1, 10, 100, 100);
	expect_two(750, 250, 0);
}

TEST(the_parts_and_nobodys_are_the_whole)
{
	for (int i = 0; i < 10000; i++) {
		for (int j = 0; j < PARTS; j++)
			part(j, rand() % 3 * (rand() % 700) / 100., rand() % 2 * (rand() % 1000) / 100.,
			     rand() % 2 * (rand() % 1500) / 100.);
		double sum = ll_energy_divide(1234.567, 10 * S, parts, PARTS);
		assert_true(sum >= -1e-9);
		for (int j = 0; j < PARTS; j++) {
			assert_true(parts[j].joules >= 0);
			sum += parts[j].joules;
		}
		assert_near(sum, 1234.567, 1e-6);
	}
}

/* ---- accounts and readings ---- */

enum { JOBS = 2 };

static struct ll_page pages[JOBS];
static struct ll_orders orders[JOBS];
static struct ll_tenant tenant = {.name = "team"};
static struct ll_job jobs[JOBS];
static struct ll_job_card cards[JOBS];
static struct ll_account *accounts[JOBS];
static struct ll_energy energy;

static int begin(void **state)
{
	(void)state;
	memset(pages, 0, sizeof pages);
	memset(orders, 0, sizeof orders);
	memset(jobs, 0, sizeof jobs);
	memset(&energy, 0, sizeof energy);
	for (int i = 0; i < JOBS; i++) {
		jobs[i].tenant = &tenant;
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
	return 0;
}

TEST_EACH(begin, end);

/* A round of the sensor so many seconds after BEGIN. Both jobs hold the card idle except for what was used. */
static void round_at(uint64_t seconds, uint64_t energy_mj)
{
	struct ll_message_sense_card rows[2] = {{.energy_mj = 77, .uuid = "GPU-2"}, {.uuid = "GPU-1"}};
	rows[1].energy_mj = energy_mj;
	for (int i = 0; i < JOBS; i++)
		ll_account_read(accounts[i], BEGIN + seconds * S);
	ll_energy_read(&energy, rows, 2, accounts[0], BEGIN + seconds * S);
}

/* Collects the account, and returns the use that is new. */
static struct ll_use collect(int job)
{
	struct ll_use_batch batch = {0};
	assert_int_equal(ll_account_collect(accounts[job], &batch, 100, HOUR), 0);
	struct ll_use use = batch.row_count ? batch.rows[0].use : (struct ll_use){0};
	ll_use_batch_fini(&batch);
	return use;
}

TEST(the_difference_of_two_readings_is_divided_once)
{
	round_at(1, 5000);
	assert_false(collect(0).knows_joules);
	assert_true(ll_energy_has_card(&energy, "GPU-1") && !ll_energy_has_card(&energy, "GPU-3"));
	pages[0].cards[0].work_ns = 3 * S;
	round_at(11, 105000);
	struct ll_use first = collect(0), second = collect(1);
	assert_true(first.knows_joules && second.knows_joules);
	assert_near(first.joules, 30 + 35, 1e-6);
	assert_near(second.joules, 35, 1e-6);
	round_at(12, 105000);
	assert_near(collect(0).joules + collect(1).joules, 0, 0);
}

/* ll_overlap_read finds it, and a batch subtracts it. */
TEST(time_that_jobs_share_counts_once_before_and_after_a_batch)
{
	round_at(0, 1000);
	pages[0].cards[0].work_ns = 6 * S;
	pages[1].cards[0].work_ns = 3 * S;
	for (int i = 0; i < JOBS; i++) {
		ll_account_read(accounts[i], BEGIN + 9 * S);
		accounts[i]->shared_ns = (uint64_t)(i + 1) * S;
	}
	collect(0);
	round_at(10, 11000);
	/* 5 s and 1 s of 10 s; both held the card idle for the same time. */
	assert_near(collect(0).joules, 5 + 2, 1e-6);
	assert_near(collect(1).joules, 1 + 2, 1e-6);
}

/* Of a job that was on the card when this loadlined began. */
TEST(what_a_job_used_before_its_account_began_counts_for_no_period)
{
	free(accounts[1]);
	accounts[0]->next = accounts[1] = NULL;
	pages[1].cards[0].work_ns = 500 * S;
	struct ll_message_sense_card row = {.energy_mj = 1000, .uuid = "GPU-1"};
	ll_energy_read(&energy, &row, 1, accounts[0], BEGIN);
	accounts[0]->next = accounts[1] = ll_account_new(&cards[1], BEGIN);
	assert_non_null(accounts[1]);
	pages[0].cards[0].work_ns = 5 * S;
	pages[1].cards[0].work_ns += 5 * S;
	round_at(10, 11000);
	assert_near(collect(0).joules, 5, 1e-6);
	assert_near(collect(1).joules, 5, 1e-6);
}

TEST(an_unknown_counter_stays_unknown_and_its_next_reading_has_all)
{
	round_at(1, 0);
	round_at(6, 0);
	assert_false(collect(0).knows_joules);
	round_at(11, 1000);
	round_at(16, 0);
	assert_false(collect(0).knows_joules);
	round_at(21, 3000);
	assert_near(collect(0).joules + collect(1).joules, 2, 1e-9);
}

TEST(a_counter_that_goes_back_counts_nothing)
{
	round_at(1, 1000000);
	round_at(6, 500);
	assert_false(collect(0).knows_joules);
	round_at(11, 4500);
	assert_near(collect(0).joules + collect(1).joules, 4, 1e-9);
}

TEST(an_ended_job_gets_its_part_of_the_next_reading_and_none_of_later_ones)
{
	round_at(1, 1000);
	round_at(6, 1000);
	pages[0].cards[0].work_ns = 2 * S;
	ll_account_read(accounts[0], BEGIN + 8 * S);
	ll_account_end(accounts[0], true, BEGIN + 8 * S);
	assert_false(ll_account_is_over(accounts[0], BEGIN + 8 * S));
	round_at(11, 11000);
	/* 2 s of 5 s by work; of the rest two parts of seven, as it held the card for 2 s and the other one for 5 s. */
	assert_near(collect(0).joules, 4 + 6 * 2. / 7, 1e-6);
	assert_true(ll_account_is_over(accounts[0], BEGIN + 11 * S));
	round_at(16, 21000);
	assert_near(collect(0).joules, 0, 0);
	assert_near(collect(1).joules, 10 + 6 * 5. / 7, 1e-6);
}

TEST(an_ended_job_does_not_wait_for_a_reading_that_does_not_come)
{
	ll_account_end(accounts[0], false, BEGIN);
	assert_true(ll_account_is_over(accounts[0], BEGIN));
	ll_account_end(accounts[1], true, BEGIN);
	assert_false(ll_account_is_over(accounts[1], BEGIN + LL_ENERGY_WAIT_NS));
	assert_true(ll_account_is_over(accounts[1], BEGIN + LL_ENERGY_WAIT_NS + 1));
}
