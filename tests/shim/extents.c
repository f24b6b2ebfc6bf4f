/* The map of extents: against a naive model, whatever comes and goes, in every order, from any thread, none in a forked
 * child. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "shim/memory/memory.h"

#ifdef LL_HAS_SANITIZER
enum { MANY = 50000 };
#else
enum { MANY = 1000000 };
#endif
enum { CHUNK = 64 }; /* how many extents a chunk takes */

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (random_state >> 33) % bound;
}

static size_t count(void)
{
	size_t chunks;
	return ll_extents_count(&chunks);
}

static struct ll_extent plain(uint64_t address, uint64_t bytes)
{
	return (struct ll_extent){.kind = LL_EXTENT_PLAIN, .address = address, .bytes = bytes, .charged_bytes = bytes};
}

static void put(struct ll_extent extent)
{
	struct ll_extent stale;
	assert_int_equal(ll_extents_put(&extent, &stale), 0);
}

static void take(struct ll_extent extent)
{
	struct ll_extent taken;
	assert_true(ll_extents_remove(extent.kind, extent.address, &taken));
	assert_int_equal(taken.bytes, extent.bytes);
}

/* Takes out all, in the order of the map. */
static void empty_map(void)
{
	size_t chunks;
	struct ll_extent extent = {0};
	while (ll_extents_next(&extent))
		assert_true(ll_extents_remove(extent.kind, extent.address, NULL));
	assert_int_equal(ll_extents_count(&chunks), 0);
	assert_int_equal(chunks, 0);
}

/* ---- the naive model: what each unit of a small space belongs to ---- */

enum { UNITS = 3000, HANDLES = 200, STEPS = 100000, LONGEST = 12 };

static struct ll_extent model[UNITS + LONGEST]; /* of the extent that a unit is in; no bytes: it is free */
static bool has_handle[2][HANDLES];

static void put_as_model(struct ll_extent extent)
{
	struct ll_extent stale;
	int rc;
	while ((rc = ll_extents_put(&extent, &stale)) == -EEXIST) {
		const struct ll_extent *other = &model[stale.address];
		assert_memory_equal(other, &stale, sizeof stale);
		assert_true(stale.address < extent.address + extent.bytes &&
			    extent.address < stale.address + stale.bytes);
		memset(&model[stale.address], 0, stale.bytes * sizeof stale);
	}
	assert_int_equal(rc, 0);
	for (uint64_t i = 0; i < extent.bytes; i++) {
		assert_int_equal(model[extent.address + i].bytes, 0); /* all that was in the way was handed over */
		model[extent.address + i] = extent;
	}
}

static void find_as_model(uint64_t address)
{
	struct ll_extent found;
	const struct ll_extent *expected = &model[address];
	assert_int_equal(ll_extents_find_containing(address, &found), expected->bytes != 0);
	if (expected->bytes)
		assert_memory_equal(&found, expected, sizeof found);
	bool begins = expected->bytes && expected->address == address;
	assert_int_equal(ll_extents_find(LL_EXTENT_PLAIN, address, &found),
			 begins && expected->kind == LL_EXTENT_PLAIN);
	assert_int_equal(ll_extents_find(LL_EXTENT_BLOCK, address, &found),
			 begins && expected->kind == LL_EXTENT_BLOCK);
}

static void take_as_model(uint64_t address)
{
	struct ll_extent taken, expected = model[address];
	if (!expected.bytes)
		return;
	assert_int_equal(ll_extents_remove(expected.kind, address, &taken), expected.address == address);
	if (expected.address == address)
		memset(&model[address], 0, expected.bytes * sizeof expected);
}

static void flip_handle(uint64_t which, uint64_t handle)
{
	struct ll_extent extent = {.kind = which ? LL_EXTENT_PHYSICAL : LL_EXTENT_ARRAY, .address = handle};
	if (has_handle[which][handle])
		take(extent);
	else
		put(extent);
	has_handle[which][handle] = !has_handle[which][handle];
}

/* Every extent once, in its order. */
static void walk_as_model(void)
{
	struct ll_extent at = {0};
	for (uint64_t unit = 1; unit < UNITS; unit++) {
		if (!model[unit].bytes || model[unit].address != unit)
			continue;
		assert_true(ll_extents_next(&at));
		assert_memory_equal(&at, &model[unit], sizeof at);
	}
	for (uint64_t which = 0; which < 2; which++) {
		for (uint64_t handle = 0; handle < HANDLES; handle++) {
			if (!has_handle[which][handle])
				continue;
			assert_true(ll_extents_next(&at));
			assert_int_equal(at.kind, which ? LL_EXTENT_PHYSICAL : LL_EXTENT_ARRAY);
			assert_int_equal(at.address, handle);
		}
	}
	assert_false(ll_extents_next(&at));
}

TEST(it_does_as_a_naive_model_does)
{
	random_state = 7;
	for (int i = 0; i < STEPS; i++) {
		uint64_t address = 1 + random_below(UNITS - 1);
		/* For a while more is put than taken, then the other way round. */
		bool is_growing = i / 5000 % 2 == 0;
		if (random_below(10) < (is_growing ? 7 : 2)) {
			struct ll_extent extent = plain(address, 1 + random_below(is_growing ? 3 : LONGEST));
			extent.kind = random_below(3) ? LL_EXTENT_PLAIN : LL_EXTENT_BLOCK;
			extent.owner = (uint64_t)i;
			put_as_model(extent);
		} else {
			take_as_model(address);
		}
		find_as_model(1 + random_below(UNITS - 1));
		flip_handle(random_below(2), random_below(HANDLES));
		if (i % 500 == 0)
			walk_as_model();
	}
	walk_as_model();
	empty_map();
}

/* ---- orders ---- */

/* Where the extent of that turn is, in an order of `total`: a permutation of 0 .. total - 1. */
static uint64_t ascending(uint64_t turn, uint64_t total)
{
	(void)total;
	return turn;
}

static uint64_t descending(uint64_t turn, uint64_t total)
{
	return total - 1 - turn;
}

/* From both ends to the middle. */
static uint64_t inwards(uint64_t turn, uint64_t total)
{
	return turn % 2 ? total - 1 - turn / 2 : turn / 2;
}

/* In runs that each go down, one above the other: each new one goes between a full chunk and the next. */
static uint64_t in_runs(uint64_t turn, uint64_t total)
{
	uint64_t run = turn / CHUNK * CHUNK, length = total - run < CHUNK ? total - run : CHUNK;
	return run + length - 1 - turn % CHUNK;
}

/* A step that has no factor in common with a million, and lies far from what was there. */
static uint64_t scattered(uint64_t turn, uint64_t total)
{
	return turn * UINT64_C(618033) % total;
}

static uint64_t (*const orders[])(uint64_t turn, uint64_t total) = {ascending, descending, inwards, in_runs, scattered};
enum { ORDERS = sizeof orders / sizeof *orders };

static uint64_t address_of(uint64_t index)
{
	return (index + 1) * 512;
}

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fill_in_order(size_t order, uint64_t total)
{
	for (uint64_t i = 0; i < total; i++)
		put(plain(address_of(orders[order](i, total)), 512));
}

static void take_in_order(size_t order, uint64_t total)
{
	struct ll_extent taken;
	for (uint64_t i = 0; i < total; i++)
		assert_true(ll_extents_remove(LL_EXTENT_PLAIN, address_of(orders[order](i, total)), &taken));
}

/* Chunks are half full in the mean at least, and the map is small again when it is empty. */
TEST(every_order_of_coming_and_going)
{
	enum { TOTAL = 5000 };
	for (size_t in = 0; in < ORDERS; in++) {
		for (size_t out = 0; out < ORDERS; out++) {
			size_t chunks;
			struct ll_extent at = {0};
			fill_in_order(in, TOTAL);
			assert_int_equal(ll_extents_count(&chunks), TOTAL);
			assert_true(chunks <= 2 * TOTAL / CHUNK + 1);
			for (uint64_t i = 0; i < TOTAL; i++) {
				assert_true(ll_extents_next(&at));
				assert_int_equal(at.address, address_of(i));
			}
			take_in_order(out, TOTAL);
			assert_int_equal(ll_extents_count(&chunks), 0);
			assert_int_equal(chunks, 0);
		}
	}
}

/* One of each 64 stays, so that no chunk empties by itself. */
TEST(what_is_left_of_many_is_drawn_together)
{
	enum { TOTAL = 100 * CHUNK };
	size_t chunks;
	fill_in_order(0, TOTAL);
	for (uint64_t i = 0; i < TOTAL; i++) {
		if (i % CHUNK)
			take(plain(address_of(i), 512));
	}
	assert_int_equal(ll_extents_count(&chunks), 100);
	assert_true(chunks <= 8);
	for (uint64_t i = 0; i < TOTAL; i += CHUNK)
		take(plain(address_of(i), 512));
	assert_int_equal(count(), 0);
}

/* A host takes some 0.2 s in order, and 2 s if the addresses are scattered. One that is fifty times as slow passes. */
TEST(a_million_take_no_time)
{
	struct ll_extent found;
	for (size_t order = 0; order < ORDERS; order++) {
		if (orders[order] == inwards || orders[order] == in_runs)
			continue;
		double start = seconds_now();
		fill_in_order(order, MANY);
		assert_int_equal(count(), MANY);
		for (uint64_t i = 0; i < MANY; i++) {
			uint64_t index = orders[order](i, MANY);
			assert_true(ll_extents_find_containing(address_of(index) + 511, &found));
			assert_int_equal(found.address, address_of(index));
		}
		take_in_order(order, MANY);
		assert_true(seconds_now() - start < 100);
	}
	assert_int_equal(count(), 0);
}

/* ---- what each function does ---- */

TEST(an_address_lies_in_one_extent)
{
	struct ll_extent found, block = plain(0x30000, 0x1000);
	block.kind = LL_EXTENT_BLOCK;
	assert_false(ll_extents_find_containing(0x10000, &found));
	put(plain(0x10000, 0x1000));
	put(block);
	put((struct ll_extent){.kind = LL_EXTENT_ARRAY, .address = 0x20000, .bytes = 0x1000});
	assert_false(ll_extents_find_containing(0xffff, &found));
	assert_true(ll_extents_find_containing(0x10000, &found));
	assert_true(ll_extents_find_containing(0x10fff, &found));
	assert_int_equal(found.address, 0x10000);
	assert_false(ll_extents_find_containing(0x11000, &found));
	assert_false(ll_extents_find_containing(0x20000, &found)); /* a handle is no address */
	assert_true(ll_extents_find_containing(0x30001, &found));
	assert_int_equal(found.kind, LL_EXTENT_BLOCK);
	/* Backings have an order of their own, and lie under what the program sees. */
	assert_false(ll_extents_find_backing(0x10000, &found));
	put((struct ll_extent){.kind = LL_EXTENT_BACKING, .address = 0x10000, .bytes = 0x2000});
	assert_true(ll_extents_find_backing(0x11fff, &found));
	assert_int_equal(found.address, 0x10000);
	assert_false(ll_extents_find_backing(0xffff, &found));
	assert_false(ll_extents_find_backing(0x12000, &found));
	assert_true(ll_extents_find_containing(0x10fff, &found));
	assert_int_equal(found.kind, LL_EXTENT_PLAIN);
	assert_true(ll_extents_remove(LL_EXTENT_BACKING, 0x10000, &found));
	assert_false(ll_extents_find_containing(UINT64_MAX, &found));
	empty_map();
}

TEST(what_is_in_the_way_is_handed_over_one_by_one)
{
	struct ll_extent stale, large = plain(0x1000, 0x3000);
	put(plain(0x800, 0x801)); /* its last byte */
	put(plain(0x2000, 0x10));
	put(plain(0x3fff, 0x10));
	put(plain(0x4010, 0x10)); /* behind it */
	put((struct ll_extent){.kind = LL_EXTENT_ARRAY, .address = 0x1000});
	for (int i = 0; i < 3; i++)
		assert_int_equal(ll_extents_put(&large, &stale), -EEXIST);
	assert_int_equal(ll_extents_put(&large, &stale), 0);
	assert_int_equal(count(), 3);
	/* The same address and kind. */
	struct ll_extent again = plain(0x1000, 0x10);
	assert_int_equal(ll_extents_put(&again, &stale), -EEXIST);
	assert_int_equal(stale.bytes, 0x3000);
	assert_int_equal(ll_extents_put(&again, &stale), 0);
	/* A handle of the same kind, and of another one. */
	struct ll_extent array = {.kind = LL_EXTENT_ARRAY, .address = 0x1000, .charged_bytes = 5};
	assert_int_equal(ll_extents_put(&array, &stale), -EEXIST);
	assert_int_equal(stale.charged_bytes, 0);
	assert_int_equal(ll_extents_put(&array, &stale), 0);
	assert_false(ll_extents_remove(LL_EXTENT_MIPMAP, 0x1000, &stale));
	assert_true(ll_extents_remove(LL_EXTENT_ARRAY, 0x1000, &stale));
	assert_int_equal(stale.charged_bytes, 5);
	empty_map();
}

static bool count_down(struct ll_extent *extent, uint64_t by)
{
	extent->count -= by;
	return extent->count != 0;
}

TEST(a_change_in_place_may_end_it)
{
	struct ll_extent before, extent = {.kind = LL_EXTENT_CONTEXT, .address = 9, .count = 3};
	put(extent);
	assert_false(ll_extents_change(LL_EXTENT_GREEN, 9, count_down, 2, &before));
	assert_true(ll_extents_change(LL_EXTENT_CONTEXT, 9, count_down, 2, NULL));
	assert_true(ll_extents_change(LL_EXTENT_CONTEXT, 9, count_down, 1, &before));
	assert_int_equal(before.count, 1);
	assert_false(ll_extents_change(LL_EXTENT_CONTEXT, 9, count_down, 1, &before));
	assert_int_equal(count(), 0);
}

TEST(what_a_context_owns_goes_together)
{
	enum { TOTAL = 50000 };
	size_t chunks;
	uint64_t sum = 0;
	for (uint64_t i = 1; i <= TOTAL; i++) {
		struct ll_extent extent = plain(i << 21, i);
		extent.owner = i % 50 == 1 ? 1 : 2;
		put(extent);
		sum += extent.owner == 2 ? i : 0;
	}
	struct ll_extent unowned = {.kind = LL_EXTENT_PHYSICAL, .address = 4, .charged_bytes = 1};
	put(unowned);
	assert_int_equal(ll_extents_remove_owned(2), sum);
	assert_int_equal(ll_extents_remove_owned(2), 0);
	assert_int_equal(ll_extents_remove_owned(0), 0);
	assert_int_equal(ll_extents_count(&chunks), TOTAL / 50 + 1);
	assert_true(chunks <= 4 * (TOTAL / 50) / CHUNK + 1);
	for (uint64_t i = 1; i <= TOTAL; i += 50)
		take(plain(i << 21, i));
	take(unowned);
	assert_int_equal(ll_extents_remove_owned(1), 0);
	assert_int_equal(count(), 0);
}

static void *put_and_take(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 40;
	struct ll_extent extent;
	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 500; i++) {
			struct ll_extent own = plain(base + i * 512, 512);
			own.owner = base + i;
			if (ll_extents_put(&own, &extent) != 0)
				return NULL;
		}
		for (uint64_t i = 0; i < 500; i++) {
			if (!ll_extents_remove(LL_EXTENT_PLAIN, base + i * 512, &extent) || extent.owner != base + i)
				return NULL;
		}
	}
	return arg;
}

TEST(threads_do_not_disturb_each_other)
{
	pthread_t threads[16];
	for (uintptr_t i = 0; i < 16; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_and_take, (void *)(i + 1)), 0);
	for (uintptr_t i = 0; i < 16; i++) {
		void *result;
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, (void *)(i + 1));
	}
	assert_int_equal(count(), 0);
}

TEST(a_forked_child_begins_with_nothing)
{
	struct ll_extent extent;
	int status;
	fill_in_order(0, 1000);
	pid_t pid = fork();
	if (pid == 0) {
		bool is_empty = count() == 0 && !ll_extents_find(LL_EXTENT_PLAIN, 512, &extent);
		extent = plain(512, 512);
		_exit(is_empty && ll_extents_put(&extent, &extent) == 0 && count() == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	take_in_order(0, 1000);
	assert_int_equal(count(), 0);
}

TEST(errno_is_kept)
{
	errno = 42;
	fill_in_order(0, 10000);
	take_in_order(0, 10000);
	assert_int_equal(errno, 42);
}
