/* What is left without a timing event keeps no program from coming to rest, and nothing of the driver waits under the
 * lock. */
#include "timing_setup.h"

#include <inttypes.h>

#define THREAD ((struct ll_timing_stream){.handle = LL_CU_STREAM_PER_THREAD, .thread = 7})
#define NO_STREAM ((struct ll_timing_stream){.handle = NULL})
#define LEGACY ((struct ll_timing_stream){.handle = LL_CU_STREAM_LEGACY})

/* So often that it is known, and the last ones have no timing event. */
static void launch_some(struct ll_timing_stream name)
{
	for (unsigned i = 0; i < 21; i++)
		launch_in(name, 1, 5 * US);
}

static void assert_comes_to_rest(void)
{
	pause_ns(100 * MS);
	assert_false(ll_timing_is_blind(timing));
	assert_true(ll_timing_is_idle(timing));
	assert_int_equal(ll_timing_queued(timing).ns, 0);
}

/* One stream with two names: a timing event in it waits for neither. */
TEST(test_the_legacy_stream_by_both_of_its_names_comes_to_rest)
{
	begin_program(0);
	launch_some(NO_STREAM);
	launch_some(LEGACY);
	assert_comes_to_rest();
	ll_timing_free(timing, true);
}

/* What a thread has left in its own stream nobody else can time. */
TEST(test_what_a_thread_has_left_keeps_nobody_from_resting)
{
	begin_program(0);
	launch_some(THREAD);
	launch_some(NO_STREAM);
	assert_comes_to_rest();
	/* Nor is it taken to be in the queue when others work again. */
	launch(1, 2, 20 * MS);
	model_wait(STREAM(1));
	tend();
	assert_true(ll_timing_queued(timing).ns < MS);
	/* And it is charged when the thread comes back. */
	uint64_t before_ns = charged_ns;
	launch_some(THREAD);
	assert_comes_to_rest();
	assert_true(charged_ns > before_ns);
	ll_timing_free(timing, true);
}

/* Others launch meanwhile: on a card both may wait until a stream that is full has got on. */
TEST(test_nothing_is_timed_or_asked_of_a_stream_under_the_lock)
{
	struct ll_timing_lock lock;
	struct ll_timing_stream name = {.handle = STREAM(1)};
	ll_timing_lock_init(&lock);
	begin_program_by(&lock, 0);
	model_watch_lock(&lock);
	pthread_mutex_lock(&lock.mutex);
	launch_some(name);
	pause_ns(5 * MS);
	assert_true(ll_timing_is_idle(timing));
	model_launch(name.handle, 20 * MS, LAUNCH_NS);
	ll_timing_add_untimed(timing, name, 500);
	uint64_t before = model_calls();
	ll_timing_close_tails(timing, true);
	assert_int_equal(model_calls() - before, 2); /* is it captured, and has it got on: it has not */
	pause_ns(30 * MS);
	assert_true(ll_timing_is_idle(timing));
	pthread_mutex_unlock(&lock.mutex);
	ll_timing_free(timing, true);
	ll_timing_lock_fini(&lock);
}

/* The host loses the processor in the driver's call: the kernel is in the queue, but is counted only 10 ms later. */
static void launch_late(struct ll_timing_stream name, uint64_t kind, uint64_t kernel_ns)
{
	ll_timing_begin(timing, name, kind);
	model_launch(name.handle, kernel_ns, LAUNCH_NS);
	for (unsigned i = 0; i < 10; i++) {
		model_spend(MS);
		ll_timing_harvest(timing);
		ll_timing_close_tails(timing, false);
	}
	ll_timing_end(timing, name, kind, ll_now_ns());
}

/* The timing event that the agent makes meanwhile has one launch more before it than was counted. */
TEST(test_a_event_that_came_into_a_launch_does_not_teach_what_launches_take)
{
	struct ll_timing_stream name = {.handle = STREAM(1)};
	begin_program(0);
	ll_timing_set_every(timing, 4 * MS);
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned at = 0; at < 7; at++)
			launch_in(name, 1, MS);
		launch_late(name, 1, MS);
		model_wait(name.handle);
		pause_ns(5 * MS);
		launch_in(name, 1, MS);
		uint64_t taken_ns = ll_timing_queued(timing).ns;
		if (taken_ns < MS - 20 * US || taken_ns > MS + 20 * US)
			fail_msg("round %u: a launch of 1 ms is taken to last %" PRIu64 " ns", i, taken_ns);
		model_wait(name.handle);
		pause_ns(5 * MS);
	}
	assert_account_within(20);
}
