/* When a card, and a process on it, last had work, from samples of the card alone. */
#include "sensor/sensor.h"

#include "test.h"

#define S UINT64_C(1000000000)
#define WINDOW (S / 5)

static struct ll_idle_card card;

static int begin(void **state)
{
	(void)state;
	card = (struct ll_idle_card){0};
	return 0;
}

static int end(void **state)
{
	(void)state;
	return 0;
}

TEST_EACH(begin, end);

/* Samples of 200 ms with that use, from a second to a second. */
static void run_card(unsigned from_s, unsigned to_s, double percent)
{
	for (uint64_t end_ns = from_s * S + WINDOW; end_ns <= to_s * S; end_ns += WINDOW) {
		struct ll_idle_sample sample = {.end_ns = end_ns, .window_ns = WINDOW, .percent = percent};
		ll_idle_card_take(&card, &sample, 1);
	}
}

TEST(a_card_is_idle_since_its_last_sample_with_work)
{
	run_card(10, 20, 0);
	assert_int_equal(ll_idle_card_idle_ns(&card, 20 * S), 10 * S);
	run_card(20, 22, 50);
	assert_true(ll_idle_card_is_busy(&card, 22 * S));
	assert_int_equal(ll_idle_card_idle_ns(&card, 22 * S), 0);
	assert_int_equal(card.busy_ns, S);
	run_card(22, 30, 0);
	assert_int_equal(ll_idle_card_idle_ns(&card, 30 * S), 8 * S);
}

TEST(after_a_gap_in_the_samples_nothing_is_known_of_the_time_before)
{
	run_card(10, 20, 0);
	run_card(40, 42, 0);
	assert_int_equal(ll_idle_card_idle_ns(&card, 42 * S), 2 * S);
	assert_int_equal(ll_idle_card_idle_ns(&card, 60 * S), 0); /* the samples are old */
}

TEST(what_a_process_did_alone_is_its_own)
{
	struct ll_idle_process process = {0};
	uint64_t ago_ns;
	run_card(10, 20, 0);
	run_card(20, 25, 80);
	ll_idle_process_take(&process, &card, 20 * S, true);
	assert_int_equal(ll_idle_process_last(&process, &card, S, true, 25 * S, &ago_ns), LL_SENSE_LAST_NOW);
	run_card(25, 30, 0);
	ll_idle_process_take(&process, &card, 25 * S, true);
	assert_int_equal(ll_idle_process_last(&process, &card, S, true, 30 * S, &ago_ns), LL_SENSE_LAST_AGO);
	assert_int_equal(ago_ns, 5 * S);
	/* Beside another process it is still known, until the card works again. */
	assert_int_equal(ll_idle_process_last(&process, &card, S, false, 30 * S, &ago_ns), LL_SENSE_LAST_AGO);
}

TEST(work_beside_others_bounds_the_time_since_the_last_kernel)
{
	struct ll_idle_process process = {0};
	uint64_t ago_ns;
	run_card(10, 20, 0);
	run_card(20, 25, 80);
	ll_idle_process_take(&process, &card, 20 * S, false);
	assert_int_equal(ll_idle_process_last(&process, &card, S, false, 25 * S, &ago_ns), LL_SENSE_LAST_BUSY);
	run_card(25, 40, 0);
	assert_int_equal(ll_idle_process_last(&process, &card, S, false, 40 * S, &ago_ns), LL_SENSE_LAST_AT_LEAST);
	assert_int_equal(ago_ns, 15 * S);
}

TEST(a_process_has_had_no_work_before_it_began_nor_is_it_known_from_before_the_watch)
{
	struct ll_idle_process process = {0};
	uint64_t ago_ns;
	assert_int_equal(ll_idle_process_last(&process, &card, S, true, 5 * S, &ago_ns), LL_SENSE_LAST_UNKNOWN);
	run_card(10, 40, 0);
	assert_int_equal(ll_idle_process_last(&process, &card, S, true, 40 * S, &ago_ns), LL_SENSE_LAST_AT_LEAST);
	assert_int_equal(ago_ns, 30 * S);
	assert_int_equal(ll_idle_process_last(&process, &card, 35 * S, true, 40 * S, &ago_ns), LL_SENSE_LAST_AT_LEAST);
	assert_int_equal(ago_ns, 5 * S);
}
