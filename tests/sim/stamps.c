/* What kernels write about themselves, alone and beside another process. */
#include "process.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

/* The slice and the switch of these tests. */
#define SLOW_CARD "card 0 slice 2ms\ncard 0 switch 150us\ncard 0 drift-ppm 0\n"

TEST_IN_WORLD(SLOW_CARD, a_kernel_alone_keeps_its_length_exactly)
{
	enum { KERNELS = 50 };
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns");
	struct record *records = new_records(KERNELS);
	launch_spin(spin, s, 1000 * MS, &records[0], 0, 0, 1, 1);
	for (uint32_t i = 1; i < KERNELS; i++)
		launch_spin(spin, s, MS, &records[i], 0, 50 * US, 1, i + 1);
	/* No call into the library from here on: the record comes by itself, sequence last. */
	WAIT_FOR(atomic_load_explicit(&records[KERNELS - 1].sequence, memory_order_acquire) == KERNELS);
	for (uint32_t i = 1; i < KERNELS; i++) {
		CHECK_EQUAL(records[i].flags, 0);
		CHECK_EQUAL(records[i].gap_ns, 352);
		CHECK_EQUAL(records[i].end_ns - records[i].start_ns, MS + 2);
		CHECK_EQUAL(records[i].start_ns - records[i - 1].end_ns, US);
	}
}

static uint64_t wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

TEST_IN_WORLD("card 0 drift-ppm 100", the_card_s_clock_is_about_the_wall_clock)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns");
	struct record *record = new_records(1);
	uint64_t before_ns = wall_ns();
	launch_spin(spin, s, US, record, 0, 0, 1, 1);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	/* About the wall clock: 100 ppm of a young world are next to nothing. */
	CHECK(record->start_ns > before_ns - 100 * MS && record->end_ns < wall_ns() + 100 * MS);
	CHECK(record->end_ns - record->start_ns >= US);
}

TEST_IN_WORLD(SLOW_CARD, a_stranger_shows_as_a_gap_which_ends_the_kernel)
{
	pid_t stranger = spawn_ready(be_a_stranger);
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns");
	struct record *records = new_records(64);
	uint32_t n = 0;
	/* Long kernels beside a stranger are cut, and say by how much: his 1 ms and two switches. */
	for (unsigned cuts = 0; cuts < 3;) {
		CHECK(n < 60);
		launch_spin(spin, s, 20 * MS, &records[n], 0, 0, n + 1, n + 1);
		CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
		CHECK_EQUAL(records[n].flags, 0);
		if (records[n].gap_ns > 100 * US) {
			CHECK(records[n].gap_ns >= MS + 300 * US);
			cuts++;
		}
		n++;
	}
	/* With a limit they end there and then, and those behind them at once. */
	do {
		CHECK(n < 60);
		launch_spin(spin, s, 20 * MS, &records[n], 0, 50 * US, n + 1, n + 1);
		launch_spin(spin, s, 20 * MS, &records[n + 1], 0, 50 * US, n + 1, n + 2);
		CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
		n += 2;
	} while (records[n - 2].flags != GAP);
	CHECK(records[n - 2].end_ns - records[n - 2].start_ns < 20 * MS);
	CHECK_EQUAL(records[n - 1].flags, STOPPED);
	CHECK(records[n - 1].end_ns - records[n - 1].start_ns < 10 * US);
	kill(stranger, SIGKILL);
}

TEST_IN_WORLD(SLOW_CARD, a_late_kernel_stops_its_epoch_alone)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_module *module = load_kernels();
	struct ll_cu_function *spin, *fma;
	CHECK_EQUAL(cu.cuModuleGetFunction(&spin, module, "spin_ns"), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&fma, module, "fma_ns"), 0);
	struct record *records = new_records(4);
	launch_spin(spin, s, MS, &records[0], 0, 0, 1, 1);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	/* Due long ago. Another kernel of the module and the epoch is stopped by it, one of the next epoch is not. */
	launch_spin(spin, s, MS, &records[1], records[0].start_ns, 0, 2, 2);
	launch_spin(fma, s, MS, &records[2], 0, 0, 2, 3);
	launch_spin(fma, s, MS, &records[3], 0, 0, 3, 4);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(records[0].flags, 0);
	CHECK_EQUAL(records[1].flags, LATE);
	CHECK_EQUAL(records[2].flags, STOPPED);
	CHECK_EQUAL(records[3].flags, 0);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQUAL(records[i].sequence, i + 1);
}

TEST_IN_WORLD(SLOW_CARD, another_module_s_epochs_are_its_own)
{
	struct ll_cu_context *a = open_context(0);
	struct ll_cu_function *in_a = get_kernel("spin_ns");
	struct ll_cu_context *b = open_context(0);
	struct ll_cu_function *in_b = get_kernel("spin_ns");
	struct record *records = new_records(2);
	launch_spin(in_b, NULL, US, &records[0], 1, 0, 5, 1);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(records[0].flags, LATE);
	CHECK_EQUAL(cu.cuCtxSetCurrent(a), 0);
	launch_spin(in_a, NULL, US, &records[1], 0, 0, 5, 2);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(records[1].flags, 0);
	CHECK_EQUAL(cu.cuCtxDestroy(b), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(a), 0);
}

TEST_IN_WORLD(NULL, records_go_to_the_card_s_memory_and_nowhere_else)
{
	ll_cu_deviceptr address;
	struct record record;
	open_context(0);
	struct ll_cu_function *spin = get_kernel("spin_ns");
	CHECK_EQUAL(cu.cuMemAlloc(&address, sizeof record), 0);
	launch_spin(spin, NULL, MS, (void *)(uintptr_t)address, 0, 0, 1, 9);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&record, address, sizeof record), 0);
	CHECK_EQUAL(record.sequence, 9);
	/* An address that is nobody's loses the context, as on a real card. */
	launch_spin(spin, NULL, MS, &record, 0, 0, 1, 10);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), LL_CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void be_one_of_two(void)
{
	enum { KERNELS = 40 };
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_event *start, *end;
	float ms;
	CHECK_EQUAL(cu.cuEventCreate(&start, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&end, 0), 0);
	launch_timed(work, s, 100 * MS, 1, 32); /* until both are here for certain */
	CHECK_EQUAL(cu.cuEventRecord(start, s), 0);
	for (int i = 0; i < KERNELS; i++)
		launch_timed(work, s, 5 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(end, s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, end), 0);
	/* 200 ms of work take 200 ms alone, and 430 where each 2 ms are followed by the other's 2 and two switches. */
	CHECK(ms > 200 && ms < 435);
	printf("%.1f ms\n", (double)ms);
	CHECK_EQUAL(cu.cuEventDestroy(start), 0);
	CHECK_EQUAL(cu.cuEventDestroy(end), 0);
}

TEST_IN_WORLD(SLOW_CARD, two_processes_share_the_card_by_slices)
{
	pid_t a = spawn(be_one_of_two), b = spawn(be_one_of_two);
	join(a);
	join(b);
}
