/* What the timing of launches tells while other programs share the card by time slices. */
#include "timing_setup.h"

/* Between its begin and its end lies as much of others'; a queue that is never empty shows the same. */
TEST(test_what_others_slices_lie_in_is_told_by_what_launches_are_known_to_take)
{
	begin_program(0);
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1 + i % 2, (30 + 20 * (i % 2)) * US);
		model_spend(110 * US);
	}
	tend();
	ll_timing_set_shared(timing, true, 1, true);
	uint64_t charged_before_ns = charged_ns, busy_before_ns = model_busy_ns();
	for (unsigned i = 0; i < 20000; i++) {
		launch(1, 1 + i % 2, (60 + 40 * (i % 2)) * US);
		model_spend(110 * US);
	}
	tend();
	uint64_t own_ns = (model_busy_ns() - busy_before_ns) / 2, told_ns = charged_ns - charged_before_ns;
	print_message("told %.3f of its own\n", (double)told_ns / (double)own_ns);
	assert_true(told_ns > own_ns * 9 / 10 && told_ns < own_ns * 11 / 10);
	ll_timing_free(timing, true);
}

static uint64_t interrupted_ns;

static void launch_and_be_interrupted(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns)
{
	model_launch(stream, ns, call_ns);
	model_interrupt_record(interrupted_ns, 0);
}

static void launch_and_wait(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		launch(1, 2, 400 * US);
		model_wait(STREAM(1));
	}
	pause_ns(MS);
}

/* The end of each was recorded late, so its wait in the queue tells only how long the kernel took at least. */
TEST(test_what_kernels_took_at_least_is_no_sample_in_slices)
{
	begin_program(0);
	for (unsigned i = 0; i < 100; i++)
		launch(1, 1, 30 * US);
	model_wait(STREAM(1));
	tend();
	ll_timing_set_shared(timing, true, 1, true);
	for (interrupted_ns = 330 * US; interrupted_ns >= 210 * US; interrupted_ns -= 120 * US) {
		do_in((struct ll_timing_stream){.handle = STREAM(1)}, 2, 400 * US, launch_and_be_interrupted);
		model_wait(STREAM(1));
	}
	launch_and_wait(50);
	uint64_t charged_before_ns = charged_ns, busy_before_ns = model_busy_ns();
	launch_and_wait(50);
	double told = (double)(charged_ns - charged_before_ns) / (double)(model_busy_ns() - busy_before_ns);
	print_message("told %.3f of it\n", told);
	assert_true(told > 0.95 && told < 1.05);
	ll_timing_free(timing, true);
}

int main(int argc, char **argv)
{
	return run_with_both_events(argc, argv);
}
