/* The gaps of a pool that are certain (shim/memory/gaps.c): what is a gap for whom, against a model that knows every
 * byte. And what a graph's nodes can take (shim/memory/extents.c). */

#include "test.h"

#include "shim/memory/memory.h"
#include "shim/memory/pools.h"

#define UNIT UINT64_C(512)
#define BASE UINT64_C(0x700000000000)
#define MIB UINT64_C(0x100000)

static const struct ll_stream_place anybody = {.handle = NULL};
static const struct ll_stream_place one = {.handle = (struct ll_cu_stream *)0x1000};
static const struct ll_stream_place other = {.handle = (struct ll_cu_stream *)0x2000};

static void free_block(struct ll_gaps *gaps, uint64_t address, uint64_t bytes, const struct ll_stream_place *place,
		       uint64_t number)
{
	ll_gaps_expect(gaps, address, bytes, 7);
	ll_gaps_settle(gaps, 7, place, number);
}

TEST(a_gap_is_its_streams_until_the_program_has_waited)
{
	struct ll_gaps gaps = {.count = 0};
	assert_false(ll_gaps_fit(&gaps, 1, &one));
	free_block(&gaps, BASE, 1000, &one, 1);
	assert_true(ll_gaps_fit(&gaps, 1024, &one));
	assert_false(ll_gaps_fit(&gaps, 1025, &one));
	assert_false(ll_gaps_fit(&gaps, 1, &other));
	ll_gaps_waited(&gaps, &other, 1);
	ll_gaps_waited(&gaps, &one, 0); /* the wait began before the free */
	assert_false(ll_gaps_fit(&gaps, 1, &other));
	ll_gaps_waited(&gaps, &one, 1);
	assert_true(ll_gaps_fit(&gaps, 1024, &other));
	ll_gaps_fini(&gaps);
}

TEST(default_streams_differ_by_thread_and_context)
{
	struct ll_gaps gaps = {.count = 0};
	struct ll_stream_place legacy = {.handle = LL_CU_STREAM_LEGACY, .context = (struct ll_cu_context *)1};
	struct ll_stream_place elsewhere = {.handle = LL_CU_STREAM_LEGACY, .context = (struct ll_cu_context *)2};
	struct ll_stream_place mine = {.handle = LL_CU_STREAM_PER_THREAD, .thread = 1, .context = legacy.context};
	struct ll_stream_place yours = {.handle = LL_CU_STREAM_PER_THREAD, .thread = 2, .context = legacy.context};
	free_block(&gaps, BASE, UNIT, &legacy, 1);
	assert_false(ll_gaps_fit(&gaps, 1, &elsewhere));
	assert_false(ll_gaps_fit(&gaps, 1, &mine));
	free_block(&gaps, BASE + UNIT, UNIT, &mine, 2);
	assert_false(ll_gaps_fit(&gaps, 1, &yours));
	assert_true(ll_gaps_fit(&gaps, 1, &mine));
	assert_true(ll_gaps_fit(&gaps, 1, &legacy));
	ll_gaps_fini(&gaps);
}

TEST(what_is_taken_while_it_is_freed_is_no_gap)
{
	struct ll_gaps gaps = {.count = 0};
	ll_gaps_expect(&gaps, BASE, 4 * UNIT, 1);
	assert_false(ll_gaps_fit(&gaps, 1, &one));
	ll_gaps_remove(&gaps, BASE + UNIT, UNIT);
	/* Another thread frees the new block already. Its free is not the first one's. */
	ll_gaps_expect(&gaps, BASE + UNIT, UNIT, 2);
	ll_gaps_settle(&gaps, 1, &one, 1);
	assert_int_equal(gaps.count, 3);
	assert_true(ll_gaps_fit(&gaps, 2 * UNIT, &one));
	assert_false(ll_gaps_fit(&gaps, 1, &other));
	ll_gaps_settle(&gaps, 2, &other, 2);
	assert_true(ll_gaps_fit(&gaps, UNIT, &other));
	/* A free that failed leaves nothing. */
	ll_gaps_expect(&gaps, BASE, 4 * UNIT, 3);
	ll_gaps_settle(&gaps, 3, NULL, 3);
	assert_int_equal(gaps.count, 0);
	ll_gaps_fini(&gaps);
}

TEST(a_stream_that_ends_takes_its_gaps_along)
{
	struct ll_gaps gaps = {.count = 0};
	free_block(&gaps, BASE, UNIT, &one, 1);
	free_block(&gaps, BASE + UNIT, UNIT, &other, 2);
	free_block(&gaps, BASE + 2 * UNIT, UNIT, &anybody, 3);
	ll_gaps_forget_stream(&gaps, one.handle);
	assert_int_equal(gaps.count, 2);
	assert_true(ll_gaps_fit(&gaps, UNIT, &one));
	ll_gaps_clear(&gaps);
	assert_false(ll_gaps_fit(&gaps, 1, &other));
	ll_gaps_fini(&gaps);
}

TEST(only_so_many_are_remembered)
{
	struct ll_gaps gaps = {.count = 0};
	for (uint64_t i = 0; i < LL_GAPS_MOST + 10; i++)
		free_block(&gaps, BASE + 2 * i * UNIT, UNIT, &one, i);
	assert_int_equal(gaps.count, LL_GAPS_MOST);
	assert_int_equal(ll_gaps_next(&gaps, BASE + UNIT), BASE + 2 * UNIT);
	assert_int_equal(ll_gaps_next(&gaps, BASE + 2 * UNIT), BASE + 2 * UNIT);
	assert_int_equal(ll_gaps_next(&gaps, BASE + 2 * LL_GAPS_MOST * UNIT), UINT64_MAX);
	ll_gaps_fini(&gaps);
}

/* A pool of some units: a block's number, or 0 for what is free. A gap of the library is always one of the model. */
enum { UNITS = 200, ROUNDS = 20000 };

TEST(what_is_remembered_is_free)
{
	static unsigned owner[UNITS];
	struct ll_gaps gaps = {.count = 0};
	unsigned seed = 1;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		seed = seed * 1103515245 + 12345;
		unsigned at = seed / 65536 % UNITS, units = 1 + seed / 7919 % 12, free_units = 0;
		while (at + free_units < UNITS && !owner[at + free_units] && free_units < units)
			free_units++;
		if (free_units == units) {
			for (unsigned i = 0; i < units; i++)
				owner[at + i] = round;
			ll_gaps_remove(&gaps, BASE + at * UNIT, units * UNIT - seed % 500);
		} else if (owner[at]) {
			unsigned first = at, last = at;
			while (first > 0 && owner[first - 1] == owner[at])
				first--;
			while (last + 1 < UNITS && owner[last + 1] == owner[at])
				last++;
			for (unsigned i = first; i <= last; i++)
				owner[i] = 0;
			free_block(&gaps, BASE + first * UNIT, (last - first + 1) * UNIT, &one, round);
		}
		for (size_t i = 0; i < gaps.count; i++) {
			const struct ll_gap *gap = &gaps.gaps[i];
			assert_true(!i || gap->address >= gap[-1].address + gap[-1].bytes);
			for (uint64_t k = 0; k < gap->bytes / UNIT; k++)
				assert_int_equal(owner[(gap->address - BASE) / UNIT + k], 0);
		}
	}
	assert_true(gaps.count > 0);
	ll_gaps_fini(&gaps);
}

/* ---- graphs ---- */

TEST(nodes_at_the_same_addresses_need_their_memory_once)
{
	struct ll_graph_block blocks[] = {
	    {0, BASE + 200 * MIB, 40 * MIB}, {1, BASE, 33 * MIB},       {0, BASE, 20 * MIB}, {0, BASE, 40 * MIB},
	    {0, BASE + 30 * MIB, 40 * MIB},  {1, BASE, UINT64_C(1000)},
	};
	size_t count = sizeof blocks / sizeof blocks[0], of_card;
	ll_graph_need_sort(blocks, count);
	/* 70 MiB in one piece, and 40. */
	assert_int_equal(ll_graph_need(blocks, count, &of_card), (96 + 64) * MIB);
	assert_int_equal(of_card, 4);
	assert_int_equal(ll_graph_need(blocks + 4, count - 4, &of_card), 64 * MIB);
	assert_int_equal(of_card, 2);
}

TEST(a_need_that_overflows_is_more_than_any_limit)
{
	struct ll_graph_block blocks[] = {{0, UINT64_MAX - 10, 100}, {0, 4096, UINT64_MAX - 4096}};
	size_t of_card;
	ll_graph_need_sort(blocks, 2);
	assert_int_equal(ll_graph_need(blocks, 2, &of_card), UINT64_MAX);
	assert_int_equal(of_card, 2);
}

TEST(many_nodes_are_sorted)
{
	enum { COUNT = 5000 };
	static struct ll_graph_block blocks[COUNT];
	unsigned seed = 1;
	for (size_t i = 0; i < COUNT; i++) {
		seed = seed * 1103515245 + 12345;
		blocks[i] = (struct ll_graph_block){(int)(seed >> 30), BASE + (seed >> 8) * MIB, MIB};
	}
	ll_graph_need_sort(blocks, COUNT);
	for (size_t i = 1; i < COUNT; i++)
		assert_true(blocks[i].device > blocks[i - 1].device ||
			    (blocks[i].device == blocks[i - 1].device && blocks[i].address >= blocks[i - 1].address));
}
