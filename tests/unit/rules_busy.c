/* The union of intervals, in whatever order they are told. */
#include "test.h"

#include <stdlib.h>

#include "rules/share/busy.h"

TEST(what_is_told_twice_counts_once)
{
	struct ll_busy busy = {0};
	assert_int_equal(ll_busy_add(&busy, 100, 200), 100);
	assert_int_equal(ll_busy_add(&busy, 150, 250), 50);
	assert_int_equal(ll_busy_add(&busy, 120, 180), 0);
	assert_int_equal(ll_busy_add(&busy, 300, 310), 10);
	assert_int_equal(ll_busy_add(&busy, 400, 350), 0);
	assert_int_equal(ll_busy_add(&busy, 250, 300), 50); /* between two */
	assert_int_equal(ll_busy_add(&busy, 0, 1000), 790);
	assert_int_equal(busy.count, 1);
}

/* A kernel of 30 ms in one stream, and short ones in another, of which each was told when it ended. */
TEST(a_long_one_that_is_told_after_many_short_ones_counts_whole)
{
	for (unsigned shorts = 1; shorts <= 5000; shorts *= 2) {
		struct ll_busy busy = {0};
		uint64_t length = 30000000, each = length / shorts, sum = 0;
		for (unsigned i = 0; i < shorts; i++)
			sum += ll_busy_add(&busy, i * each + each / 3, i * each + each / 2);
		assert_true(busy.count <= LL_BUSY_SPANS);
		assert_int_equal(sum, shorts * (each / 2 - each / 3));
		sum += ll_busy_add(&busy, 0, length);
		assert_in_range(sum, length - shorts, length + shorts);
		assert_int_equal(ll_busy_add(&busy, 0, length), 0);
	}
}

/* In any order, against a card that is looked at in steps. */
TEST(the_sum_is_the_union_however_they_come)
{
	enum { STEPS = 4000, INTERVALS = 60 };
	srand(5);
	for (unsigned round = 0; round < 200; round++) {
		static unsigned char is_busy[STEPS];
		struct ll_busy busy = {0};
		uint64_t sum = 0, truth = 0;
		memset(is_busy, 0, sizeof is_busy);
		for (unsigned i = 0; i < INTERVALS; i++) {
			unsigned start = (unsigned)rand() % STEPS, length = (unsigned)rand() % 200;
			unsigned end = start + length < STEPS ? start + length : STEPS;
			sum += ll_busy_add(&busy, start, end);
			memset(is_busy + start, 1, end - start);
		}
		for (unsigned i = 0; i < STEPS; i++)
			truth += is_busy[i];
		assert_int_equal(sum, truth);
	}
}
