/* What a timing event takes, from rows that were read on cards. */
#include "test.h"

#include "rules/share/event_gauge.h"

/* Distances from one event to the next, the host's and the card's. */
static struct ll_event_row row_of(const uint64_t (*apart)[2])
{
	struct ll_event_row row = {.host_ns = {700}, .card_ns = {9000}};
	for (unsigned i = 1; i < LL_EVENT_ROW; i++) {
		row.host_ns[i] = row.host_ns[i - 1] + apart[i - 1][0];
		row.card_ns[i] = row.card_ns[i - 1] + apart[i - 1][1];
	}
	return row;
}

static void assert_gauge(const uint64_t (*apart)[2], uint32_t count, uint64_t ns)
{
	struct ll_event_gauge gauge = {0};
	struct ll_event_row row = row_of(apart);
	ll_event_gauge_add(&gauge, &row);
	assert_int_equal(gauge.count, count);
	assert_int_equal(ll_event_gauge_ns(&gauge), ns);
}

TEST(the_middle_one_of_those_that_waited_counts)
{
	static const uint64_t swift[][2] = {{2167, 3903}, {1639, 2527}, {1476, 2912}, {1505, 2976},
					    {1760, 2880}, {1627, 2912}, {1500, 2912}};
	static const uint64_t late[][2] = {{2566, 3616}, {1864, 3072}, {1576, 3520}, {1669, 2976},
					   {2027, 3008}, {1448, 3008}, {1500, 2976}};
	assert_gauge(swift, 5, 2912);
	assert_gauge(late, 5, 3008);
}

TEST(of_a_card_that_is_as_fast_as_the_host_nothing_is_known)
{
	static const uint64_t fast[][2] = {{1280, 1280}, {1250, 1248}, {1260, 1280}, {1270, 1280},
					   {1250, 1248}, {1270, 1280}, {1250, 1280}};
	static const uint64_t slow_host[][2] = {{4000, 4100}, {2700, 3500}, {2600, 3400}, {4100, 3900},
						{3900, 4000}, {2900, 3400}, {4000, 3600}};
	assert_gauge(fast, 0, 0);
	assert_gauge(slow_host, 0, 0);
}

TEST(what_came_between_two_of_them_is_left_out)
{
	static const uint64_t busy[][2] = {{1300, 20000}, {1300, 21000}, {1300, 2930}, {1300, 2920},
					   {1300, 4800},  {1300, 2940},  {1300, 2910}};
	assert_gauge(busy, 5, 2930);
}

/* As several programs that start at once record them, on a card of 1.28 us: it waits for the host's memory, too. */
TEST(no_event_takes_longer_than_any_two_of_them_were_apart)
{
	static const uint64_t slow[][2] = {{2521, 5183}, {1901, 2465}, {2759, 2367}, {2449, 2369},
					   {2897, 3103}, {2181, 2401}, {2347, 2143}};
	static const uint64_t next[][LL_EVENT_ROW - 1][2] = {
	    {{2893, 3744}, {2516, 2431}, {2571, 3009}, {2139, 2399}, {2511, 2049}, {1996, 2112}, {2291, 2015}},
	    {{3010, 1279}, {1870, 1505}, {2449, 1280}, {2716, 1280}, {1970, 1568}, {2198, 1279}, {2020, 1281}},
	    {{2427, 5568}, {2446, 2367}, {2587, 2432}, {2629, 2657}, {2211, 2367}, {2431, 2400}, {2069, 2016}},
	};
	for (unsigned i = 0; i < 3; i++) {
		struct ll_event_gauge gauge = {0};
		struct ll_event_row row = row_of(slow);
		ll_event_gauge_add(&gauge, &row);
		assert_int_equal(ll_event_gauge_ns(&gauge), 2369); /* all that is known so far */
		assert_true(ll_event_gauge_wants_row(&gauge));
		row = row_of(next[i]);
		ll_event_gauge_add(&gauge, &row);
		assert_int_equal(ll_event_gauge_ns(&gauge), 0);
		assert_false(ll_event_gauge_wants_row(&gauge));
	}
}

TEST(rows_are_wanted_until_one_event_was_short_or_there_were_many)
{
	static const uint64_t swift[][2] = {{1300, 1300}, {1300, 1300}, {1300, 1300}, {1300, 1300},
					    {1300, 1300}, {1300, 1300}, {1300, 1300}};
	static const uint64_t none[][2] = {{2930, 2930}, {2930, 2930}, {2930, 2930}, {2930, 2930},
					   {2930, 2930}, {2930, 2930}, {2930, 2930}};
	static const uint64_t some[][2] = {{2300, 2930}, {2300, 2930}, {2300, 2930}, {2300, 2930},
					   {2300, 2930}, {2300, 2930}, {2300, 2930}};
	struct ll_event_gauge gauge = {0};
	struct ll_event_row row = row_of(none);
	for (unsigned i = 0; i < LL_EVENT_GAUGE_ROWS; i++) {
		assert_true(ll_event_gauge_wants_row(&gauge));
		ll_event_gauge_add(&gauge, &row);
	}
	assert_false(ll_event_gauge_wants_row(&gauge));
	row = row_of(some);
	ll_event_gauge_add(&gauge, &row); /* one that nobody asked for */
	assert_int_equal(ll_event_gauge_ns(&gauge), 0);
	gauge = (struct ll_event_gauge){0};
	for (unsigned i = 0; i < LL_EVENT_GAUGE_ROWS; i++) {
		assert_true(ll_event_gauge_wants_row(&gauge));
		ll_event_gauge_add(&gauge, &row);
	}
	assert_false(ll_event_gauge_wants_row(&gauge));
	assert_int_equal(ll_event_gauge_ns(&gauge), 2930);
	gauge = (struct ll_event_gauge){0};
	row = row_of(swift);
	ll_event_gauge_add(&gauge, &row);
	assert_false(ll_event_gauge_wants_row(&gauge));
}
