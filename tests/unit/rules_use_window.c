#include "rules/share/use_window.h"
#include "test.h"

enum { LENGTH_NS = 6400 };

/* Adds a hundredth of the window each time: held and used at these rates. */
static uint64_t run(struct ll_use_window *window, uint64_t from_ns, uint64_t until_ns, uint64_t held, uint64_t used)
{
	for (; from_ns < until_ns; from_ns += 64)
		ll_use_window_add(window, from_ns, held, used);
	return from_ns;
}

TEST(a_window_says_nothing_before_its_length_has_passed)
{
	struct ll_use_window window;
	uint64_t held_ns, used_ns;
	ll_use_window_init(&window, LENGTH_NS, 1000);
	run(&window, 1000, 7000, 64, 32);
	assert_false(ll_use_window_read(&window, 7000, &held_ns, &used_ns));
	assert_true(ll_use_window_read(&window, 1000 + LENGTH_NS, &held_ns, &used_ns));
}

TEST(a_window_has_the_last_length_and_no_more_than_one_step_less)
{
	struct ll_use_window window;
	uint64_t held_ns, used_ns;
	ll_use_window_init(&window, LENGTH_NS, 0);
	uint64_t now_ns = run(&window, 0, 10ULL * LENGTH_NS, 64, 16);
	assert_true(ll_use_window_read(&window, now_ns, &held_ns, &used_ns));
	assert_in_range(held_ns, LENGTH_NS - 200, LENGTH_NS);
	assert_int_equal(used_ns * 4, held_ns);
	/* What was before is forgotten. */
	now_ns = run(&window, now_ns, now_ns + LENGTH_NS + 200, 64, 64);
	ll_use_window_read(&window, now_ns, &held_ns, &used_ns);
	assert_int_equal(used_ns, held_ns);
}

TEST(a_pause_of_any_length_empties_the_window)
{
	struct ll_use_window window;
	uint64_t held_ns, used_ns;
	ll_use_window_init(&window, LENGTH_NS, 0);
	run(&window, 0, LENGTH_NS, 64, 64);
	ll_use_window_add(&window, 50ULL * LENGTH_NS + 777, 5, 3);
	ll_use_window_read(&window, 50ULL * LENGTH_NS + 777, &held_ns, &used_ns);
	assert_int_equal(held_ns, 5);
	assert_int_equal(used_ns, 3);
	ll_use_window_add(&window, UINT64_MAX / 2, 0, 0);
	ll_use_window_read(&window, UINT64_MAX / 2, &held_ns, &used_ns);
	assert_int_equal(held_ns, 0);
}
