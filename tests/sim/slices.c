/*
 * Slices, off and on have on the simulated card what they have on an H200 (doc/facts.md, "Slices, off and the trace of
 * context switches"), each within a twentieth. Progress is in thousandths of a program's own alone.
 */
#include "base/clock.h"
#include "base/err.h"
#include "card/command.h"
#include "card/context.h"
#include "card/defaults.h"
#include "card/engine.h"
#include "card/process.h"
#include "card/queue.h"
#include "card/rm.h"
#include "card/trace.h"
#include "card/turn.h"
#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS
/* From the end of a kernel to the next launch of a program whose waits block, on the machine of the measurements. */
#define WAKE_NS (220 * US)
/* From the call to its effect. */
#define CALL_NS (350 * US)

enum { MOST_PROGRAMS = 4, CHANNELS = 8, DEPTH = 8 };

struct program {
	uint32_t context, stream, group;
	uint32_t channels[CHANNELS];
	uint64_t kernel_ns;
	uint64_t wake_ns;  /* 0: it does not wait, and keeps DEPTH kernels queued */
	uint64_t begun_ns; /* what it had done when the window began */
};

static struct sim_world *w;
static uint32_t file, client, device, subdevice;
static struct program programs[MOST_PROGRAMS];
static unsigned program_count;

/* ---- the world ---- */

static uint32_t make(uint32_t parent, uint32_t class, void *params, uint32_t size)
{
	struct ll_rm_alloc alloc = {
	    .root = client, .parent = parent, .class = class, .params = (uintptr_t)params, .params_size = size};
	assert_int_equal(sim_rm_alloc(w, file, &alloc), 0);
	return alloc.object;
}

static int new_world(void **state)
{
	(void)state;
	uint32_t number = 0;
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w == MAP_FAILED)
		return -1;
	sim_world_init(w, 1000 * LL_NS_PER_S, 0);
	program_count = 0;
	file = sim_rm_add_file(w, sim_proc_join(w), 1, 1);
	client = make(0, LL_RM_CLASS_ROOT, NULL, 0);
	device = make(client, LL_RM_CLASS_DEVICE, &number, sizeof number);
	subdevice = make(device, LL_RM_CLASS_SUBDEVICE, &number, sizeof number);
	return 0;
}

static int free_world(void **state)
{
	(void)state;
	return munmap(w, sizeof *w);
}

static uint32_t ask(uint32_t object, uint32_t command, void *params, uint32_t size)
{
	struct ll_rm_control control = {
	    .client = client, .object = object, .command = command, .params = (uintptr_t)params, .params_size = size};
	uint32_t status = sim_rm_control(w, file, &control);
	sim_advance(w, w->now_ns, 0);
	return status;
}

static void set_slice(const struct program *program, uint64_t us)
{
	assert_int_equal(ask(program->group, LL_RM_CONTROL_SET_SLICE, &us, sizeof us), 0);
}

static uint32_t switch_program(const struct program *program, bool is_off)
{
	struct ll_rm_disable list = {.is_off = is_off, .count = CHANNELS};
	for (unsigned i = 0; i < CHANNELS; i++) {
		list.clients[i] = client;
		list.channels[i] = program->channels[i];
	}
	return ask(subdevice, LL_RM_CONTROL_DISABLE_CHANNELS, &list, sizeof list);
}

/* A kernel fills the card. */
static struct program *new_program(uint64_t kernel_ns, uint64_t wake_ns)
{
	struct program *program = &programs[program_count++];
	struct ll_rm_group_params params = {.engine = LL_RM_ENGINE_COMPUTE};
	uint64_t channel_params[45] = {0};
	*program = (struct program){.kernel_ns = kernel_ns, .wake_ns = wake_ns};
	assert_int_equal(sim_context_new(w, 0, w->rm_files[file].proc, CHANNELS, &program->context), 0);
	assert_int_equal(sim_stream_new(w, program->context, 0, false, &program->stream), 0);
	params.address_space = sim_rm_address_space(program->context);
	program->group = make(device, LL_RM_CLASS_CHANNEL_GROUP, &params, sizeof params);
	for (unsigned i = 0; i < CHANNELS; i++)
		program->channels[i] = make(program->group, 0xc86f, channel_params, sizeof channel_params);
	set_slice(program, SIM_SLICE_ASKED);
	return program;
}

static struct program *new_flood(void)
{
	return new_program(1 * MS, 0);
}

static struct program *new_waiter(void)
{
	return new_program(50 * US, WAKE_NS);
}

/* ---- what runs ---- */

/* Launches what the program's host launches by now. Returns when it launches next; SIM_NEVER: after the end of a
 * kernel. */
static uint64_t launch_due(struct program *program)
{
	struct sim_stream *stream = &w->streams[program->stream];
	uint64_t position;
	struct sim_op op = {.kind = SIM_OP_KERNEL,
			    .length_ns = program->kernel_ns,
			    .module = SIM_NONE,
			    .blocks = 2 * w->cards[0].sm_count,
			    .threads = 1024};
	unsigned depth = program->wake_ns ? 1 : DEPTH;
	stream->reaped = stream->done;
	if (stream->submitted - stream->done == depth)
		return SIM_NEVER;
	if (stream->last_end_ns + program->wake_ns > w->now_ns)
		return stream->last_end_ns + program->wake_ns;
	while (stream->submitted - stream->done < depth)
		assert_int_equal(sim_submit(w, program->stream, &op, &position), 0);
	return w->now_ns;
}

/* The time that the program's kernels have had the card. */
static uint64_t done_ns(const struct program *program)
{
	const struct sim_stream *stream = &w->streams[program->stream];
	uint64_t done = stream->done * program->kernel_ns;
	if (!sim_queue_is_pending(stream))
		return done;
	const struct sim_op *op = sim_queue_head(w, program->stream);
	if (op->state != SIM_OP_RUNNING)
		return done;
	return done + op->length_ns - (op->paused_ns ? op->left_ns : op->end_ns - w->now_ns);
}

/* What a test does besides: called at its time, it returns when it is to be called next. */
typedef uint64_t actor(uint64_t since_ns);

static void run(uint64_t length_ns, actor *act)
{
	uint64_t begun_ns = w->now_ns, until_ns = begun_ns + length_ns, act_ns = act ? begun_ns : SIM_NEVER;
	while (w->now_ns < until_ns) {
		while (act && act_ns <= w->now_ns)
			act_ns = begun_ns + act(w->now_ns - begun_ns);
		uint64_t to_ns = act_ns < until_ns ? act_ns : until_ns;
		for (unsigned i = 0; i < program_count; i++) {
			uint64_t due_ns = launch_due(&programs[i]);
			to_ns = due_ns < to_ns ? due_ns : to_ns;
		}
		uint64_t next_ns = to_ns > w->now_ns ? sim_next_event_ns(w) : w->now_ns;
		sim_advance(w, next_ns < to_ns ? next_ns : to_ns, 0);
	}
}

static void begin_window(void)
{
	for (unsigned i = 0; i < program_count; i++)
		programs[i].begun_ns = done_ns(&programs[i]);
}

static double progress(const struct program *program, uint64_t window_ns)
{
	return 1000 * (double)(done_ns(program) - program->begun_ns) / (double)window_ns;
}

#define NOT_READ (-1)

/* Within a twentieth, or half of the last digit as it was read. */
static void check(const char *what, double has, double wanted)
{
	if (wanted == NOT_READ)
		return;
	double tolerance = wanted / 20 > 0.5 ? wanted / 20 : 0.5;
	printf("%-52s %6.1f, on the H200 %4.0f\n", what, has, wanted);
	if (has < wanted - tolerance || has > wanted + tolerance)
		fail_msg("%s: %.1f, on the H200 %.0f", what, has, wanted);
}

#define WINDOW_NS (4 * LL_NS_PER_S)

static void check_both(const char *what, actor *act, double first, double second)
{
	run(100 * MS, act);
	begin_window();
	run(WINDOW_NS, act);
	check(what, progress(&programs[0], WINDOW_NS), first);
	check("    the other", progress(&programs[1], WINDOW_NS), second);
}

static void check_slices(const char *what, uint64_t first_us, uint64_t second_us, double first, double second)
{
	set_slice(&programs[0], first_us);
	set_slice(&programs[1], second_us);
	check_both(what, NULL, first, second);
}

TEST_EACH(new_world, free_world);

/* ---- slices ---- */

TEST(test_floods_have_what_their_slices_are)
{
	new_flood();
	new_flood();
	check_both("two floods", NULL, 455, 455);
	check_slices("8000 and 2000 us", 8000, 2000, 771, 190);
	check_slices("16000 and 500 us", 16000, 500, 953, 28);
	check_slices("1000 us each", 1000, 1000, 418, 418);
	check_slices("500 and 100 us", 500, 100, 506, 74);
	check_slices("back to 2000 us", 2000, 2000, 453, 453);
}

TEST(test_a_slice_of_0_stands_beside_others_and_costs_them_the_switches)
{
	new_flood();
	new_flood();
	check_slices("0 and 2000 us", 0, 2000, 0, 833);
	uint64_t done_before_ns = done_ns(&programs[0]);
	check_slices("0 us each", 0, 0, 0, 0);
	assert_int_equal(done_ns(&programs[0]), done_before_ns);
}

TEST(test_a_slice_of_0_stops_nothing_that_is_alone)
{
	set_slice(new_flood(), 0);
	run(100 * MS, NULL);
	begin_window();
	run(WINDOW_NS, NULL);
	check("0 us, alone", progress(&programs[0], WINDOW_NS), 1000);
}

TEST(test_the_length_of_a_kernel_does_not_matter)
{
	new_program(30 * MS, 0);
	new_flood();
	check_slices("kernels of 30 ms with 500 us, of 1 ms with 4000 us", 500, 4000, 98, 824);
	check_slices("4000 and 500 us", 4000, 500, 829, 98);
	check_slices("2048 us each", 2048, 2048, 458, 457);
}

TEST(test_who_waits_for_each_kernel_has_more_beside_a_short_slice)
{
	new_waiter();
	new_flood();
	check_slices("waits for each kernel of 50 us, beside 2000 us", 2048, 2000, 20, NOT_READ);
	check_slices("beside 500 us", 2048, 500, 57, NOT_READ);
	check_slices("beside 100 us", 2048, 100, 108, NOT_READ);
}

static uint64_t take_turns_by_slice(uint64_t since_ns)
{
	bool is_first = since_ns / (5 * MS) % 2 == 0;
	set_slice(&programs[0], is_first ? SIM_SLICE_ASKED : 0);
	set_slice(&programs[1], is_first ? 0 : SIM_SLICE_ASKED);
	return since_ns + 5 * MS;
}

TEST(test_turns_by_a_slice_of_0_cost_who_waits_two_switches_a_wait)
{
	new_waiter();
	new_flood();
	check_both("waits for each kernel of 50 us, turns by slice 0", take_turns_by_slice, 56, 486);
}

static uint64_t set_own_slice(uint64_t since_ns)
{
	set_slice(&programs[0], SIM_SLICE_ASKED);
	return since_ns + LL_NS_PER_S / 300;
}

/* A set begins a new slice, so who sets often has more. The model has the direction, not the size. */
TEST(test_who_sets_its_slice_often_has_more)
{
	new_flood();
	new_flood();
	run(100 * MS, set_own_slice);
	begin_window();
	run(WINDOW_NS, set_own_slice);
	assert_true(progress(&programs[0], WINDOW_NS) > 1.2 * progress(&programs[1], WINDOW_NS));
}

static uint64_t latencies_ns[200];
static unsigned latency_count;

static void note_latency(const struct sim_op *op)
{
	latencies_ns[latency_count++] = op->end_ns - op->submit_ns - op->length_ns - w->cards[0].launch_ns;
}

/* A kernel of 5 us on one SM, from time to time. */
static uint64_t launch_a_small_one(uint64_t since_ns)
{
	uint64_t position;
	struct sim_stream *stream = &w->streams[programs[0].stream];
	struct sim_op op = {.kind = SIM_OP_KERNEL, .length_ns = 5 * US, .module = SIM_NONE, .blocks = 1, .threads = 32};
	if (stream->submitted)
		note_latency(sim_op_at(w, programs[0].stream, stream->submitted - 1));
	stream->reaped = stream->done;
	assert_int_equal(sim_submit(w, programs[0].stream, &op, &position), 0);
	return since_ns + 5013 * US;
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return (first > second) - (first < second);
}

static void check_latency(const char *what, uint64_t slice_us, double wanted)
{
	set_slice(&programs[1], slice_us);
	latency_count = 0;
	run(LL_NS_PER_S, launch_a_small_one);
	qsort(latencies_ns, latency_count, sizeof *latencies_ns, compare);
	size_t median = latency_count / 2;
	check(what, (double)latencies_ns[median] / US, wanted);
}

static void check_latencies(uint64_t kernel_ns)
{
	/* The first one launches nothing by itself. */
	new_program(5 * US, 1000 * LL_NS_PER_S);
	new_program(kernel_ns, 0);
	w->streams[programs[0].stream].last_end_ns = w->now_ns;
	run(10 * MS, NULL);
	/* What the H200 has beyond the 36 us that it has alone. */
	check_latency("a first kernel beside 500 us, us later", 500, 425);
	check_latency("beside 200 us", 200, 283);
	check_latency("beside 100 us", 100, 224);
	check_latency("beside 0 us", 0, 174); /* 174 and 186, in two boots */
}

TEST(test_a_first_kernel_waits_for_half_a_slice_and_a_switch)
{
	check_latencies(1 * MS);
}

TEST(test_so_it_does_beside_a_kernel_of_a_second)
{
	check_latencies(LL_NS_PER_S);
}

/* ---- off and on ---- */

TEST(test_off_is_off_in_the_middle_of_a_kernel_alone_and_beside_others)
{
	new_program(LL_NS_PER_S, 0);
	run(10 * MS, NULL);
	switch_program(&programs[0], true);
	begin_window();
	run(WINDOW_NS, NULL);
	check("off, alone", progress(&programs[0], WINDOW_NS), 0);
	new_flood();
	run(10 * MS, NULL);
	begin_window();
	run(WINDOW_NS, NULL);
	check("off, beside a flood", progress(&programs[0], WINDOW_NS), 0);
	check("    the other", progress(&programs[1], WINDOW_NS), 1000);
	assert_int_equal(programs[0].begun_ns, done_ns(&programs[0]));
	switch_program(&programs[0], false);
	check_both("on again", NULL, 455, 455);
}

static uint64_t be_on_for_6_of_20_ms(uint64_t since_ns)
{
	bool is_begin = since_ns % (20 * MS) == 0;
	switch_program(&programs[0], !is_begin);
	return since_ns + (is_begin ? 6 : 14) * MS;
}

TEST(test_a_program_is_held_to_a_part_of_the_time)
{
	new_flood();
	switch_program(&programs[0], true);
	begin_window();
	run(WINDOW_NS, be_on_for_6_of_20_ms);
	check("on for 30 % of 20 ms", progress(&programs[0], WINDOW_NS), 298);
}

/* The next one on, then the last one off: a call after the other, each turn of 10 ms. */
static uint64_t take_turns_by_off(uint64_t since_ns)
{
	uint64_t turn = since_ns / (10 * MS);
	bool is_begin = since_ns % (10 * MS) == 0;
	if (is_begin)
		switch_program(&programs[turn % 2], false);
	else
		switch_program(&programs[1 - turn % 2], true);
	return is_begin ? since_ns + CALL_NS : (turn + 1) * 10 * MS;
}

TEST(test_turns_by_off_lose_a_switch_each)
{
	new_flood();
	new_flood();
	switch_program(&programs[0], true);
	check_both("turns of 10 ms", take_turns_by_off, 489, 488);
}

TEST(test_off_is_counted)
{
	struct program *program = new_flood();
	switch_program(program, false); /* a surplus on is lost */
	switch_program(program, true);
	switch_program(program, true);
	switch_program(program, false);
	assert_true(w->contexts[program->context].off_channels);
	switch_program(program, false);
	assert_false(w->contexts[program->context].off_channels);
}

TEST(test_a_list_with_an_unknown_channel_puts_none_off)
{
	struct program *program = new_flood();
	program->channels[CHANNELS - 1] ^= 0x1000;
	assert_int_equal(switch_program(program, true), LL_RM_BAD_CHANNEL);
	assert_false(w->contexts[program->context].off_channels);
}

static void put_channel_off(const struct program *program, unsigned channel)
{
	struct ll_rm_disable list = {
	    .is_off = 1, .count = 1, .clients = {client}, .channels = {program->channels[channel]}};
	assert_int_equal(ask(subdevice, LL_RM_CONTROL_DISABLE_CHANNELS, &list, sizeof list), 0);
	begin_window();
	run(WINDOW_NS, NULL);
}

TEST(test_a_channel_without_work_can_be_off)
{
	struct program *program = new_flood();
	put_channel_off(program, CHANNELS - 1);
	check("the last of eight channels off", progress(program, WINDOW_NS), 1000);
	put_channel_off(program, 0);
	check("the first one too", progress(program, WINDOW_NS), 0);
}

TEST(test_copies_between_host_and_card_go_on_while_off)
{
	struct program *program = new_flood();
	uint32_t stream;
	uint64_t position;
	struct sim_op copy = {.kind = SIM_OP_COPY, .length_ns = 1 * MS, .module = SIM_NONE};
	run(10 * MS, NULL);
	switch_program(program, true);
	assert_int_equal(sim_stream_new(w, program->context, 0, false, &stream), 0);
	assert_int_equal(sim_submit(w, stream, &copy, &position), 0);
	run(10 * MS, NULL);
	assert_int_equal(w->streams[stream].done, 1);
}

TEST(test_a_channel_that_is_freed_while_off_stops_nothing)
{
	struct program *program = new_flood();
	struct ll_rm_free group = {.root = client, .object = program->group};
	switch_program(program, true);
	assert_int_equal(sim_rm_free(w, file, &group), 0);
	assert_false(w->contexts[program->context].off_channels);
	assert_int_equal(sim_rm_free(w, file, &group), SIM_RM_NO_OBJECT);
}

/* ---- other cards ---- */

static void check_card(const char *property, double first, double second)
{
	struct ll_err err = {0};
	assert_int_equal(sim_command_run(w, property, SIM_COMMAND_START, &err), 0);
	new_flood();
	new_flood();
	check_slices(property, 8000, 2000, first, second);
}

TEST(test_a_card_may_ignore_slices)
{
	check_card("card 0 slices ignore", 455, 455);
}

TEST(test_a_card_may_need_a_preempt_for_slices)
{
	check_card("card 0 slices commit", 455, 455);
	for (unsigned i = 0; i < program_count; i++)
		assert_int_equal(ask(programs[i].group, LL_RM_CONTROL_PREEMPT, NULL, 0), 0);
	check_both("after PREEMPT", NULL, 771, 190);
}

TEST(test_a_card_may_have_no_off)
{
	check_card("card 0 off no", 771, 190);
	assert_int_equal(switch_program(&programs[0], true), SIM_RM_NO_PERMISSION);
}

/* ---- the trace of context switches ---- */

/* Nobody reads it, so the notes are what it has. */
static struct sim_trace *open_trace(void)
{
	uint32_t index = sim_trace_new(w, 0, 0, 1024);
	sim_trace_bind(w, index, 0, w->procs[w->rm_files[file].proc].uid, false);
	sim_trace_enable(w, index, true);
	return &w->traces[index];
}

/* The time between a start and the next end, in thousandths of the time between the first record and the last one. */
static double part_of_stays(const struct sim_trace *trace, const struct program *program)
{
	uint64_t sum_ns = 0, begun_ns = 0;
	for (uint64_t i = 0; i < trace->noted_count; i++) {
		const struct sim_switch *note = &trace->noted[i];
		assert_true(i == 0 || note->at_ns >= trace->noted[i - 1].at_ns);
		if (note->cid != w->contexts[program->context].cid)
			continue;
		if (note->tag == LL_RM_SWITCH_START)
			begun_ns = note->at_ns;
		else if (begun_ns)
			sum_ns += note->at_ns - begun_ns;
	}
	return 1000 * (double)sum_ns / (double)(trace->noted[trace->noted_count - 1].at_ns - trace->noted[0].at_ns);
}

TEST(test_the_trace_has_the_stays_of_who_has_company)
{
	new_flood();
	new_flood();
	run(100 * MS, NULL);
	struct sim_trace *trace = open_trace();
	run(LL_NS_PER_S, NULL);
	check("stays of two floods", part_of_stays(trace, &programs[0]), 481.6);
	check("    the other", part_of_stays(trace, &programs[1]), 481.5);
	assert_int_equal(trace->dropped, 0);
	sim_trace_enable(w, 0, false);
	trace = open_trace();
	set_slice(&programs[0], 0);
	set_slice(&programs[1], 0);
	run(100 * MS, NULL);
	assert_true(trace->noted_count > 900); /* 11 100 a second on the H200 */
}

TEST(test_a_program_that_is_alone_has_records_only_for_off_and_on)
{
	struct program *program = new_flood();
	run(10 * MS, NULL);
	struct sim_trace *trace = open_trace();
	run(100 * MS, NULL);
	assert_int_equal(trace->noted_count, 0);
	for (unsigned i = 0; i < 10; i++) {
		switch_program(program, true);
		run(14 * MS, NULL);
		switch_program(program, false);
		run(6 * MS, NULL);
	}
	assert_int_equal(trace->noted_count, 20);
	assert_int_equal(trace->noted[0].tag, LL_RM_SWITCH_END);
	assert_int_equal(trace->noted[1].tag, LL_RM_SWITCH_START);
	assert_int_equal(trace->noted[1].pid, getpid());
	assert_int_equal(trace->noted[1].at_ns - trace->noted[0].at_ns, 14 * MS);
	sim_context_free(w, program->context);
	assert_int_equal(trace->noted[20].tag, LL_RM_SWITCH_END);
}

TEST(test_a_trace_has_others_only_with_all_users_and_without_name)
{
	enum { STRANGER = 1234 };
	new_flood();
	new_flood();
	struct sim_trace *own = open_trace(), *of_stranger = open_trace(), *of_all = open_trace();
	sim_trace_bind(w, 1, 0, STRANGER, false);
	sim_trace_bind(w, 2, 0, STRANGER, true);
	run(100 * MS, NULL);
	assert_true(own->noted_count > 80);
	assert_int_equal(of_stranger->noted_count, 0);
	assert_int_equal(of_all->noted_count, own->noted_count);
	assert_true(of_all->noted[0].is_hidden);
}
