/* What timing events say of programs of every kind, against what the card of the model did, and what they cost. */
#include <stdlib.h>

#include "timing_setup.h"

TEST(test_small_kernels_of_a_slow_host)
{
	begin_program(0);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1, 4 * US);
		model_spend(7 * US);
	}
	assert_calls_within(20);
	assert_account_within(5);
}

/* What lay between the first events was others' work. */
TEST(test_a_card_that_was_busy_at_the_first_event)
{
	begin_program(0);
	if (!are_events_slow)
		model_part_events(20 * US);
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1, 6 * US);
		model_wait(STREAM(1));
		model_spend(5 * US);
		if (i == 0)
			model_part_events(0);
	}
	assert_account_within(5);
}

/* So it tells nothing of what an event takes the card; later it can. */
TEST(test_a_host_that_is_slow_at_the_first_event)
{
	begin_program(0);
	model_slow_records(2000);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1, 4 * US);
		model_spend(7 * US);
		if (i == 1500)
			model_slow_records(0);
	}
	assert_account_within(15);
}

TEST(test_small_kernels_each_waited_for)
{
	begin_program(0);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1, 6 * US);
		model_wait(STREAM(1));
	}
	assert_calls_within(30);
	assert_account_within(5);
}

/* As a program does that reads a result after each step, while others want the card. */
TEST(test_long_kernels_each_waited_for)
{
	begin_program(0);
	ll_timing_set_every(timing, MS / 2);
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1, 200 * US);
		model_wait(STREAM(1));
		model_spend(6 * US);
	}
	assert_calls_within(250);
	assert_account_within(5);
}

/* One kernel on one grid, that takes now so long and now so long. */
TEST(test_kernels_of_changing_length_each_waited_for)
{
	begin_program(0);
	ll_timing_set_every(timing, MS / 2);
	srand(4);
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1, (100 + (unsigned)rand() % 240) * US);
		model_wait(STREAM(1));
		model_spend(i % 10 ? 6 * US : 900 * US);
	}
	assert_account_within(10);
}

TEST(test_small_kernels_in_a_full_queue)
{
	begin_program(0);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1, 12 * US);
		if (i % 100 == 99)
			model_wait(STREAM(1));
	}
	assert_calls_within(90);
	assert_account_within(5);
}

TEST(test_kernels_of_many_kinds_partly_queued)
{
	static const uint64_t kernels_ns[] = {3 * US, 40 * US, 5 * US, 2 * US, 90 * US, 4 * US, 7 * US};
	begin_program(0);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1 + i % 7, kernels_ns[i % 7]);
		model_spend(i % 50 < 20 ? 25 * US : 2 * US);
		if (i % 500 == 499)
			model_wait(STREAM(1));
	}
	assert_account_within(5);
}

/* Through the open gate: a launch in so many is timed, as what they take allows (flow.c). */
TEST(test_launches_that_are_taken_to_be_long_are_soon_known_to_be_short)
{
	struct ll_timing_stream name = {.handle = STREAM(1)};
	begin_program(0);
	for (unsigned i = 0; i < 3; i++) {
		launch(1, 1, 100 * US);
		model_wait(STREAM(1));
	}
	assert_in_range(ll_timing_mean_ns(timing), 90 * US, 110 * US);
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned at = 0; at < 20; at++) {
			model_launch(name.handle, 2 * US, LAUNCH_NS);
			model_spend(2 * US); /* the host is slower than the card */
		}
		ll_timing_add_untimed(timing, name, 20);
		launch(1, 2, 2 * US);
	}
	assert_in_range(ll_timing_mean_ns(timing), 1, 10 * US);
	ll_timing_free(timing, true);
}

/* Whose every sample tells nothing. Through the open gate each launch would be timed for ever. */
TEST(test_launches_of_a_host_that_is_always_slow_are_known_to_be_no_longer_than_they_had)
{
	begin_program(0);
	model_slow_records(20 * US);
	for (unsigned i = 0; i < 100; i++) {
		launch(1, 1, 2 * US);
		model_wait(STREAM(1));
	}
	assert_in_range(ll_timing_mean_ns(timing), 1, 100 * US);
	ll_timing_free(timing, true);
}

TEST(test_long_kernels)
{
	begin_program(0);
	for (unsigned i = 0; i < 500; i++) {
		launch(1, 1, 20 * MS);
		if (i % 2)
			model_wait(STREAM(1));
	}
	assert_account_within(5);
}

/* What was known of a kind says nothing of what it takes now. */
TEST(test_kernels_that_suddenly_take_long)
{
	begin_program(0);
	for (unsigned i = 0; i < 10000; i++) {
		launch(1, 1, 5 * US);
		model_spend(5 * US);
	}
	model_wait(STREAM(1));
	uint64_t small_ns = model_busy_ns();
	for (unsigned i = 0; i < 50; i++) {
		launch(1, 1, 20 * MS);
		pause_ns(25 * MS);
	}
	assert_true(model_busy_ns() > 10 * small_ns);
	assert_account_within(15);
}

TEST(test_a_host_that_is_interrupted)
{
	begin_program(0);
	srand(7);
	for (unsigned i = 0; i < 50000; i++) {
		launch(1, 1, 8 * US);
		model_spend(rand() % 100 ? 3 * US : (uint64_t)(rand() % 3000) * US);
	}
	assert_account_within(10);
}

TEST(test_clocks_that_drift_apart)
{
	static const int drifts_ppm[] = {-30, 30};
	for (unsigned d = 0; d < 2; d++) {
		begin_program(drifts_ppm[d]);
		for (unsigned i = 0; i < 20000; i++) {
			launch(1, 1, 10 * US);
			model_spend(20 * US);
			if (i % 5000 == 4999)
				pause_ns(3000 * MS);
		}
		assert_account_within(10);
	}
}

TEST(test_two_streams_at_once_count_once)
{
	begin_program(0);
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1, 30 * US);
		launch(2, 2, 30 * US);
		if (i % 20 == 19) {
			model_wait(STREAM(1));
			model_wait(STREAM(2));
		}
	}
	assert_account_within(20);
}

/* A graph needs a while to begin behind anything but another replay: an event between two of them costs that much. */
static void replay(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns)
{
	model_launch_graph(stream, ns, 2 * call_ns, 12 * US);
}

TEST(test_replays_of_a_graph)
{
	begin_program(0);
	ll_timing_set_every(timing, MS);
	for (unsigned i = 0; i < 20000; i++) {
		do_in((struct ll_timing_stream){.handle = STREAM(1)}, 1, 46 * US, replay);
		if (i % 50 == 49)
			model_wait(STREAM(1));
	}
	assert_account_within(40);
}

/* Two and more of them are in the queue, each of a length that nothing was known of. */
TEST(test_kernels_of_seconds_that_are_new)
{
	begin_program(0);
	for (unsigned i = 0; i < 40; i++) {
		launch(1, 1 + i, 1500 * MS);
		if (i % 4 == 3)
			model_wait(STREAM(1));
	}
	assert_account_within(5);
}

/* The first timing event of all is behind work that was not timed. */
TEST(test_a_stream_that_is_done_before_the_first_event_is_reached)
{
	begin_program(0);
	model_launch(STREAM(1), 5000 * MS, LAUNCH_NS);
	launch(1, 1, 10 * US);
	for (unsigned i = 0; i < 50; i++) {
		launch(2, 2, 20 * MS);
		model_wait(STREAM(2));
	}
	model_wait(STREAM(1));
	pause_ns(4 * MS);
	assert_true(charged_ns >= 950 * MS);
	ll_timing_free(timing, true);
}

TEST(test_a_host_that_is_interrupted_in_a_event)
{
	begin_program(0);
	for (unsigned i = 0; i < 50000; i++) {
		if (i % 100 == 99)
			model_interrupt_record(5 * MS, 0);
		launch(1, 1, 8 * US);
		model_spend(3 * US);
	}
	assert_account_within(10);
}

/*
 * A program under a small cap sleeps, works for a ms and sleeps again: its host is cold, and calls that should take 1
 * us take 20 now and then, with what they do at their beginning or at their end.
 */
TEST(test_a_host_that_is_slow_after_each_pause)
{
	begin_program(0);
	srand(3);
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t slow_ns = rand() % 5 ? 0 : (uint64_t)(5 + rand() % 30) * US;
		if (rand() % 2)
			model_interrupt_record(slow_ns, 0);
		else
			model_interrupt_record(0, slow_ns);
		launch(1, 1, 4 * US);
		model_spend(9 * US);
		if (i % 90 == 89)
			pause_ns(8 * MS);
	}
	assert_account_within(15);
}

/* Its calls take three times as long for seconds on end: the first event comes to the card ever earlier before the end
 * of its call, and the last one after the kernel. */
TEST(test_a_host_that_is_slow_most_of_the_time)
{
	begin_program(0);
	srand(5);
	for (unsigned i = 0; i < 60000; i++) {
		model_slow_records(i / 2000 % 4 ? (unsigned)rand() % 4000 : 0);
		launch(1, 1, 2500);
		model_spend(9 * US);
	}
	assert_account_within(30);
}

/* One kernel on one grid for two sizes of matrices, as in a training step: forward the host is the slower one, and
 * backward it is ahead. */
TEST(test_a_kind_of_which_the_long_ones_are_those_in_the_queue)
{
	begin_program(0);
	ll_timing_set_every(timing, 4 * MS);
	for (unsigned i = 0; i < 200000; i++) { /* 2000 samples of it: half a percent */
		launch(1, 1, 5 * US);
		model_spend(18 * US);
		launch(1, 2, 30 * US);
		launch(1, 1, 15 * US);
		launch(1, 3, 10 * US);
		model_spend(60 * US);
	}
	assert_calls_within(110);
	assert_account_within(15);
}

/* As sums in PyTorch: the first few come behind something long, where a memset hides in the events around it. */
TEST(test_memsets_that_were_timed_in_a_queue)
{
	begin_program(0);
	launch(1, 2, MS);
	for (unsigned i = 0; i < 50000; i++) {
		do_in((struct ll_timing_stream){.handle = STREAM(1)}, 1, US, model_memset);
		model_spend(i < 20 ? 0 : 15 * US);
	}
	assert_calls_within(20);
	assert_account_within(100);
}

/* As a training step: so many kinds that some share a place in a small table, and none is launched twice in a row. */
TEST(test_a_hundred_kinds_in_turn)
{
	begin_program(0);
	ll_timing_set_every(timing, MS);
	for (unsigned i = 0; i < 60000; i++) {
		unsigned kind = i * 7 % 101;
		launch(1, UINT64_C(0x7f1200000040) + kind * 0x1c40, (2 + kind % 13) * US);
		model_spend(20 * US);
		if (i % 700 == 699)
			model_wait(STREAM(1));
	}
	assert_calls_within(20);
	assert_account_within(10);
}

/* Behind a timing event the next launch needs no more than to be counted, also where the timing event was not looked
 * for yet. */
TEST(test_two_streams_in_turn_that_are_seldom_looked_after)
{
	begin_program_far_from_its_cap();
	ll_timing_set_every(timing, LL_TIMING_EVERY_NS);
	for (unsigned i = 0; i < 60000; i++) {
		launch(1 + i / 60 % 2, 1, 6 * US);
		model_spend(15 * US);
	}
	assert_calls_within(20);
	assert_account_within(
	    25); /* launches of two stretches in one batch are taken to have come right before its end */
}

/* Of one kernel on one grid: the short ones are told while the long one goes on. */
TEST(test_a_long_kernel_beside_short_ones_that_are_waited_for)
{
	begin_program(0);
	for (unsigned i = 0; i < 100; i++) {
		launch(1, 1, 30 * MS);
		for (unsigned at = 0; at < 25; at++) {
			launch(2, 1, 50 * US);
			model_wait(STREAM(2));
			model_spend(1150 * US);
		}
		model_wait(STREAM(1));
		pause_ns(20 * MS);
	}
	assert_account_within(10);
}

/* No timing event may stand behind them while the other stream works, and all of them were short at first. */
TEST(test_long_kernels_in_the_legacy_stream_beside_short_ones)
{
	struct ll_timing_stream legacy = {.handle = LL_CU_STREAM_LEGACY};
	begin_program_far_from_its_cap();
	for (unsigned i = 0; i < 20; i++) {
		launch_in(legacy, 1, 50 * US);
		launch(2, 1, 50 * US);
	}
	model_wait(STREAM(2));
	pause_ns(50 * MS);
	for (unsigned i = 0; i < 100; i++) {
		launch_in(legacy, 1, 30 * MS);
		for (unsigned at = 0; at < 25; at++) {
			launch(2, 1, 50 * US);
			model_wait(STREAM(2));
			model_spend(1150 * US);
		}
		model_wait(LL_CU_STREAM_LEGACY);
		pause_ns((1 + i % 40) * MS);
	}
	launch_in(legacy, 1, 50 * US);
	pause_ns(30 * MS);
	launch_in(legacy, 1, 50 * US);
	model_wait(LL_CU_STREAM_LEGACY);
	assert_account_within(50);
}

/* A batch of copies: the call takes the host 60 us, and the agent looks in the midst of it. */
static void batch_of_copies(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns)
{
	model_launch(stream, ns, call_ns);
	model_spend(30 * US);
	ll_timing_close_tails(timing, false);
	model_spend(30 * US);
}

TEST(test_an_agent_that_looks_while_a_launch_is_made)
{
	begin_program(0);
	ll_timing_set_every(timing, MS);
	srand(7);
	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned at = 0; at < 3; at++) {
			do_in((struct ll_timing_stream){.handle = STREAM(1)}, 1, 556 * US, batch_of_copies);
			model_spend((uint64_t)(rand() % 700) * US);
		}
		model_wait(STREAM(1));
		pause_ns(2 * MS);
	}
	assert_account_within(5);
}

/* They are counted together, before they are made, and the timing event behind them comes while the last one is at
 * work. */
TEST(test_launches_that_were_counted_ahead_and_made_far_apart)
{
	begin_program_far_from_its_cap();
	srand(8);
	for (unsigned i = 0; i < 3000; i++) {
		launch(1, 1, 400 * US);
		for (unsigned at = 0; at < 9; at++) {
			model_spend(40 * US);
			tend();
		}
		model_wait(STREAM(1));
		model_spend((500 + (unsigned)rand() % 500) * US);
	}
	assert_account_within(20);
}

/* As a training step: a tenth of the work is of a kind that takes now so long and now so long. */
TEST(test_a_few_kernels_of_changing_length_among_steady_ones)
{
	begin_program_far_from_its_cap();
	srand(6);
	for (unsigned i = 0; i < 60000; i++) {
		launch(1, 1 + i % 10, i % 10 ? (4 + i % 7) * US : (2 + (unsigned)rand() % 14) * US);
		model_spend(15 * US);
	}
	assert_calls_within(5);
	assert_account_within(10);
}

int main(int argc, char **argv)
{
	return run_with_both_events(argc, argv);
}
