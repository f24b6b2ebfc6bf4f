/* Copies from and to arrays, and in batches: the bytes are where they belong, and what is nonsense is refused. */
#include "process.h"

enum { WIDTH = 64, ROWS = 8, BYTES = WIDTH * ROWS };

static unsigned char pattern[BYTES], seen[BYTES];
static struct ll_cu_array *array, *other;
static ll_cu_deviceptr near_, far_;
static struct ll_cu_stream *stream;

static struct ll_cu_array *new_array(unsigned channels)
{
	struct ll_cu_array *made;
	struct ll_cu_array_descriptor shape = {WIDTH / channels, ROWS, LL_CU_AD_FORMAT_UNSIGNED_INT8, channels};
	CHECK_EQUAL(cu.cuArrayCreate(&made, &shape), 0);
	return made;
}

static void prepare(void)
{
	open_context(0);
	stream = new_stream();
	array = new_array(1);
	other = new_array(4);
	CHECK_EQUAL(cu.cuMemAlloc(&near_, BYTES), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&far_, BYTES), 0);
	for (int i = 0; i < BYTES; i++)
		pattern[i] = (unsigned char)(i * 7 + 1);
	CHECK_EQUAL(cu.cuMemcpyHtoD(far_, pattern, BYTES), 0);
	CHECK_EQUAL(cu.cuMemsetD8(near_, 0, BYTES), 0);
}

static void check_device(ll_cu_deviceptr address, size_t bytes)
{
	memset(seen, 0, sizeof seen);
	CHECK_EQUAL(cu.cuMemcpyDtoH(seen, address, bytes), 0);
	CHECK(memcmp(seen, pattern, bytes) == 0);
}

TEST_IN_WORLD(NULL, ranges_of_arrays_are_copied)
{
	prepare();
	CHECK_EQUAL(cu.cuMemcpyDtoA(array, 0, far_, WIDTH), 0);
	CHECK_EQUAL(cu.cuMemcpyAtoA(other, 8, array, 0, WIDTH - 8), 0);
	CHECK_EQUAL(cu.cuMemcpyAtoD(near_, other, 8, WIDTH - 8), 0);
	check_device(near_, WIDTH - 8);
	memset(seen, 0, sizeof seen);
	CHECK_EQUAL(cu.cuMemcpyAtoH(seen, array, 0, WIDTH), 0);
	CHECK(memcmp(seen, pattern, WIDTH) == 0);
	CHECK_EQUAL(cu.cuMemcpyHtoAAsync(array, 0, pattern + WIDTH, WIDTH, stream), 0);
	CHECK_EQUAL(cu.cuMemcpyAtoHAsync(seen, array, 0, WIDTH, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(memcmp(seen, pattern + WIDTH, WIDTH) == 0);
	CHECK_EQUAL(cu.cuMemcpyHtoA(array, 0, pattern, WIDTH), 0);
	/* Beyond a row, of no array, of memory that the card does not know. */
	CHECK_EQUAL(cu.cuMemcpyAtoD(near_, array, 1, WIDTH), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemcpyAtoA((struct ll_cu_array *)(uintptr_t)seen, 0, array, 0, 1),
		    LL_CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(cu.cuMemcpyDtoA(array, 0, (uintptr_t)seen, 1), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, blocks_of_arrays_are_copied)
{
	struct ll_cu_memcpy2d in = {.from_type = LL_CU_MEMORYTYPE_HOST,
				    .from_host = pattern,
				    .from_pitch_bytes = WIDTH,
				    .to_type = LL_CU_MEMORYTYPE_ARRAY,
				    .width_bytes = WIDTH,
				    .height = ROWS};
	prepare();
	in.to_array = array;
	CHECK_EQUAL(cu.cuMemcpy2D(&in), 0);
	struct ll_cu_memcpy2d out = {.from_type = LL_CU_MEMORYTYPE_ARRAY,
				     .from_array = array,
				     .from_x_bytes = 4,
				     .from_y = 2,
				     .to_type = LL_CU_MEMORYTYPE_HOST,
				     .to_host = seen,
				     .to_pitch_bytes = WIDTH,
				     .width_bytes = 16,
				     .height = 3};
	CHECK_EQUAL(cu.cuMemcpy2D(&out), 0);
	for (int row = 0; row < 3; row++)
		CHECK(memcmp(seen + row * WIDTH, pattern + (row + 2) * WIDTH + 4, 16) == 0);
	out.from_y = ROWS - 2;
	CHECK_EQUAL(cu.cuMemcpy2D(&out), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, a_batch_of_copies_is_made_or_none_of_it)
{
	struct ll_cu_copy_attributes attributes[2] = {{.order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
						      {.order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_ANY, .flags = 1}};
	size_t bytes[2] = {BYTES / 2, BYTES / 2}, first_of[2] = {0, 1}, failed;
	prepare();
	ll_cu_deviceptr to[2] = {near_, near_ + BYTES / 2}, from[2] = {far_, far_ + BYTES / 2};
	CHECK_EQUAL(cu.cuMemcpyBatchAsync(to, from, bytes, 2, attributes, first_of, 2, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	check_device(near_, BYTES);
	/* One that cannot be made: nothing is. */
	CHECK_EQUAL(cu.cuMemsetD8(far_, 0, BYTES), 0);
	to[1] = near_ + BYTES;
	from[0] = far_;
	CHECK(cu.cuMemcpyBatchAsync_v1(to, from, (size_t[]){BYTES, 0}, 2, attributes, first_of, 2, &failed, stream) !=
	      0);
	CHECK_EQUAL(failed, 1);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	check_device(near_, BYTES);
	/* No stream, no attributes, in no order. */
	CHECK(cu.cuMemcpyBatchAsync(to, from, bytes, 1, attributes, first_of, 1, NULL) != 0);
	CHECK(cu.cuMemcpyBatchAsync(to, from, bytes, 1, NULL, NULL, 0, stream) != 0);
	CHECK(cu.cuMemcpyBatchAsync(to, from, bytes, 2, attributes, (size_t[]){1, 0}, 2, stream) != 0);
	attributes[0].order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	CHECK(cu.cuMemcpyBatchAsync(to, from, bytes, 1, attributes, first_of, 1, stream) != 0);
}

TEST_IN_WORLD(NULL, a_batch_of_blocks_counts_in_elements)
{
	prepare();
	/* Elements are the array's: four bytes each. */
	struct ll_cu_copy3d_op ops[2] = {
	    {.from = {.type = LL_CU_MEMCPY_OPERAND_TYPE_POINTER, .at.pointer = {.address = far_}},
	     .to = {.type = LL_CU_MEMCPY_OPERAND_TYPE_ARRAY, .at.array = {.array = other}},
	     .extent = {WIDTH / 4, ROWS, 1},
	     .order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
	    {.from = {.type = LL_CU_MEMCPY_OPERAND_TYPE_ARRAY, .at.array = {.array = other, .offset = {1, 1, 0}}},
	     .to = {.type = LL_CU_MEMCPY_OPERAND_TYPE_POINTER, .at.pointer = {.address = near_, .row_length = 4}},
	     .extent = {2, 2, 1},
	     .order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
	};
	CHECK_EQUAL(cu.cuMemcpy3DBatchAsync(2, ops, 0, stream), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(seen, near_, 32, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(memcmp(seen, pattern + WIDTH + 4, 8) == 0 && memcmp(seen + 16, pattern + 2 * WIDTH + 4, 8) == 0);
	size_t failed;
	ops[1].extent.depth = 0;
	CHECK_EQUAL(cu.cuMemcpy3DBatchAsync_v1(2, ops, &failed, 0, stream), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(failed, 1);
	CHECK(cu.cuMemcpy3DBatchAsync(1, ops, 1, stream) != 0);
	CHECK(cu.cuMemcpy3DBatchAsync(1, ops, 0, NULL) != 0);
}
