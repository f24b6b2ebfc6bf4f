/* Time told by several, each moment counted once. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/account.h"

#define BIN LL_BUSY_BIN_NS
#define MS UINT64_C(1000000)

static struct ll_busy_bins bins;

static int empty(void **state)
{
	(void)state;
	memset(&bins, 0, sizeof bins);
	return 0;
}

static void what_is_told_once_counts_whole(void **state)
{
	(void)state;
	uint64_t told_ns = 0, counted_ns = 0, now_ns = 123456789;
	srand(3);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t ns = (uint64_t)(rand() % 3000000);
		counted_ns += ll_busy_bins_add(&bins, now_ns, now_ns + ns);
		told_ns += ns;
		now_ns += ns + (uint64_t)(rand() % 1000000);
	}
	assert_int_equal(counted_ns, told_ns);
}

static void the_same_time_told_by_several_counts_once(void **state)
{
	(void)state;
	uint64_t counted_ns = 0;
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned process = 0; process < 4; process++)
			counted_ns += ll_busy_bins_add(&bins, i * 3 * BIN / 2, (i + 1) * 3 * BIN / 2);
	}
	assert_int_equal(counted_ns, 1500 * BIN);
}

/* Two that have the card in turn, each told as it ends: the second one's first. */
static void order_does_not_matter(void **state)
{
	(void)state;
	uint64_t counted_ns = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		counted_ns += ll_busy_bins_add(&bins, (4 * i + 2) * BIN, (4 * i + 4) * BIN);
		counted_ns += ll_busy_bins_add(&bins, 4 * i * BIN, (4 * i + 2) * BIN);
	}
	assert_int_equal(counted_ns, 4000 * BIN);
}

/* Long kernels of processes that the card runs in slices: each sees the whole time of the others pass. */
static void long_kernels_of_several_count_once(void **state)
{
	(void)state;
	uint64_t lengths_ns[] = {33 * MS, 50 * MS, 100 * MS + 7, 333 * MS, 1500 * MS}, now_ns = 123456789;
	for (unsigned kind = 0; kind < sizeof lengths_ns / sizeof *lengths_ns; kind++) {
		uint64_t begin_ns = now_ns, counted_ns = 0;
		for (unsigned i = 0; i < 20; i++) {
			for (unsigned process = 0; process < 3; process++)
				counted_ns += ll_busy_bins_add(&bins, now_ns, now_ns + lengths_ns[kind]);
			now_ns += lengths_ns[kind];
		}
		assert_in_range(counted_ns, now_ns - begin_ns, now_ns - begin_ns + LL_BUSY_LONG_BIN_NS);
		now_ns += 100 * MS;
	}
}

/* One has a long kernel, the other many short ones meanwhile, told long before it ends. */
static void a_long_kernel_beside_short_ones_counts_once(void **state)
{
	(void)state;
	uint64_t counted_ns = 0, begin_ns = 987654321;
	for (uint64_t at_ns = begin_ns; at_ns < begin_ns + 800 * MS; at_ns += 2 * MS)
		counted_ns += ll_busy_bins_add(&bins, at_ns, at_ns + MS);
	assert_int_equal(counted_ns, 400 * MS);
	counted_ns += ll_busy_bins_add(&bins, begin_ns, begin_ns + 800 * MS);
	assert_in_range(counted_ns, 800 * MS, 800 * MS + LL_BUSY_LONG_BIN_NS);
}

static void long_stretches_and_those_of_long_ago_count_as_told(void **state)
{
	(void)state;
	uint64_t s = 1000000000;
	assert_int_equal(ll_busy_bins_add(&bins, s, 11 * s), 10 * s);
	assert_int_equal(ll_busy_bins_add(&bins, s, 2 * s), s);
	assert_int_equal(ll_busy_bins_add(&bins, 11 * s - BIN, 11 * s), 0);
	assert_int_equal(ll_busy_bins_add(&bins, 5 * s, 5 * s), 0);
	assert_int_equal(ll_busy_bins_add(&bins, 6 * s, 5 * s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(what_is_told_once_counts_whole, empty),
	    cmocka_unit_test_setup(the_same_time_told_by_several_counts_once, empty),
	    cmocka_unit_test_setup(order_does_not_matter, empty),
	    cmocka_unit_test_setup(long_kernels_of_several_count_once, empty),
	    cmocka_unit_test_setup(a_long_kernel_beside_short_ones_counts_once, empty),
	    cmocka_unit_test_setup(long_stretches_and_those_of_long_ago_count_as_told, empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
