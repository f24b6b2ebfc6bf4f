/* What part of a stretch of time was one's own, where others' work was on the card too. */
#include "test.h"

#include "base/clock.h"
#include "rules/share/slices.h"

#define MS LL_NS_PER_MS

TEST(time_alone_and_time_not_noted_is_ones_own)
{
	struct ll_slices slices = {0};
	assert_int_equal(ll_slices_own_ns(&slices, 5 * MS, 9 * MS), 4 * MS);
	for (uint64_t now_ns = 10 * MS; now_ns < 20 * MS; now_ns += MS / 10)
		ll_slices_note(&slices, now_ns, 0);
	assert_int_equal(ll_slices_own_ns(&slices, 11 * MS, 19 * MS), 8 * MS);
	assert_int_equal(ll_slices_own_ns(&slices, 5 * MS, 5 * MS), 0);
}

TEST(time_with_others_is_shared_evenly)
{
	struct ll_slices slices = {0};
	for (uint64_t now_ns = 10 * MS; now_ns <= 30 * MS; now_ns += MS / 10)
		ll_slices_note(&slices, now_ns, now_ns <= 20 * MS ? 1 : 3);
	assert_int_equal(ll_slices_own_ns(&slices, 12 * MS, 18 * MS), 3 * MS);
	assert_int_equal(slices.others_ns, 5 * MS + 7 * MS + MS / 2);
	assert_int_equal(ll_slices_own_ns(&slices, 22 * MS, 26 * MS), MS);
	assert_int_equal(ll_slices_own_ns(&slices, 18 * MS, 22 * MS), MS + MS / 2);
}

/* A kernel of 200 ms, of which the last 32 are known. */
TEST(a_stretch_that_began_long_ago_went_like_its_end)
{
	struct ll_slices slices = {0};
	for (uint64_t now_ns = 1; now_ns <= 300 * MS; now_ns += MS / 10)
		ll_slices_note(&slices, now_ns, 1);
	uint64_t own_ns = ll_slices_own_ns(&slices, 100 * MS, 300 * MS);
	assert_in_range(own_ns, 98 * MS, 102 * MS);
}

TEST(a_look_after_a_long_time_says_nothing_of_it)
{
	struct ll_slices slices = {0};
	ll_slices_note(&slices, 10 * MS, 1);
	ll_slices_note(&slices, 5000 * MS, 1);
	assert_int_equal(ll_slices_own_ns(&slices, 4990 * MS, 5000 * MS), 10 * MS);
	ll_slices_note(&slices, 4000 * MS, 1); /* backwards */
	assert_int_equal(ll_slices_own_ns(&slices, 4990 * MS, 5000 * MS), 10 * MS);
}
