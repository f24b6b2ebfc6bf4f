/* Streams, events, copies, host functions: in order, together, and with real bytes. */
#include "process.h"

#include <pthread.h>
#include <stdatomic.h>

#define MS UINT64_C(1000000)

TEST_IN_WORLD(NULL, copies_and_memsets_move_real_bytes)
{
	enum { BYTES = 3 << 20 };
	static unsigned char out[BYTES], in[BYTES];
	ll_cu_deviceptr a, b;
	open_context(0);
	for (size_t i = 0; i < BYTES; i++)
		out[i] = (unsigned char)(i * 7 + i / 251);
	CHECK_EQUAL(cu.cuMemAlloc(&a, BYTES), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&b, BYTES), 0);
	CHECK_EQUAL(cu.cuMemcpyHtoD(a, out, BYTES), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoD(b, a, BYTES), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(in, b, BYTES), 0);
	CHECK(memcmp(in, out, BYTES) == 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 0x5a, BYTES), 0);
	CHECK_EQUAL(cu.cuMemsetD32(a + 400, 0x01020304, 2), 0);
	CHECK_EQUAL(cu.cuMemsetD16(a + 500, 0x0a0b, 1), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(in, a, 1000), 0);
	CHECK_EQUAL(in[399], 0x5a);
	CHECK_EQUAL(in[400], 4);
	CHECK_EQUAL(in[407], 1);
	CHECK_EQUAL(in[408], 0x5a);
	CHECK_EQUAL(in[501], 0x0a);
	CHECK_EQUAL(cu.cuMemcpyDtoH(in, a + BYTES - 10, 11), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemsetD32(a + 2, 0, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	CHECK_EQUAL(cu.cuMemFree(b), 0);
}

TEST_IN_WORLD(NULL, asynchronous_copies_happen_later_and_by_themselves)
{
	ll_cu_deviceptr a;
	void *pinned;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns_plain");
	CHECK_EQUAL(cu.cuMemAlloc(&a, 4096), 0);
	CHECK_EQUAL(cu.cuMemHostAlloc(&pinned, 4096, 0), 0);
	_Atomic int *out = pinned;
	/* Behind a long kernel nothing is copied yet, and the call has come back. */
	launch_timed(spin, s, 300 * MS, 1, 32);
	int value = 42;
	CHECK_EQUAL(cu.cuMemcpyHtoDAsync(a, &value, sizeof value, s), 0);
	value = 43; /* pageable memory was staged when the call was made */
	atomic_store(out, 7);
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(pinned, a, sizeof value, s), 0);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(atomic_load(out), 7);
	/* With no call at all the bytes come. */
	WAIT_FOR(atomic_load(out) == 42);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuStreamQuery(s), 0);
	/* To pageable memory the call waits. */
	launch_timed(spin, s, 5 * MS, 1, 32);
	CHECK_EQUAL(cu.cuMemsetD32Async(a, 99, 1, s), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(&value, a, sizeof value, s), 0);
	CHECK_EQUAL(value, 99);
	CHECK_EQUAL(cu.cuStreamDestroy(s), 0);
}

TEST_IN_WORLD(NULL, events_have_the_card_s_time_and_order_streams)
{
	struct ll_cu_event *start, *end, *fresh, *silent;
	float ms;
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns_plain");
	CHECK_EQUAL(cu.cuEventCreate(&start, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&end, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&fresh, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&silent, LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuEventQuery(fresh), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, fresh, fresh), LL_CUDA_ERROR_INVALID_HANDLE);
	launch_timed(spin, a, 500 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(start, a), 0);
	launch_timed(spin, a, 20 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(end, a), 0);
	CHECK_EQUAL(cu.cuEventQuery(end), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, end), LL_CUDA_ERROR_NOT_READY);
	/* b's kernel comes after a's, whatever the host does. */
	CHECK_EQUAL(cu.cuStreamWaitEvent(b, end, 0), 0);
	launch_timed(spin, b, MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(fresh, b), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(end), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, end), 0);
	CHECK_NEAR(ms, 20.001, 0.0005);
	CHECK_EQUAL(cu.cuEventSynchronize(fresh), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, end, fresh), 0);
	CHECK_NEAR(ms, 1.001, 0.0005);
	CHECK_EQUAL(cu.cuEventRecord(silent, a), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(silent), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, silent), LL_CUDA_ERROR_INVALID_HANDLE);
	/* Destroyed while its record is still queued: the record does no harm. */
	launch_timed(spin, a, 5 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(end, a), 0);
	CHECK_EQUAL(cu.cuEventDestroy(end), 0);
	CHECK_EQUAL(cu.cuStreamDestroy(a), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuEventDestroy(start), 0);
	CHECK_EQUAL(cu.cuEventDestroy(fresh), 0);
	CHECK_EQUAL(cu.cuEventDestroy(silent), 0);
}

static _Atomic int order[8];
static _Atomic int order_count;

static void note(void *user)
{
	atomic_store(&order[atomic_fetch_add(&order_count, 1)], (int)(intptr_t)user);
}

static void note_callback(struct ll_cu_stream *stream, ll_cu_result status, void *user)
{
	(void)stream;
	CHECK_EQUAL(status, 0);
	note(user);
}

TEST_IN_WORLD(NULL, host_functions_run_in_the_stream_s_order)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns_plain");
	launch_timed(spin, s, 2 * MS, 1, 32);
	CHECK_EQUAL(cu.cuLaunchHostFunc(s, note, (void *)(intptr_t)1), 0);
	launch_timed(spin, s, 2 * MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamAddCallback(s, note_callback, (void *)(intptr_t)2, 0), 0);
	CHECK_EQUAL(cu.cuLaunchHostFunc(s, note, (void *)(intptr_t)3), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(order_count, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(order[i], i + 1);
}

TEST_IN_WORLD(NULL, streams_write_values_and_wait_for_them)
{
	ll_cu_deviceptr address;
	void *page;
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	CHECK_EQUAL(cu.cuMemHostAlloc(&page, 4096, LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	CHECK_EQUAL(cu.cuMemHostGetDevicePointer(&address, page, 0), 0);
	_Atomic uint32_t *words = page;
	CHECK_EQUAL(cu.cuStreamWaitValue32(a, address, 5, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
	CHECK_EQUAL(cu.cuStreamWriteValue32(a, address + 4, 77, 0), 0);
	CHECK_EQUAL(cu.cuStreamWriteValue32(b, address, 4, 0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(b), 0);
	CHECK_EQUAL(cu.cuStreamQuery(a), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(atomic_load(&words[1]), 0);
	CHECK_EQUAL(cu.cuStreamWriteValue32(b, address, 6, 0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(a), 0);
	CHECK_EQUAL(atomic_load(&words[1]), 77);
	CHECK_EQUAL(cu.cuStreamWriteValue32(a, address + 2, 0, 0), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, a_registered_page_sees_what_a_stream_writes)
{
	static _Alignas(4096) _Atomic uint32_t page[1024];
	ll_cu_deviceptr address;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuMemHostRegister(page, sizeof page, LL_CU_MEMHOSTREGISTER_DEVICEMAP), 0);
	CHECK_EQUAL(cu.cuMemHostGetDevicePointer(&address, page, 0), 0);
	CHECK_EQUAL(cu.cuStreamWriteValue32(s, address + 8, 5, 0), 0);
	WAIT_FOR(atomic_load(&page[2]) == 5);
	CHECK_EQUAL(cu.cuMemHostUnregister(page), 0);
	CHECK_EQUAL(cu.cuMemHostUnregister(page), LL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQUAL(cu.cuStreamWriteValue32(s, address + 8, 6, 0), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, a_full_queue_makes_launches_wait)
{
	enum { KERNELS = 3000 };
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *spin = get_kernel("spin_ns");
	struct record *records = new_records(KERNELS + 1);
	/* More than a queue holds: the launch waits for room, and none is lost. */
	for (uint32_t i = 1; i <= KERNELS; i++)
		launch_spin(spin, s, 10000, &records[i], 0, 0, 1, i);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	for (uint32_t i = 1; i <= KERNELS; i++) {
		CHECK_EQUAL(records[i].sequence, i);
		CHECK(i == 1 || records[i].start_ns >= records[i - 1].end_ns);
	}
}

static struct ll_cu_context *shared_context;
static struct ll_cu_function *shared_kernel;

static void *launch_many(void *user)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	struct ll_cu_stream *s = new_stream();
	struct record *record = user;
	for (uint32_t i = 1; i <= 200; i++) {
		launch_spin(shared_kernel, s, 5000, record, 0, 0, 1, i);
		if (i % 20 == 0) {
			CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
			CHECK_EQUAL(record->sequence, i);
		}
	}
	CHECK_EQUAL(cu.cuStreamDestroy(s), 0);
	return NULL;
}

TEST_IN_WORLD(NULL, many_threads_share_a_context)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	shared_context = open_context(0);
	shared_kernel = get_kernel("spin_ns");
	struct record *records = new_records(THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, launch_many, &records[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(shared_context), 0);
}

TEST_IN_WORLD("kernel other_* 5ms", kernels_take_the_length_of_their_rule)
{
	open_context(0);
	struct ll_cu_function *other = get_kernel("other_kernel"), *spin = get_kernel("spin_ns_plain");
	struct ll_cu_event *start, *end;
	uint32_t count = 3;
	void *params[] = {&count};
	float ms;
	CHECK_EQUAL(cu.cuEventCreate(&start, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&end, 0), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(other, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuLaunchKernel(other, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), LL_CUDA_ERROR_INVALID_HANDLE);
	/* Everything is queued behind a first kernel, so that the host's pace is not in the figures. */
	launch_timed(spin, NULL, 500 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(start, NULL), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(other, 4, 2, 1, 32, 4, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(cu.cuEventRecord(end, NULL), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(end), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, end), 0);
	CHECK_NEAR(ms, 5.001, 0.0001); /* the scenario's rule, and the gap between two kernels */
	/* The other way to give arguments. */
	uint64_t length_ns = 3 * MS;
	size_t size = sizeof length_ns;
	void *extra[] = {LL_CU_LAUNCH_PARAM_BUFFER_POINTER, &length_ns, LL_CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 LL_CU_LAUNCH_PARAM_END};
	launch_timed(spin, NULL, 500 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(start, NULL), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), 0);
	CHECK_EQUAL(cu.cuEventRecord(end, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, end), 0);
	CHECK_NEAR(ms, 3.001, 0.0001);
	int blocks;
	CHECK_EQUAL(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spin, 1024, 0), 0);
	CHECK_EQUAL(blocks, 2);
	CHECK_EQUAL(cu.cuEventDestroy(start), 0);
	CHECK_EQUAL(cu.cuEventDestroy(end), 0);
}
