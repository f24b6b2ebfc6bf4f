/* What the card takes for what a program asks: measured figures, and sizes that no card has. */

#include "test.h"

#include "shim/memory/memory.h"

#define MIB UINT64_C(0x100000)

TEST(contexts_follow_the_card_and_the_stack)
{
	struct ll_footprint_card h200 = {.sm_count = 132, .threads_per_sm = 2048};
	assert_int_equal(ll_footprint_context(&h200, 1024), 528 * MIB); /* 526.8 measured */
	assert_int_equal(ll_footprint_context(&h200, 0), 264 * MIB);    /* 262.8 */
	assert_int_equal(ll_footprint_stacks(&h200, 8192) - ll_footprint_stacks(&h200, 1024), 1848 * MIB);
	assert_int_equal(ll_footprint_context(&h200, UINT64_MAX), UINT64_MAX);
	struct ll_footprint_card unknown = {0};
	assert_int_equal(ll_footprint_context(&unknown, 1024), 0);
}

TEST(sizes_that_overflow_are_larger_than_any_limit)
{
	assert_int_equal(ll_footprint_plain(UINT64_MAX), UINT64_MAX);
	assert_int_equal(ll_footprint_plain(UINT64_MAX - 2 * MIB), UINT64_MAX - 2 * MIB + 1);
	assert_int_equal(ll_footprint_pitched(UINT64_MAX / 2, 3), UINT64_MAX);
	assert_int_equal(ll_footprint_pitched(0, UINT64_MAX), 0);
	struct ll_cu_array3d_descriptor shape = {.width = SIZE_MAX, .height = SIZE_MAX, .channels = 4};
	assert_int_equal(ll_footprint_array(&shape, 1), UINT64_MAX);
	shape.depth = SIZE_MAX;
	assert_int_equal(ll_footprint_array(&shape, UINT32_MAX), UINT64_MAX);
}

TEST(mipmaps_have_no_more_levels_than_their_longest_side)
{
	struct ll_cu_array3d_descriptor shape = {
	    .width = 1024, .height = 1024, .format = LL_CU_AD_FORMAT_FLOAT, .channels = 4};
	assert_int_equal(ll_footprint_array(&shape, 11), ll_footprint_array(&shape, 1000));
	assert_true(ll_footprint_array(&shape, 11) > ll_footprint_array(&shape, 1));
	struct ll_cu_array3d_descriptor none = {0};
	assert_int_equal(ll_footprint_array(&none, 3), 0);
	shape.flags = LL_CUDA_ARRAY3D_SPARSE;
	assert_int_equal(ll_footprint_array(&shape, 1), 0);
}
