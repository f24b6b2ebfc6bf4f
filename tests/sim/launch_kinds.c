/* Every other way to give a card work: cooperative and old launches, rectangles, values of 64 bits, attributes. */
#include "process.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define MS UINT64_C(1000000)

static ll_cu_result launch_together(struct ll_cu_function *function, struct ll_cu_stream *s, unsigned blocks)
{
	uint64_t length = MS;
	void *params[] = {&length};
	return cu.cuLaunchCooperativeKernel(function, blocks, 1, 1, 1024, 1, 1, 0, s, params);
}

TEST_IN_WORLD(NULL, cooperative_kernels_must_fit_on_the_card)
{
	int per_sm, sms;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	CHECK_EQUAL(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, work, 1024, 0), 0);
	CHECK_EQUAL(cu.cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
	unsigned most = (unsigned)(per_sm * sms);
	CHECK_EQUAL(launch_together(work, s, most), 0);
	CHECK_EQUAL(launch_together(work, s, most + 1), LL_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	launch_timed(work, s, MS, most + 1, 1024); /* others may be larger */
	/* The same by an attribute. */
	uint64_t length = MS;
	void *params[] = {&length};
	struct ll_cu_launch_attribute attribute = {.id = LL_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	struct ll_cu_launch_config config = {most + 1, 1, 1, 1024, 1, 1, 0, s, &attribute, 1};
	CHECK_EQUAL(cu.cuLaunchKernelEx(&config, work, params, NULL), LL_CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	config.grid_x = most;
	CHECK_EQUAL(cu.cuLaunchKernelEx(&config, work, params, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
}

TEST_IN_WORLD("cards 2\n", several_cards_take_cooperative_kernels_in_one_call)
{
	struct ll_cu_launch_params launches[2];
	uint64_t length = MS;
	void *params[] = {&length};
	for (int i = 0; i < 2; i++) {
		open_context(i);
		launches[i] =
		    (struct ll_cu_launch_params){get_kernel("work_ns"), 1, 1, 1, 32, 1, 1, 0, new_stream(), params};
	}
	CHECK_EQUAL(cu.cuLaunchCooperativeKernelMultiDevice(launches, 2, 0), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(cu.cuStreamSynchronize(launches[i].stream), 0);
	launches[1].stream = NULL;
	CHECK_EQUAL(cu.cuLaunchCooperativeKernelMultiDevice(launches, 2, 0), LL_CUDA_ERROR_INVALID_HANDLE);
}

TEST_IN_WORLD(NULL, old_launches_take_the_function_s_own_arguments)
{
	struct ll_cu_event *start, *stop;
	float ms;
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuEventCreate(&start, 0), 0);
	CHECK_EQUAL(cu.cuEventCreate(&stop, 0), 0);
	CHECK_EQUAL(cu.cuLaunch(work), LL_CUDA_ERROR_INVALID_VALUE); /* its parameter was never set */
	uint64_t length = 40 * MS;
	CHECK_EQUAL(cu.cuFuncSetBlockShape(work, 32, 2, 1), 0);
	CHECK_EQUAL(cu.cuFuncSetSharedSize(work, 1024), 0);
	CHECK_EQUAL(cu.cuParamSetSize(work, sizeof length), 0);
	CHECK_EQUAL(cu.cuParamSetv(work, 0, &length, sizeof length), 0);
	CHECK_EQUAL(cu.cuParamSetv(work, 4095, &length, sizeof length), LL_CUDA_ERROR_INVALID_VALUE);
	launch_timed(work, s, 200 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(start, s), 0);
	CHECK_EQUAL(cu.cuLaunchGridAsync(work, 2, 3, s), 0);
	/* What a launch has taken, later words do not change. */
	CHECK_EQUAL(cu.cuParamSeti(work, 0, 20 * MS), 0);
	CHECK_EQUAL(cu.cuLaunchGridAsync(work, 2, 3, s), 0);
	CHECK_EQUAL(cu.cuEventRecord(stop, s), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(stop), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, stop), 0);
	CHECK_NEAR(ms, 60, 0.01);
	CHECK_EQUAL(cu.cuLaunchGrid(work, 1, 1), 0);
	CHECK_EQUAL(cu.cuLaunchGrid(work, 0, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

enum { WIDTH = 24, ROWS = 5, LAYERS = 3, HOST_PITCH = 32, CARD_PITCH = 512, CARD_ROWS = 7 };

static uint8_t pattern(size_t z, size_t y, size_t x)
{
	return (uint8_t)(z * 97 + y * 31 + x + 1);
}

TEST_IN_WORLD(NULL, blocks_are_copied_row_by_row)
{
	static uint8_t out[LAYERS][ROWS][HOST_PITCH], in[LAYERS][ROWS][WIDTH];
	ll_cu_deviceptr a, b;
	struct ll_cu_context *context = open_context(0);
	struct ll_cu_stream *s = new_stream();
	for (size_t z = 0; z < LAYERS; z++)
		for (size_t y = 0; y < ROWS; y++)
			for (size_t x = 0; x < WIDTH; x++)
				out[z][y][x] = pattern(z, y, x);
	CHECK_EQUAL(cu.cuMemAlloc(&a, LAYERS * CARD_ROWS * CARD_PITCH), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&b, LAYERS * CARD_ROWS * CARD_PITCH), 0);
	struct ll_cu_memcpy3d up = {
	    .from_type = LL_CU_MEMORYTYPE_HOST,
	    .from_host = out,
	    .from_pitch_bytes = HOST_PITCH,
	    .from_height = ROWS,
	    .to_type = LL_CU_MEMORYTYPE_DEVICE,
	    .to_device = a,
	    .to_x_bytes = 4,
	    .to_y = 1,
	    .to_pitch_bytes = CARD_PITCH,
	    .to_height = CARD_ROWS,
	    .width_bytes = WIDTH,
	    .height = ROWS,
	    .depth = LAYERS,
	};
	struct ll_cu_memcpy3d down = {
	    .from_type = LL_CU_MEMORYTYPE_DEVICE,
	    .from_device = b,
	    .from_x_bytes = 4,
	    .from_y = 1,
	    .from_pitch_bytes = CARD_PITCH,
	    .from_height = CARD_ROWS,
	    .to_type = LL_CU_MEMORYTYPE_HOST,
	    .to_host = in,
	    .width_bytes = WIDTH,
	    .height = ROWS,
	    .depth = LAYERS,
	};
	launch_timed(get_kernel("work_ns"), s, 50 * MS, 1, 32);
	CHECK_EQUAL(cu.cuMemcpy3DAsync(&up, s), 0);
	memset(out, 0, sizeof out); /* pageable: it was read when the call was made */
	CHECK_EQUAL(cu.cuMemcpyPeerAsync(b, context, a, context, LAYERS * CARD_ROWS * CARD_PITCH, s), 0);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuMemcpy3D(&down), 0);
	for (size_t z = 0; z < LAYERS; z++)
		for (size_t y = 0; y < ROWS; y++)
			for (size_t x = 0; x < WIDTH; x++)
				CHECK_EQUAL(in[z][y][x], pattern(z, y, x));
	/* Rows that overlap, more than there is, what is not modelled. */
	down.from_pitch_bytes = WIDTH;
	CHECK_EQUAL(cu.cuMemcpy3D(&down), LL_CUDA_ERROR_INVALID_VALUE);
	down.from_pitch_bytes = CARD_PITCH;
	down.from_z = 1;
	CHECK_EQUAL(cu.cuMemcpy3D(&down), LL_CUDA_ERROR_INVALID_VALUE);
	down.from_type = LL_CU_MEMORYTYPE_ARRAY;
	CHECK_EQUAL(cu.cuMemcpy3D(&down), LL_CUDA_ERROR_INVALID_HANDLE);
}

TEST_IN_WORLD(NULL, rectangles_are_filled_and_copied)
{
	static uint8_t in[ROWS * CARD_PITCH];
	ll_cu_deviceptr a;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&a, ROWS * CARD_PITCH), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 1, ROWS * CARD_PITCH), 0);
	CHECK_EQUAL(cu.cuMemsetD2D16(a, CARD_PITCH, 0x0203, 5, ROWS), 0);
	CHECK_EQUAL(cu.cuMemsetD2D32Async(a + 100, CARD_PITCH, 0x04050607, 1, 2, NULL), 0);
	CHECK_EQUAL(cu.cuMemsetD2D8(a, 4, 0, 5, 2), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemsetD2D8(a, CARD_PITCH, 0, CARD_PITCH, ROWS + 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemcpyDtoH(in, a, sizeof in), 0);
	for (size_t y = 0; y < ROWS; y++) {
		CHECK_EQUAL(in[y * CARD_PITCH], 3);
		CHECK_EQUAL(in[y * CARD_PITCH + 9], 2);
		CHECK_EQUAL(in[y * CARD_PITCH + 10], 1);
		CHECK_EQUAL(in[y * CARD_PITCH + 103], y < 2 ? 4 : 1);
	}
	struct ll_cu_memcpy2d copy = {
	    .from_type = LL_CU_MEMORYTYPE_UNIFIED,
	    .from_device = a,
	    .from_x_bytes = 8,
	    .from_pitch_bytes = CARD_PITCH,
	    .to_type = LL_CU_MEMORYTYPE_HOST,
	    .to_host = in,
	    .to_pitch_bytes = 4,
	    .width_bytes = 4,
	    .height = 2,
	};
	CHECK_EQUAL(cu.cuMemcpy2DAsync(&copy, NULL), 0); /* to pageable memory it waits */
	const uint8_t expected[] = {3, 2, 1, 1, 3, 2, 1, 1};
	CHECK(memcmp(in, expected, sizeof expected) == 0);
}

TEST_IN_WORLD(NULL, values_of_64_bits_are_waited_for_and_written)
{
	void *page;
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	CHECK_EQUAL(cu.cuMemHostAlloc(&page, 4096, LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	_Atomic uint64_t *words = page;
	ll_cu_deviceptr address = (uintptr_t)page;
	const uint64_t high = UINT64_C(1) << 40;
	CHECK_EQUAL(cu.cuStreamWaitValue64(a, address, high, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
	union ll_cu_stream_mem_op ops[] = {
	    {.value = {.operation = LL_CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = address + 8, .value = high + 1}},
	    {.operation = LL_CU_STREAM_MEM_OP_BARRIER},
	    {.value = {.operation = LL_CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address + 16, .value = 5}},
	};
	CHECK_EQUAL(cu.cuStreamBatchMemOp(a, 3, ops, 0), 0);
	CHECK_EQUAL(cu.cuStreamWriteValue64(b, address, high - 1, 0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(b), 0);
	CHECK_EQUAL(cu.cuStreamQuery(a), LL_CUDA_ERROR_NOT_READY); /* the low halves alone would do */
	CHECK_EQUAL(words[1], 0);
	CHECK_EQUAL(cu.cuStreamWriteValue64(b, address, high, 0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(a), 0);
	CHECK_EQUAL(words[1], high + 1);
	CHECK_EQUAL(words[2], 5);
	CHECK_EQUAL(cu.cuStreamWriteValue64(b, address + 4, 1, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuStreamBatchMemOp(a, 0, ops, 0), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, streams_keep_their_attributes)
{
	unsigned long long id, other_id;
	ll_cu_device device;
	union ll_cu_launch_attribute_value value = {.priority = -3}, read = {0};
	int priority;
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	CHECK_EQUAL(cu.cuStreamGetId(a, &id), 0);
	CHECK_EQUAL(cu.cuStreamGetId(b, &other_id), 0);
	CHECK(id != other_id);
	CHECK_EQUAL(cu.cuStreamGetDevice(a, &device), 0);
	CHECK_EQUAL(device, 0);
	CHECK_EQUAL(cu.cuStreamSetAttribute(a, LL_CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), 0);
	CHECK_EQUAL(cu.cuStreamCopyAttributes(b, a), 0);
	CHECK_EQUAL(cu.cuStreamGetAttribute(b, LL_CU_LAUNCH_ATTRIBUTE_PRIORITY, &read), 0);
	CHECK_EQUAL(read.priority, -3);
	CHECK_EQUAL(cu.cuStreamGetPriority(b, &priority), 0);
	CHECK_EQUAL(priority, -3);
	CHECK_EQUAL(cu.cuStreamGetAttribute(b, LL_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &read), LL_CUDA_ERROR_INVALID_VALUE);
}
