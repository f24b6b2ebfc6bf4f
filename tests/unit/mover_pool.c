/* The mover's pool: budget, reservations, places, pinning. The driver is a table of fakes; a step has 64 KiB. */
#include "test.h"
#include "wait_for.h"

#include "mover/host.h"
#include "mover/pool.h"

#undef LL_MOVER_POOL_STEP_BYTES
#define LL_MOVER_POOL_STEP_BYTES UINT64_C(0x10000)
#include "mover/pool.c" // NOLINT(bugprone-suspicious-include): with a step of another size

#define STEP LL_MOVER_POOL_STEP_BYTES

/* ---- host and driver ---- */

static _Atomic uint64_t available_bytes = UINT64_MAX;
static uint64_t group_limit_bytes;
static _Atomic bool refuses;
static _Atomic unsigned registered, tried;

uint64_t ll_host_memory_bytes(void)
{
	return 64 * STEP;
}

uint64_t ll_host_group_limit_bytes(void)
{
	return group_limit_bytes;
}

uint64_t ll_host_available_bytes(void)
{
	return available_bytes;
}

uint64_t ll_host_reserve_bytes(void)
{
	return 2 * STEP;
}

static ll_cu_result fake_register(void *begin, size_t bytes, unsigned flags)
{
	(void)flags;
	assert_true((uintptr_t)begin % 4096 == 0 && bytes == STEP);
	tried++;
	if (refuses)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	registered++;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_unregister(void *begin)
{
	assert_non_null(begin);
	registered--;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_set_current(struct ll_cu_context *context)
{
	(void)context;
	return LL_CUDA_SUCCESS;
}

static const struct ll_cuda cuda = {
    .cuMemHostRegister = fake_register,
    .cuMemHostUnregister = fake_unregister,
    .cuCtxSetCurrent = fake_set_current,
};

static struct ll_mover_pool *make_pool(uint64_t steps)
{
	struct ll_mover_pool *pool = NULL;
	available_bytes = UINT64_MAX;
	refuses = false;
	registered = tried = 0;
	assert_int_equal(ll_mover_pool_new(&cuda, NULL, steps * STEP, &pool, NULL), 0);
	if (!pool) /* the analyser does not know that the assertion leaves */
		abort();
	return pool;
}

/* All that was pinned is let go. */
static void drop_pool(struct ll_mover_pool *pool)
{
	ll_mover_pool_free(pool);
	assert_int_equal(registered, 0);
}

static void reserve(struct ll_mover_pool *pool, uint64_t bytes)
{
	int rc = ll_mover_pool_reserve(pool, bytes);
	assert_true(rc == 0 || rc == -EAGAIN);
	wait_for(ll_mover_pool_is_ready(pool) == 0);
}

struct taken {
	struct ll_mover_place places[LL_MOVER_PLACES];
	uint32_t count;
	uint64_t bytes;
};

static struct taken take(struct ll_mover_pool *pool, uint64_t bytes)
{
	struct taken taken = {.bytes = bytes};
	assert_int_equal(ll_mover_pool_take(pool, bytes, taken.places, &taken.count), 0);
	return taken;
}

static void give(struct ll_mover_pool *pool, const struct taken *taken)
{
	ll_mover_pool_give(pool, taken->places, taken->count);
}

static void assert_one_place(const struct taken *taken, uint64_t offset)
{
	assert_int_equal(taken->count, 1);
	assert_true(taken->places[0].offset == offset && taken->places[0].bytes == taken->bytes);
}

static unsigned count_ranges(const struct ll_mover_pool *pool)
{
	unsigned count = 0;
	for (const struct range *range = pool->free; range; range = range->next)
		count++;
	return count;
}

/* ---- budget and pinning ---- */

static void test_the_budget_is_half_of_the_host_or_of_the_group(void **state)
{
	(void)state;
	group_limit_bytes = UINT64_MAX;
	assert_true(ll_mover_pool_default_budget() == 32 * STEP);
	group_limit_bytes = 9 * STEP;
	assert_true(ll_mover_pool_default_budget() == 4 * STEP);
	group_limit_bytes = STEP;
	assert_true(ll_mover_pool_default_budget() == 0);
}

static void test_a_pool_has_whole_steps_and_at_least_one(void **state)
{
	(void)state;
	struct ll_err err = {0};
	struct ll_mover_pool *pool = NULL;
	assert_fails(ll_mover_pool_new(&cuda, NULL, STEP - 1, &pool, &err), -EINVAL, "at least");
	assert_int_equal(ll_mover_pool_new(&cuda, NULL, 3 * STEP - 1, &pool, &err), 0);
	if (!pool)
		abort();
	assert_true(ll_mover_pool_budget(pool) == 2 * STEP);
	drop_pool(pool);
	ll_mover_pool_free(NULL);
}

static void test_what_is_wanted_is_pinned_in_steps_and_never_beyond_the_budget(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(4);
	assert_true(ll_mover_pool_pinned(pool) == 0);
	ll_mover_pool_want(pool, STEP + 1);
	wait_for(ll_mover_pool_pinned(pool) == 2 * STEP);
	ll_mover_pool_want(pool, 1); /* never less */
	ll_mover_pool_want(pool, UINT64_MAX);
	wait_for(ll_mover_pool_pinned(pool) == 4 * STEP);
	assert_int_equal(tried, 4);
	drop_pool(pool);
}

static void test_room_beyond_the_budget_is_refused_and_nothing_is_reserved(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(4);
	reserve(pool, 3 * STEP);
	assert_int_equal(ll_mover_pool_reserve(pool, STEP + 1), -ENOSPC);
	assert_int_equal(ll_mover_pool_reserve(pool, UINT64_MAX), -ENOSPC);
	assert_true(pool->reserved_bytes == 3 * STEP);
	reserve(pool, STEP);
	ll_mover_pool_unreserve(pool, 4 * STEP);
	assert_true(pool->reserved_bytes == 0);
	drop_pool(pool);
}

static void test_a_host_without_memory_is_an_error_until_it_has_some(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(4);
	refuses = true;
	assert_true(ll_mover_pool_reserve(pool, STEP) != 0);
	wait_for(ll_mover_pool_is_ready(pool) == -ENOSPC);
	assert_true(ll_mover_pool_pinned(pool) == 0);
	refuses = false;
	assert_int_equal(ll_mover_pool_is_ready(pool), -ENOSPC); /* it is not asked all the time */
	wait_for((ll_mover_pool_want(pool, 2 * STEP), ll_mover_pool_is_ready(pool) == 0));
	drop_pool(pool);
}

static void test_a_reservation_asks_a_short_host_at_once(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(4);
	available_bytes = 3 * STEP - 1; /* a step, and what is left to others */
	ll_mover_pool_want(pool, STEP);
	wait_for((ll_mover_pool_want(pool, STEP),
		  ll_mover_pool_reserve(pool, STEP) == -ENOSPC || (ll_mover_pool_unreserve(pool, STEP), false)));
	assert_int_equal(tried, 0);
	assert_true(pool->reserved_bytes == 0);
	available_bytes = 3 * STEP;
	reserve(pool, STEP);
	drop_pool(pool);
}

static void test_a_host_that_refuses_is_not_asked_more_than_once_a_second(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(4);
	refuses = true;
	uint64_t begun_ns = ll_now_ns();
	for (unsigned i = 0; i < 2000; i++)
		ll_mover_pool_want(pool, STEP);
	ll_sleep_until_ns(begun_ns + 20 * LL_NS_PER_MS);
	for (unsigned i = 0; i < 2000; i++)
		ll_mover_pool_want(pool, STEP);
	uint64_t seconds = (ll_now_ns() - begun_ns) / LL_NS_PER_S;
	assert_true(tried <= 1 + seconds);
	drop_pool(pool);
}

/* ---- places ---- */

static void test_places_are_taken_in_the_order_of_the_file_and_joined_again(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(8);
	reserve(pool, 8 * STEP);
	struct taken a = take(pool, 2 * STEP), b = take(pool, STEP), c = take(pool, 3 * STEP);
	assert_one_place(&a, 0);
	assert_one_place(&b, 2 * STEP);
	assert_one_place(&c, 3 * STEP);
	give(pool, &a);
	give(pool, &c); /* joins what was never taken */
	assert_int_equal(count_ranges(pool), 2);
	reserve(pool, 5 * STEP);
	struct taken d = take(pool, 3 * STEP);
	assert_int_equal(d.count, 2);
	assert_true(d.places[0].offset == 0 && d.places[0].bytes == 2 * STEP);
	assert_true(d.places[1].offset == 3 * STEP && d.places[1].bytes == STEP);
	give(pool, &b); /* before a range */
	give(pool, &d); /* between two */
	assert_int_equal(count_ranges(pool), 1);
	assert_true(pool->free->offset == 0 && pool->free->bytes == 8 * STEP);
	assert_true(pool->reserved_bytes == 4 * STEP);
	drop_pool(pool);
}

static void test_bytes_that_are_not_pinned_are_not_taken(void **state)
{
	(void)state;
	struct ll_mover_pool *pool = make_pool(8);
	struct taken taken;
	reserve(pool, STEP);
	assert_int_equal(ll_mover_pool_take(pool, STEP + 1, taken.places, &taken.count), -ENOSPC);
	taken = take(pool, STEP);
	assert_one_place(&taken, 0);
	assert_int_equal(ll_mover_pool_take(pool, 1, taken.places, &taken.count), -ENOSPC);
	drop_pool(pool);
}

/* Every second step is free, beginning with the second. */
static void make_fragments(struct ll_mover_pool *pool, struct taken *taken, unsigned steps)
{
	reserve(pool, steps * STEP);
	for (unsigned i = 0; i < steps; i++)
		taken[i] = take(pool, STEP);
	for (unsigned i = 1; i < steps; i += 2)
		give(pool, &taken[i]);
}

static void test_more_fragments_than_a_batch_may_lie_in_are_refused_and_nothing_is_lost(void **state)
{
	(void)state;
	enum { STEPS = 80 };
	struct taken taken[STEPS], large;
	struct ll_mover_pool *pool = make_pool(STEPS);
	make_fragments(pool, taken, STEPS);
	reserve(pool, 40 * STEP);
	assert_int_equal(ll_mover_pool_take(pool, (LL_MOVER_PLACES + 1) * STEP, large.places, &large.count), -ENOBUFS);
	assert_int_equal(count_ranges(pool), STEPS / 2);
	large = take(pool, LL_MOVER_PLACES * STEP);
	assert_int_equal(large.count, LL_MOVER_PLACES);
	give(pool, &large);
	ll_mover_pool_unreserve(pool, 8 * STEP);
	for (unsigned i = 0; i < STEPS; i += 2)
		give(pool, &taken[i]);
	assert_int_equal(count_ranges(pool), 1);
	assert_true(pool->reserved_bytes == 0);
	drop_pool(pool);
}

static void test_the_largest_ranges_are_taken_if_the_first_ones_are_too_many(void **state)
{
	(void)state;
	enum { STEPS = 80 };
	struct taken taken[STEPS];
	struct ll_mover_pool *pool = make_pool(STEPS + 10);
	make_fragments(pool, taken, STEPS);
	reserve(pool, 50 * STEP);
	struct taken large = take(pool, 41 * STEP); /* the first 32 ranges have 32 steps, the last one has 11 */
	assert_int_equal(large.count, 31);
	assert_true(large.places[0].offset == (STEPS - 1) * STEP && large.places[0].bytes == 11 * STEP);
	struct taken small = take(pool, 2 * STEP);
	assert_int_equal(small.count, 2);
	give(pool, &small);
	give(pool, &large);
	assert_int_equal(count_ranges(pool), STEPS / 2);
	drop_pool(pool);
}

/* ---- at random ---- */

enum { BUDGET_STEPS = 24, UNIT = 4096, UNITS = (int)(BUDGET_STEPS * STEP / UNIT), HELD = 12 };

struct walk {
	struct ll_mover_pool *pool;
	struct taken held[HELD];
	uint64_t promised_bytes;
	bool is_taken[UNITS];
};

static void mark(struct walk *walk, const struct taken *taken, bool is_taken)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < taken->count; i++) {
		struct ll_mover_place place = taken->places[i];
		sum += place.bytes;
		for (uint64_t at = place.offset; at < place.offset + place.bytes; at += UNIT) {
			assert_int_equal(walk->is_taken[at / UNIT], !is_taken); /* none is given out twice */
			walk->is_taken[at / UNIT] = is_taken;
		}
	}
	assert_true(sum == taken->bytes);
}

static void check_pool(const struct walk *walk)
{
	const struct ll_mover_pool *pool = walk->pool;
	uint64_t taken_bytes = 0, free_bytes = 0, end = 0;
	for (unsigned i = 0; i < HELD; i++)
		taken_bytes += walk->held[i].bytes;
	for (const struct range *range = pool->free; range; range = range->next) {
		assert_true(range->bytes && (range->offset > end || (range->offset == 0 && end == 0)));
		for (uint64_t at = range->offset; at < range->offset + range->bytes; at += UNIT)
			assert_false(walk->is_taken[at / UNIT]);
		end = range->offset + range->bytes;
		free_bytes += range->bytes;
	}
	assert_true(pool->reserved_bytes == taken_bytes + walk->promised_bytes);
	assert_true(pool->known_bytes == taken_bytes + free_bytes);
	assert_true(pool->known_bytes <= ll_mover_pool_budget(pool));
}

static void take_or_give(struct walk *walk, struct taken *held)
{
	if (held->bytes) {
		mark(walk, held, false);
		give(walk->pool, held);
		*held = (struct taken){0};
		return;
	}
	uint64_t bytes = (1 + (uint64_t)rand() % 40) * UNIT;
	if (bytes > walk->promised_bytes ||
	    ll_mover_pool_take(walk->pool, bytes, held->places, &held->count) == -ENOBUFS)
		return;
	held->bytes = bytes;
	walk->promised_bytes -= bytes;
	mark(walk, held, true);
}

static void step_walk(struct walk *walk)
{
	uint64_t bytes = (1 + (uint64_t)rand() % 60) * UNIT;
	switch (rand() % 4) {
	case 0:
		if (ll_mover_pool_reserve(walk->pool, bytes) != -ENOSPC) {
			walk->promised_bytes += bytes;
			wait_for(ll_mover_pool_is_ready(walk->pool) == 0);
		}
		break;
	case 1:
		bytes = bytes < walk->promised_bytes ? bytes : walk->promised_bytes;
		ll_mover_pool_unreserve(walk->pool, bytes);
		walk->promised_bytes -= bytes;
		break;
	default:
		take_or_give(walk, &walk->held[rand() % HELD]);
	}
}

static void test_accounts_hold_in_random_sequences(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 20; seed++) {
		struct walk walk = {.pool = make_pool(BUDGET_STEPS)};
		srand(seed);
		for (unsigned i = 0; i < 3000; i++) {
			step_walk(&walk);
			check_pool(&walk);
		}
		for (unsigned i = 0; i < HELD; i++) {
			if (walk.held[i].bytes)
				take_or_give(&walk, &walk.held[i]);
		}
		ll_mover_pool_unreserve(walk.pool, walk.promised_bytes);
		assert_true(walk.pool->reserved_bytes == 0);
		assert_true(count_ranges(walk.pool) <= 1);
		drop_pool(walk.pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_budget_is_half_of_the_host_or_of_the_group),
	    cmocka_unit_test(test_a_pool_has_whole_steps_and_at_least_one),
	    cmocka_unit_test(test_what_is_wanted_is_pinned_in_steps_and_never_beyond_the_budget),
	    cmocka_unit_test(test_room_beyond_the_budget_is_refused_and_nothing_is_reserved),
	    cmocka_unit_test(test_a_host_without_memory_is_an_error_until_it_has_some),
	    cmocka_unit_test(test_a_reservation_asks_a_short_host_at_once),
	    cmocka_unit_test(test_a_host_that_refuses_is_not_asked_more_than_once_a_second),
	    cmocka_unit_test(test_places_are_taken_in_the_order_of_the_file_and_joined_again),
	    cmocka_unit_test(test_bytes_that_are_not_pinned_are_not_taken),
	    cmocka_unit_test(test_more_fragments_than_a_batch_may_lie_in_are_refused_and_nothing_is_lost),
	    cmocka_unit_test(test_the_largest_ranges_are_taken_if_the_first_ones_are_too_many),
	    cmocka_unit_test(test_accounts_hold_in_random_sequences),
	};
	return cmocka_run_group_tests_name("mover_pool", tests, NULL, NULL);
}
