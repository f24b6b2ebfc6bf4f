/* What the kernels of `loadline probe` would have written: blocks in waves, interruptions, the classic first kernel. */
#include "process.h"

#include <signal.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

enum { GAPS = 256, ROUND = 528, THREADS = 512, NUMBERS = 512 };

/* The layouts of src/probe/probe.h. */
struct trace {
	uint64_t max_gap_ns, step_ns;
	uint32_t gap_count, unused;
	struct {
		uint64_t at_ns, length_ns;
	} gaps[GAPS];
};

struct block {
	uint64_t start_ns, end_ns;
	uint32_t sm, is_done;
};

static const char ptx[] =
    ".version 7.4\n.target sm_50\n.address_size 64\n"
    ".visible .entry probe_timeline(.param .u64 length_ns, .param .u64 traces, .param .u64 blocks,\n"
    "	.param .u64 away_ns, .param .u64 round)\n.maxnreg 32\n{ ret; }\n"
    ".visible .entry write_index(.param .u64 out) { ret; }\n";

static struct ll_cu_function *get(const char *name)
{
	struct ll_cu_module *module;
	struct ll_cu_function *function;
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ptx), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&function, module, name), 0);
	return function;
}

/* Runs one and brings its records. traces and blocks are the caller's. */
static void run_timeline(struct ll_cu_stream *stream, uint64_t length_ns, unsigned blocks, unsigned threads,
			 struct trace *traces, struct block *list)
{
	unsigned rounds = (blocks + ROUND - 1) / ROUND;
	ll_cu_deviceptr traces_at, blocks_at;
	uint64_t away_ns = 10 * US, round = ROUND;
	CHECK_EQUAL(cu.cuMemAlloc(&traces_at, rounds * sizeof *traces), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&blocks_at, blocks * sizeof *list), 0);
	void *params[] = {&length_ns, &traces_at, &blocks_at, &away_ns, &round};
	CHECK_EQUAL(cu.cuLaunchKernel(get("probe_timeline"), blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(traces, traces_at, rounds * sizeof *traces), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(list, blocks_at, blocks * sizeof *list), 0);
	cu.cuMemFree(traces_at);
	cu.cuMemFree(blocks_at);
}

TEST_IN_WORLD("card 0 drift-ppm 0\n", blocks_that_do_not_fit_follow_in_waves)
{
	static struct trace traces[3];
	static struct block blocks[2 * ROUND + 1];
	open_context(0);
	run_timeline(new_stream(), MS, 2 * ROUND + 1, THREADS, traces, blocks);
	for (unsigned i = 0; i <= 2 * ROUND; i++) {
		CHECK_EQUAL(blocks[i].is_done, 1);
		CHECK_EQUAL(blocks[i].end_ns - blocks[i].start_ns, MS);
		CHECK_EQUAL(blocks[i].start_ns - blocks[0].start_ns, i / ROUND * MS);
		CHECK(blocks[i].sm < 132);
	}
	CHECK_EQUAL(blocks[131].sm, 131);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQUAL(traces[i].gap_count, 0);
		CHECK_EQUAL(traces[i].step_ns, 352);
	}
}

static void body_gaps(void)
{
	static struct trace trace;
	struct block block;
	pid_t stranger = spawn_ready(be_a_stranger);
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	unsigned tries = 0;
	do {
		CHECK(++tries < 60); /* the stranger may not have had a core of the host */
		run_timeline(s, 20 * MS, 1, 32, &trace, &block);
	} while (trace.gap_count == 0);
	/* What went to the stranger, 1 ms and two switches at a time, does not count. */
	CHECK(trace.gap_count < GAPS);
	uint64_t away_ns = 0, at_ns = block.start_ns, longest_ns = 0;
	for (uint32_t i = 0; i < trace.gap_count; i++) {
		CHECK(trace.gaps[i].at_ns >= at_ns && trace.gaps[i].length_ns >= MS + 300 * US);
		at_ns = trace.gaps[i].at_ns + trace.gaps[i].length_ns;
		away_ns += trace.gaps[i].length_ns;
		longest_ns = trace.gaps[i].length_ns > longest_ns ? trace.gaps[i].length_ns : longest_ns;
	}
	CHECK(at_ns <= block.end_ns);
	CHECK_EQUAL(block.end_ns - block.start_ns - away_ns, 20 * MS);
	CHECK_EQUAL(trace.max_gap_ns, longest_ns);
	kill(stranger, SIGKILL);
}

TEST(interruptions_are_listed_and_their_time_does_not_count)
{
	in_world("card 0 slice 2ms\ncard 0 switch 150us\ncard 0 drift-ppm 0\n", body_gaps);
}

TEST_IN_WORLD(NULL, every_thread_writes_its_number_and_nothing_else_is_written)
{
	static int32_t numbers[NUMBERS];
	ll_cu_deviceptr out;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&out, sizeof numbers), 0);
	CHECK_EQUAL(cu.cuMemsetD32(out, UINT32_MAX, NUMBERS), 0);
	void *params[] = {&out};
	CHECK_EQUAL(cu.cuLaunchKernel(get("write_index"), 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(numbers, out, sizeof numbers), 0);
	for (int i = 0; i < NUMBERS; i++)
		CHECK_EQUAL(numbers[i], i < 256 ? i : -1);
}

static void body_beyond(void)
{
	ll_cu_deviceptr nowhere = 4096;
	open_context(0);
	void *params[] = {&nowhere};
	CHECK_EQUAL(cu.cuLaunchKernel(get("write_index"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void body_no_records(void)
{
	uint64_t length_ns = MS, nowhere = 4096, away_ns = 10 * US, round = ROUND;
	open_context(0);
	void *params[] = {&length_ns, &nowhere, &nowhere, &away_ns, &round};
	CHECK_EQUAL(cu.cuLaunchKernel(get("probe_timeline"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(writing_where_there_is_no_memory_loses_the_context)
{
	in_world(NULL, body_beyond);
	in_world(NULL, body_no_records);
}
