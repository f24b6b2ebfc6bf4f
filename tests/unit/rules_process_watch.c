#include "rules_plant.h"

#include "rules/hold/foreign.h"

#define MIB (UINT64_C(1) << 20)

enum { OWN = 100 };

static struct ll_process_watch watch;
static struct ll_arrival arrival;

static int begin(void **state)
{
	(void)state;
	ll_process_watch_init(&watch, OWN, 0);
	arrival = (struct ll_arrival){.kind = LL_ARRIVAL_NONE};
	return 0;
}

TEST_EACH(begin, NULL);

#define LIST(...)                                                                                                      \
	ll_process_watch_list(&watch, (const struct ll_card_process[]){__VA_ARGS__},                                   \
			      sizeof((const struct ll_card_process[]){__VA_ARGS__}) / sizeof(struct ll_card_process),  \
			      &arrival)

TEST(first_list_is_the_baseline)
{
	assert_false(LIST({OWN, 50 * MIB}, {200, 500 * MIB}, {300, 0}));
	assert_false(LIST({OWN, 50 * MIB}, {200, 500 * MIB}, {300, 0}));
	assert_int_equal(watch.count + watch.unlisted_count, 2);
	assert_int_equal(arrival.kind, LL_ARRIVAL_NONE);
}

TEST(newcomer_is_reported_once)
{
	assert_false(ll_process_watch_list(&watch, NULL, 0, &arrival));
	assert_false(LIST({OWN, 50 * MIB}));
	assert_true(LIST({OWN, 50 * MIB}, {200, 500 * MIB}));
	assert_int_equal(arrival.kind, LL_ARRIVAL_PROCESS);
	assert_int_equal(arrival.pid, 200);
	assert_true(arrival.bytes == 500 * MIB);
	assert_false(LIST({OWN, 50 * MIB}, {200, 500 * MIB}));
}

TEST(own_process_is_never_an_arrival)
{
	assert_false(ll_process_watch_list(&watch, NULL, 0, &arrival));
	assert_false(LIST({OWN, 50 * MIB}));
	assert_false(LIST({OWN, 500 * MIB}));
	assert_int_equal(watch.count + watch.unlisted_count, 0);
}

TEST(own_process_may_be_a_new_one)
{
	assert_false(LIST({OWN, 50 * MIB}));
	ll_process_watch_own(&watch, OWN + 1);
	assert_false(LIST({OWN + 1, 50 * MIB}));
	assert_int_equal(watch.count + watch.unlisted_count, 0);
}

TEST(process_that_left_and_came_back_is_new)
{
	assert_false(LIST({200, 500 * MIB}));
	assert_false(ll_process_watch_list(&watch, NULL, 0, &arrival));
	assert_true(LIST({200, 500 * MIB}));
	assert_int_equal(arrival.pid, 200);
}

TEST(growth_over_8_mib_in_one_step_is_reported)
{
	assert_false(LIST({200, 500 * MIB}, {300, 100 * MIB}));
	assert_false(LIST({200, 508 * MIB}, {300, 50 * MIB}));
	assert_false(LIST({200, 516 * MIB}, {300, 58 * MIB}));
	assert_true(LIST({200, 516 * MIB}, {300, 58 * MIB + 8 * MIB + 1}));
	assert_int_equal(arrival.kind, LL_ARRIVAL_GROWTH);
	assert_int_equal(arrival.pid, 300);
	assert_true(arrival.bytes == 8 * MIB + 1);
}

TEST(unknown_memory_is_no_growth)
{
	assert_false(LIST({200, 0}));
	assert_false(LIST({200, 500 * MIB}));
	assert_false(LIST({200, 0}));
	assert_false(LIST({200, 500 * MIB}));
}

TEST(newcomer_goes_before_growth)
{
	assert_false(LIST({200, 500 * MIB}));
	assert_true(LIST({200, 900 * MIB}, {300, MIB}));
	assert_int_equal(arrival.kind, LL_ARRIVAL_PROCESS);
	assert_int_equal(arrival.pid, 300);
}

TEST(pid_listed_twice_counts_once_with_the_larger_memory)
{
	assert_false(LIST({200, 20 * MIB}, {200, 500 * MIB}));
	assert_int_equal(watch.count + watch.unlisted_count, 1);
	assert_false(LIST({200, 500 * MIB}, {200, 20 * MIB}));
	assert_false(LIST({200, 500 * MIB}));
}

TEST(crowd_beyond_the_table_is_counted)
{
	enum { CROWD = LL_PROCESS_WATCH_MAX + 40 };
	struct ll_card_process crowd[CROWD + 1];
	for (uint32_t i = 0; i <= CROWD; i++)
		crowd[i] = (struct ll_card_process){.pid = 1000 + i, .memory_bytes = MIB};
	assert_false(ll_process_watch_list(&watch, crowd, CROWD, &arrival));
	assert_int_equal(watch.count + watch.unlisted_count, CROWD);
	/* The same crowd in another order is nobody new. */
	struct ll_card_process first = crowd[0];
	crowd[0] = crowd[CROWD - 1];
	crowd[CROWD - 1] = first;
	assert_false(ll_process_watch_list(&watch, crowd, CROWD, &arrival));
	assert_true(ll_process_watch_list(&watch, crowd, CROWD + 1, &arrival));
	assert_int_equal(arrival.kind, LL_ARRIVAL_PROCESS);
	assert_int_equal(arrival.pid, 0);
	assert_false(ll_process_watch_list(&watch, crowd, CROWD + 1, &arrival));
	/* Those who stay may be some that were not told apart. */
	assert_false(ll_process_watch_list(&watch, crowd + CROWD - 10, 10, &arrival));
	assert_true(ll_process_watch_list(&watch, crowd + CROWD - 11, 10, &arrival));
	assert_int_equal(arrival.pid, crowd[CROWD - 11].pid);
}

TEST(memory_not_ours_that_grows_is_reported)
{
	assert_false(ll_process_watch_memory(&watch, 500 * MIB, 50 * MIB, true, &arrival));
	assert_false(ll_process_watch_memory(&watch, 508 * MIB, 50 * MIB, true, &arrival));
	assert_true(ll_process_watch_memory(&watch, 517 * MIB, 50 * MIB, true, &arrival));
	assert_int_equal(arrival.kind, LL_ARRIVAL_MEMORY);
	assert_int_equal(arrival.pid, 0);
	assert_true(arrival.bytes == 9 * MIB);
	assert_false(ll_process_watch_memory(&watch, 517 * MIB, 50 * MIB, true, &arrival));
	assert_false(ll_process_watch_memory(&watch, 100 * MIB, 50 * MIB, true, &arrival));
	assert_true(ll_process_watch_memory(&watch, 200 * MIB, 50 * MIB, true, &arrival));
}

TEST(own_memory_is_not_foreign)
{
	assert_false(ll_process_watch_memory(&watch, 500 * MIB, 0, true, &arrival));
	assert_false(ll_process_watch_memory(&watch, 700 * MIB, 0, false, &arrival));
	assert_false(ll_process_watch_memory(&watch, 763 * MIB, 263 * MIB, true, &arrival));
	assert_false(ll_process_watch_memory(&watch, 763 * MIB, 263 * MIB, true, &arrival));
	assert_false(ll_process_watch_memory(&watch, 520 * MIB, 20 * MIB, true, &arrival));
	/* Less used than we claim to own: nothing foreign, not a huge number. */
	assert_false(ll_process_watch_memory(&watch, 10 * MIB, 20 * MIB, true, &arrival));
	assert_true(ll_process_watch_memory(&watch, 40 * MIB, 20 * MIB, true, &arrival));
	assert_true(arrival.bytes == 20 * MIB);
}

TEST(step_can_be_chosen)
{
	ll_process_watch_init(&watch, OWN, MIB);
	assert_false(LIST({200, 5 * MIB}));
	assert_true(LIST({200, 7 * MIB}));
}

TEST(reset_makes_new_baselines)
{
	assert_false(LIST({200, 5 * MIB}));
	assert_false(ll_process_watch_memory(&watch, 5 * MIB, 0, true, &arrival));
	ll_process_watch_reset(&watch);
	assert_int_equal(watch.count + watch.unlisted_count, 0);
	assert_false(LIST({200, 500 * MIB}, {300, 500 * MIB}));
	assert_false(ll_process_watch_memory(&watch, 1000 * MIB, 0, true, &arrival));
	assert_false(LIST({OWN, 500 * MIB}, {200, 500 * MIB}, {300, 500 * MIB}));
	assert_true(LIST({400, MIB}));
}
