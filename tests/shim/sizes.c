/* The table of what was charged: every name found again whatever came and went, from any thread, none in a forked
 * child. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/skipped.h"
#include "shim/memory/sizes.h"

enum { NAMES = 20000 };

static void put(enum ll_size_kind kind, uint64_t name, uint64_t bytes, uint64_t owner)
{
	struct ll_size size = {.bytes = bytes, .owner = owner};
	assert_true(ll_sizes_put(kind, name, &size, NULL));
}

static void names_come_and_go_in_any_order(void **state)
{
	(void)state;
	static bool is_there[NAMES];
	size_t count = 0;
	uint64_t seed = 7;
	struct ll_size size;
	for (int i = 0; i < 200000; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		uint64_t name = (seed >> 33) % NAMES;
		if (is_there[name]) {
			assert_true(ll_sizes_find(LL_SIZE_ADDRESS, name << 9, &size));
			assert_true(ll_sizes_take(LL_SIZE_ADDRESS, name << 9, &size));
			assert_int_equal(size.bytes, name + 1);
			assert_false(ll_sizes_take(LL_SIZE_ADDRESS, name << 9, &size));
		} else {
			assert_false(ll_sizes_find(LL_SIZE_ADDRESS, name << 9, &size));
			put(LL_SIZE_ADDRESS, name << 9, name + 1, 0);
		}
		is_there[name] = !is_there[name];
		count += is_there[name] ? 1 : SIZE_MAX;
		if (i % 1000 == 0)
			assert_int_equal(ll_sizes_count(), count);
	}
	for (uint64_t name = 0; name < NAMES; name++)
		assert_int_equal(ll_sizes_take(LL_SIZE_ADDRESS, name << 9, &size), is_there[name]);
	assert_int_equal(ll_sizes_count(), 0);
}

static void a_name_put_twice_hands_back_the_first(void **state)
{
	(void)state;
	struct ll_size first = {.bytes = 1}, second = {.bytes = 2}, stale;
	assert_true(ll_sizes_put(LL_SIZE_ARRAY, 5, &first, &stale));
	assert_int_equal(stale.bytes, 0);
	assert_true(ll_sizes_put(LL_SIZE_ARRAY, 5, &second, &stale));
	assert_int_equal(stale.bytes, 1);
	/* Another kind is another name. */
	assert_false(ll_sizes_find(LL_SIZE_MIPMAP, 5, &stale));
	assert_true(ll_sizes_take(LL_SIZE_ARRAY, 5, &stale));
	assert_int_equal(stale.bytes, 2);
	assert_int_equal(ll_sizes_count(), 0);
}

static void what_a_context_owns_goes_together(void **state)
{
	(void)state;
	struct ll_size size;
	uint64_t sum = 0;
	for (uint64_t i = 1; i <= 5000; i++) {
		put(LL_SIZE_ADDRESS, i << 21, i, i % 3);
		sum += i % 3 == 2 ? i : 0;
	}
	assert_int_equal(ll_sizes_take_owned(2), sum);
	assert_int_equal(ll_sizes_take_owned(2), 0);
	assert_int_equal(ll_sizes_take_owned(0), 0);
	for (uint64_t i = 1; i <= 5000; i++)
		assert_int_equal(ll_sizes_take(LL_SIZE_ADDRESS, i << 21, &size), i % 3 != 2);
	assert_int_equal(ll_sizes_count(), 0);
}

static void *put_and_take(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 40;
	struct ll_size size;
	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 500; i++) {
			struct ll_size own = {.bytes = base + i};
			if (!ll_sizes_put(LL_SIZE_ADDRESS, base + i * 512, &own, NULL))
				return NULL;
		}
		for (uint64_t i = 0; i < 500; i++) {
			if (!ll_sizes_take(LL_SIZE_ADDRESS, base + i * 512, &size) || size.bytes != base + i)
				return NULL;
		}
	}
	return arg;
}

static void threads_do_not_disturb_each_other(void **state)
{
	(void)state;
	pthread_t threads[16];
	for (uintptr_t i = 0; i < 16; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_and_take, (void *)(i + 1)), 0);
	for (uintptr_t i = 0; i < 16; i++) {
		void *result;
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, (void *)(i + 1));
	}
	assert_int_equal(ll_sizes_count(), 0);
}

/* Fork takes every lock of the table, more than ThreadSanitizer can follow at once. */
#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_TSAN 1
#endif
#endif

static void a_forked_child_begins_with_nothing(void **state)
{
	(void)state;
#ifdef IS_TSAN
	SKIP_TEST("ThreadSanitizer does not follow so many locks");
#endif
	struct ll_size size;
	int status;
	put(LL_SIZE_ADDRESS, 4096, 1, 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool is_empty = ll_sizes_count() == 0 && !ll_sizes_find(LL_SIZE_ADDRESS, 4096, &size);
		size.bytes = 3;
		bool can_put = ll_sizes_put(LL_SIZE_ADDRESS, 4096, &size, NULL) && ll_sizes_count() == 1;
		_exit(is_empty && can_put ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(ll_sizes_take(LL_SIZE_ADDRESS, 4096, &size));
	assert_int_equal(size.bytes, 1);
}

static void errno_is_kept(void **state)
{
	(void)state;
	struct ll_size size = {.bytes = 1};
	errno = 42;
	for (uint64_t i = 0; i < 10000; i++)
		ll_sizes_put(LL_SIZE_ADDRESS, i, &size, NULL);
	for (uint64_t i = 0; i < 10000; i++)
		ll_sizes_take(LL_SIZE_ADDRESS, i, &size);
	assert_int_equal(errno, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_come_and_go_in_any_order),
	    cmocka_unit_test(a_name_put_twice_hands_back_the_first),
	    cmocka_unit_test(what_a_context_owns_goes_together),
	    cmocka_unit_test(threads_do_not_disturb_each_other),
	    cmocka_unit_test(a_forked_child_begins_with_nothing),
	    cmocka_unit_test(errno_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
