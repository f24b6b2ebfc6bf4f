/* The card model alone, on a clock of the test's own: every number is exact. */
#include "card/engine.h"
#include "card/context.h"
#include "card/defaults.h"

#include <errno.h>
#include <math.h>

#include "card/memory.h"
#include "card/meter.h"
#include "card/process.h"
#include "card/queue.h"
#include "model_world.h"

TEST_EACH(new_world, free_world);

static uint32_t new_context(void)
{
	uint32_t context, proc = sim_proc_join(w);
	assert_int_equal(sim_context_new(w, 0, proc, false, &context), 0);
	return context;
}

static uint32_t new_stream(uint32_t context, int priority, bool is_blocking)
{
	uint32_t stream;
	assert_int_equal(sim_stream_new(w, context, priority, is_blocking, &stream), 0);
	return stream;
}

static uint64_t submit(uint32_t stream, struct sim_op op)
{
	uint64_t position;
	assert_int_equal(sim_submit(w, stream, &op, &position), 0);
	return position;
}

static struct sim_op kernel(uint64_t length_ns, bool is_timed, uint32_t blocks, uint32_t threads)
{
	return (struct sim_op){
	    .kind = SIM_OP_KERNEL,
	    .length_ns = length_ns,
	    .is_timed = is_timed,
	    .blocks = blocks,
	    .threads = threads,
	    .module = SIM_NONE,
	};
}

static const struct sim_op *op_at(uint32_t stream, uint64_t position)
{
	return sim_op_at(w, stream, position);
}

/* A timed kernel ends at its first look at the clock at or after its end: 2 ns later here. */
enum { LOOK_NS = 2 };

TEST(a_kernel_starts_after_the_launch_latency_and_lasts_its_length)
{
	uint32_t stream = new_stream(new_context(), 0, false);
	go_to(now_ns);
	uint64_t begun_ns = now_ns;
	submit(stream, kernel(MS, true, 1, 32));
	submit(stream, kernel(MS, false, 1, 32));
	go_to(begun_ns + 10 * MS);
	assert_int_equal(op_at(stream, 0)->state, SIM_OP_DONE);
	assert_int_equal(op_at(stream, 0)->start_ns, begun_ns + 5 * US);
	assert_int_equal(op_at(stream, 0)->end_ns, begun_ns + 5 * US + MS + LOOK_NS);
	assert_int_equal(op_at(stream, 1)->start_ns, op_at(stream, 0)->end_ns + US);
	assert_int_equal(op_at(stream, 1)->end_ns, op_at(stream, 1)->start_ns + MS);
}

TEST(the_state_does_not_depend_on_how_often_one_looks)
{
	uint64_t ends[2];
	for (int round = 0; round < 2; round++) {
		uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
		for (int i = 0; i < 5; i++) {
			submit(a, kernel(3 * MS, false, 1, 32));
			submit(b, kernel(5 * MS, false, 1, 32));
		}
		uint64_t begun_ns = now_ns;
		if (round)
			go_to(begun_ns + 100 * MS);
		else
			for (uint64_t t = 0; t <= 100 * MS; t += 37 * US)
				go_to(begun_ns + t);
		go_to(begun_ns + 100 * MS);
		ends[round] = op_at(b, 4)->end_ns - begun_ns;
		assert_int_equal(op_at(b, 4)->state, SIM_OP_DONE);
		free_world(state);
		new_world(state);
	}
	assert_int_equal(ends[0], ends[1]);
}

TEST(two_contexts_take_turns_of_one_slice_with_a_switch_between)
{
	uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
	uint64_t begun_ns = now_ns;
	submit(a, kernel(5 * MS, false, 1, 32));
	submit(b, kernel(5 * MS, false, 1, 32));
	go_to(begun_ns + 50 * MS);
	uint64_t first_ns = begun_ns + 5 * US;
	assert_int_equal(op_at(a, 0)->start_ns, first_ns);
	assert_int_equal(op_at(b, 0)->start_ns, first_ns + SLICE + SWITCH);
	/* a: 2, 2, 1 ms; b: 2, 2, then alone for its last */
	assert_int_equal(op_at(a, 0)->gap_ns, SLICE + 2 * SWITCH);
	assert_int_equal(op_at(b, 0)->gap_ns, SLICE + 2 * SWITCH);
	assert_int_equal(op_at(a, 0)->end_ns, first_ns + 2 * (2 * SLICE + 2 * SWITCH) + MS);
	assert_int_equal(op_at(b, 0)->end_ns, op_at(a, 0)->end_ns + SWITCH + MS);
}

TEST(a_context_without_work_gives_its_turn_up)
{
	uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
	uint64_t begun_ns = now_ns;
	submit(a, kernel(MS, true, 1, 32));
	submit(b, kernel(MS, true, 1, 32));
	go_to(begun_ns + 10 * MS);
	assert_int_equal(op_at(b, 0)->start_ns, op_at(a, 0)->end_ns + SWITCH);
	/* An idle context costs nobody anything. */
	submit(b, kernel(20 * MS, true, 1, 32));
	go_to(now_ns + 50 * MS);
	assert_int_equal(op_at(b, 1)->gap_ns, 352);
}

TEST(the_first_kernel_after_another_context_s_pays_a_switch)
{
	uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
	submit(a, kernel(MS, true, 1, 32));
	go_to(now_ns + 10 * MS);
	uint64_t begun_ns = now_ns;
	submit(b, kernel(MS, true, 1, 32));
	go_to(now_ns + 10 * MS);
	assert_int_equal(op_at(b, 0)->start_ns, begun_ns + 5 * US + SWITCH);
	begun_ns = now_ns;
	submit(b, kernel(MS, true, 1, 32));
	go_to(now_ns + 10 * MS);
	assert_int_equal(op_at(b, 1)->start_ns, begun_ns + 5 * US);
}

TEST(a_timed_kernel_counts_its_pauses_and_a_working_one_does_not)
{
	uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
	uint64_t begun_ns = now_ns;
	submit(a, kernel(5 * MS, true, 1, 32));
	submit(b, kernel(5 * MS, false, 1, 32));
	go_to(begun_ns + 50 * MS);
	/* a's 5 ms are over while it has its second turn. */
	assert_int_equal(op_at(a, 0)->end_ns, begun_ns + 5 * US + 5 * MS + LOOK_NS);
	assert_true(op_at(b, 0)->end_ns - op_at(b, 0)->start_ns > 5 * MS);
}

static struct sim_op watching(uint64_t length_ns, uint64_t late_after_ns, uint64_t gap_limit_ns, uint32_t module)
{
	struct sim_op op = kernel(length_ns, true, 1, 32);
	op.late_after_ns = late_after_ns;
	op.gap_limit_ns = gap_limit_ns;
	op.epoch = 7;
	op.module = module;
	return op;
}

TEST(a_late_kernel_ends_at_once_and_stops_its_epoch)
{
	uint32_t proc = sim_proc_join(w), module = sim_module_new(w, proc);
	uint32_t stream = new_stream(new_context(), 0, false);
	uint64_t clock_ns = sim_card_clock_ns(w, 0, now_ns);
	submit(stream, watching(MS, clock_ns + 6 * US, 0, module));
	submit(stream, watching(MS, clock_ns + 6 * US, 0, module));
	submit(stream, watching(MS, 0, 0, module));
	struct sim_op other_epoch = watching(MS, 0, 0, module);
	other_epoch.epoch = 8;
	submit(stream, other_epoch);
	go_to(now_ns + 20 * MS);
	assert_int_equal(op_at(stream, 0)->flags, 0);
	assert_int_equal(op_at(stream, 1)->flags, SIM_RECORD_LATE);
	assert_true(op_at(stream, 1)->end_ns - op_at(stream, 1)->start_ns < 2 * US);
	assert_int_equal(op_at(stream, 2)->flags, SIM_RECORD_STOPPED);
	assert_true(op_at(stream, 2)->end_ns - op_at(stream, 2)->start_ns < 2 * US);
	assert_int_equal(op_at(stream, 3)->flags, 0);
	assert_int_equal(op_at(stream, 3)->end_ns - op_at(stream, 3)->start_ns, MS + LOOK_NS);
}

TEST(a_kernel_with_too_long_a_pause_ends_when_it_resumes)
{
	uint32_t proc = sim_proc_join(w), module = sim_module_new(w, proc);
	uint32_t a = new_stream(new_context(), 0, false), b = new_stream(new_context(), 0, false);
	uint64_t begun_ns = now_ns;
	submit(a, watching(20 * MS, 0, 50 * US, module));
	submit(a, watching(20 * MS, 0, 50 * US, module));
	submit(b, kernel(MS, false, 1, 32));
	go_to(begun_ns + 50 * MS);
	assert_int_equal(op_at(a, 0)->flags, SIM_RECORD_GAP);
	assert_int_equal(op_at(a, 0)->gap_ns, MS + 2 * SWITCH);
	assert_int_equal(op_at(a, 0)->end_ns, begun_ns + 5 * US + SLICE + MS + 2 * SWITCH + 352);
	assert_int_equal(op_at(a, 1)->flags, SIM_RECORD_STOPPED);
}

TEST(running_kernels_of_a_stopped_epoch_end_too)
{
	uint32_t proc = sim_proc_join(w), module = sim_module_new(w, proc), context = new_context();
	uint32_t a = new_stream(context, 0, false), b = new_stream(context, 0, false);
	submit(a, watching(20 * MS, 0, 0, module));
	go_to(now_ns + MS);
	submit(b, watching(20 * MS, 1, 0, module));
	go_to(now_ns + MS);
	assert_int_equal(op_at(b, 0)->flags, SIM_RECORD_LATE);
	assert_int_equal(op_at(a, 0)->flags, SIM_RECORD_STOPPED);
	assert_int_equal(op_at(a, 0)->state, SIM_OP_DONE);
}

TEST(streams_of_a_context_run_together_while_their_threads_fit)
{
	uint32_t context = new_context(), s[3];
	for (int i = 0; i < 3; i++)
		s[i] = new_stream(context, 0, false);
	uint64_t begun_ns = now_ns;
	for (int i = 0; i < 3; i++)
		submit(s[i], kernel(MS, false, 132, 1024)); /* half of the card's threads each */
	go_to(begun_ns + 10 * MS);
	assert_int_equal(op_at(s[0], 0)->start_ns, begun_ns + 5 * US);
	assert_int_equal(op_at(s[1], 0)->start_ns, begun_ns + 5 * US);
	assert_int_equal(op_at(s[2], 0)->start_ns, begun_ns + 5 * US + MS);
}

TEST(a_higher_priority_starts_first_when_there_is_room_again)
{
	uint32_t context = new_context();
	uint32_t running = new_stream(context, 0, false), low = new_stream(context, 0, false),
		 high = new_stream(context, -5, false);
	uint64_t begun_ns = now_ns;
	submit(running, kernel(MS, false, 264, 1024));
	submit(low, kernel(MS, false, 264, 1024));
	submit(high, kernel(MS, false, 264, 1024));
	go_to(begun_ns + 10 * MS);
	assert_true(op_at(high, 0)->start_ns < op_at(low, 0)->start_ns);
}

TEST(a_grid_of_more_blocks_than_fit_goes_over_the_sms_in_waves)
{
	uint32_t context = new_context(), stream = new_stream(context, 0, false);
	uint64_t begun_ns = now_ns + 5 * US;
	submit(stream, kernel(MS, true, 4 * 264, 1024)); /* 264 blocks at once, each of a millisecond */
	submit(stream, kernel(MS, false, 4 * 264, 1024));
	go_to(begun_ns + 20 * MS);
	assert_int_equal(op_at(stream, 0)->end_ns, begun_ns + 4 * (MS + LOOK_NS));
	assert_int_equal(op_at(stream, 1)->end_ns, op_at(stream, 1)->start_ns + MS);
}

TEST(a_higher_priority_waits_for_the_blocks_on_the_sms_and_not_for_the_whole_grid)
{
	uint32_t context = new_context();
	uint32_t low = new_stream(context, 0, false), same = new_stream(context, 0, false),
		 high = new_stream(context, -1, false);
	uint64_t begun_ns = now_ns + 5 * US, wave_ns = MS + LOOK_NS;
	submit(low, kernel(MS, true, 4 * 264, 1024));
	go_to(begun_ns + MS + 500 * US);
	submit(same, kernel(MS, false, 1, 32));
	submit(high, kernel(3 * MS, false, 1, 32));
	go_to(begun_ns + 50 * MS);
	assert_int_equal(op_at(high, 0)->start_ns, begun_ns + 2 * wave_ns);
	/* Its other waves come when there is room again: nothing is lost, and no block was paused. */
	assert_int_equal(op_at(low, 0)->end_ns, begun_ns + 4 * wave_ns + 3 * MS);
	assert_int_equal(op_at(low, 0)->gap_ns, 352);
	assert_true(op_at(same, 0)->start_ns >= op_at(low, 0)->end_ns);
}

TEST(a_stream_waits_for_another_s_event)
{
	uint32_t context = new_context(), a = new_stream(context, 0, false), b = new_stream(context, 0, false);
	submit(a, kernel(5 * MS, false, 1, 32));
	uint64_t mark = submit(a, (struct sim_op){.kind = SIM_OP_MARK, .module = SIM_NONE});
	submit(b, (struct sim_op){.kind = SIM_OP_WAIT,
				  .on_stream = a,
				  .on_generation = w->streams[a].generation,
				  .on_position = mark,
				  .module = SIM_NONE});
	submit(b, kernel(MS, false, 1, 32));
	go_to(now_ns + 20 * MS);
	assert_int_equal(op_at(a, 1)->end_ns, op_at(a, 0)->end_ns);
	assert_int_equal(op_at(b, 1)->start_ns, op_at(a, 1)->end_ns + US);
}

TEST(the_legacy_stream_and_blocking_ones_hold_each_other_up)
{
	uint32_t context = new_context(), legacy = w->contexts[context].streams[0];
	uint32_t blocking = new_stream(context, 0, true), free_one = new_stream(context, 0, false);
	submit(blocking, kernel(MS, false, 1, 32));
	submit(legacy, kernel(MS, false, 1, 32));
	submit(blocking, kernel(MS, false, 1, 32));
	submit(free_one, kernel(MS, false, 1, 32));
	uint64_t begun_ns = now_ns;
	go_to(now_ns + 20 * MS);
	assert_int_equal(op_at(legacy, 0)->start_ns, op_at(blocking, 0)->end_ns);
	assert_true(op_at(blocking, 1)->start_ns >= op_at(legacy, 0)->end_ns);
	assert_int_equal(op_at(free_one, 0)->start_ns, begun_ns + 5 * US);
}

TEST(copies_queue_for_their_engine_beside_kernels)
{
	uint32_t context = new_context(), a = new_stream(context, 0, false), b = new_stream(context, 0, false),
		 c = new_stream(context, 0, false);
	struct sim_op copy = {.kind = SIM_OP_COPY, .length_ns = MS, .module = SIM_NONE};
	submit(a, copy);
	submit(b, copy);
	submit(c, kernel(MS, false, 264, 1024));
	uint64_t begun_ns = now_ns;
	go_to(now_ns + 20 * MS);
	assert_int_equal(op_at(a, 0)->end_ns, begun_ns + 5 * US + MS);
	assert_int_equal(op_at(b, 0)->end_ns, begun_ns + 5 * US + 2 * MS);
	assert_int_equal(op_at(c, 0)->start_ns, begun_ns + 5 * US);
}

/* One kernel of `on` in every `period` for `s` seconds from the start of a window on. */
static void run_duty(uint64_t on_ns, uint64_t period_ns, unsigned s, uint32_t blocks, uint32_t threads)
{
	uint32_t stream = new_stream(new_context(), 0, false);
	go_to(w->cards[0].meter.window_start_ns + 200 * MS);
	for (uint64_t end_ns = now_ns + s * LL_NS_PER_S; now_ns < end_ns;) {
		submit(stream, kernel(on_ns, false, blocks, threads));
		w->streams[stream].reaped = w->streams[stream].done;
		go_to(now_ns + period_ns);
	}
}

static uint32_t last_percent(void)
{
	const struct sim_card *card = &w->cards[0];
	return card->samples[(card->meter.sample_count - 1) % SIM_SAMPLES].util_percent;
}

TEST(utilisation_is_the_share_of_time_truncated_to_percent)
{
	const struct {
		uint64_t on_ns, period_ns;
		uint32_t percent;
	} cases[] = {
	    {5 * MS, 10 * MS, 50},    {500 * US, MS, 50},    {50 * MS, 100 * MS, 50},  {1300 * US, 10 * MS, 13},
	    {1290 * US, 10 * MS, 12}, {90 * US, 10 * MS, 0}, {9494 * US, 10 * MS, 94}, {200 * US + 1, 20 * MS, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run_duty(cases[i].on_ns, cases[i].period_ns, 2, 1, 32);
		assert_int_equal(last_percent(), cases[i].percent);
		free_world(state);
		new_world(state);
	}
}

TEST(counters_of_the_sms_follow_blocks_and_threads)
{
	const struct {
		uint32_t blocks, threads;
		double sm, occupancy, watts;
	} cases[] = {
	    {1, 32, 0.5 / 132, 0.5 * 32 / (132 * 2048), 121.7},
	    {132, 1024, 0.5, 0.25, 215},
	    {66, 1024, 0.25, 0.125, 168},
	    {264, 1024, 0.5, 0.5, 215},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run_duty(5 * MS, 10 * MS, 3, cases[i].blocks, cases[i].threads);
		const struct sim_meter *meter = &w->cards[0].meter;
		assert_true(fabs(meter->busy_s - 1.5) < 1e-6);
		assert_true(fabs(meter->sm_s - 3 * cases[i].sm) < 1e-6);
		assert_true(fabs(meter->occupancy_s - 3 * cases[i].occupancy) < 1e-6);
		assert_true(fabs(sim_card_watts(&w->cards[0]) - cases[i].watts) < 0.1);
		free_world(state);
		new_world(state);
	}
}

TEST(power_is_a_mean_over_a_second_and_energy_its_integral)
{
	go_to(now_ns + 5 * LL_NS_PER_S);
	assert_true(fabs(sim_card_watts(&w->cards[0]) - 77) < 1e-9);
	assert_true(fabs(w->cards[0].meter.joules - 5 * 77) < 1e-6);
	new_context();
	go_to(now_ns + 500 * MS);
	assert_true(sim_card_watts(&w->cards[0]) > 90 && sim_card_watts(&w->cards[0]) < 110);
	assert_true(fabs(sim_card_instant_watts(&w->cards[0]) - 121) < 1e-9);
	go_to(now_ns + LL_NS_PER_S);
	assert_true(fabs(sim_card_watts(&w->cards[0]) - 121) < 1e-9);
}

TEST(memory_seconds_are_of_the_memory_that_the_list_of_processes_has)
{
	uint32_t first = w->contexts[new_context()].proc, other = first + 1, context;
	w->procs[other] = w->procs[first];
	assert_int_equal(sim_context_new(w, 0, first, false, &context), 0);
	assert_int_equal(sim_context_new(w, 0, other, false, &context), 0);
	uint64_t bytes = sim_proc_used_bytes(w, 0, first) + sim_proc_used_bytes(w, 0, other);
	/* Looked at often, and not for an hour. */
	for (uint64_t s = 1; s <= 3600; s += 3599) {
		double held = w->cards[0].meter.memory_byte_s;
		go_to(now_ns + s * LL_NS_PER_S);
		assert_true(fabs(w->cards[0].meter.memory_byte_s - held - (double)(s * bytes)) < 1e3);
	}
}

TEST(an_hour_in_which_nobody_looked_is_skipped)
{
	double joules = w->cards[0].meter.joules;
	go_to(now_ns + 3600 * LL_NS_PER_S);
	assert_true(w->cards[0].meter.sample_count < 200);
	assert_true(fabs(w->cards[0].meter.joules - joules - 3600 * 77) < 1);
	assert_true(w->now_ns - w->cards[0].meter.window_start_ns < 200 * MS);
}

TEST(commands_put_off_run_at_their_time)
{
	uint64_t begun_ns = now_ns;
	run("at 3s card 0 temperature 90");
	run("at 1s card 0 used 1G for 1s");
	go_to(begun_ns + 1500 * MS);
	assert_int_equal(sim_card_used_bytes(w, 0), UINT64_C(1) << 30);
	go_to(begun_ns + 2500 * MS);
	assert_int_equal(sim_card_used_bytes(w, 0), 0);
	assert_true(sim_card_celsius(w, &w->cards[0]) < 40);
	go_to(begun_ns + 3001 * MS);
	assert_true(sim_card_celsius(w, &w->cards[0]) == 90);
	run("card 0 temperature 50 over 4s");
	go_to(now_ns + 2 * LL_NS_PER_S);
	assert_true(fabs(sim_card_celsius(w, &w->cards[0]) - 70) < 0.1);
}

TEST(nothing_moves_while_the_machine_is_suspended)
{
	uint32_t stream = new_stream(new_context(), 0, false);
	uint64_t begun_ns = now_ns;
	submit(stream, kernel(10 * MS, false, 1, 32));
	go_to(begun_ns + 5 * MS);
	run("suspend 1s");
	go_to(begun_ns + 900 * MS);
	assert_int_equal(op_at(stream, 0)->state, SIM_OP_RUNNING);
	go_to(begun_ns + 1100 * MS);
	assert_int_equal(op_at(stream, 0)->state, SIM_OP_DONE);
	assert_int_equal(op_at(stream, 0)->gap_ns, 1000 * MS);
}

TEST(a_wait_across_cards_is_exact)
{
	run("cards 2");
	run("card all launch-latency 5us");
	uint32_t proc = sim_proc_join(w), first, second;
	assert_int_equal(sim_context_new(w, 0, proc, false, &first), 0);
	assert_int_equal(sim_context_new(w, 1, proc, false, &second), 0);
	uint32_t a = new_stream(first, 0, false), b = new_stream(second, 0, false);
	/* The first card waits for the second: the one that is advanced later in a step. */
	uint64_t mark = submit(b, kernel(7 * MS, false, 1, 32));
	submit(a, (struct sim_op){.kind = SIM_OP_WAIT,
				  .on_stream = b,
				  .on_generation = w->streams[b].generation,
				  .on_position = mark,
				  .module = SIM_NONE});
	go_to(now_ns + 50 * MS);
	assert_int_equal(op_at(a, 0)->end_ns, op_at(b, 0)->end_ns);
}

/* Killed at any instruction: whatever was half done is undone. Here the kill is a rollback after each possible write.
 */
TEST(a_step_cut_short_leaves_the_world_as_it_was)
{
	uint32_t stream = new_stream(new_context(), 0, false);
	sim_commit(w);
	size_t size = offsetof(struct sim_world, undo);
	void *before = malloc(size);
	assert_non_null(before);
	memcpy(before, w, size);
	SIM_EDIT(w, &w->streams[stream])->submitted = 17;
	SIM_EDIT(w, &w->cards[0].meter)->joules = 1e9;
	SIM_EDIT(w, &w->streams[stream])->submitted = 18;
	SIM_EDIT(w, &w->streams[stream])->priority = 3;
	assert_memory_not_equal(before, w, size);
	sim_rollback(w);
	assert_memory_equal(before, w, size);
	free(before);
}
