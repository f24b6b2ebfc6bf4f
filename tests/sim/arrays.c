/* Arrays and mipmaps: what they take of the card, as an H200 does, and what they say of themselves. */
#include "memory.h"

static const struct shape {
	struct ll_cu_array3d_descriptor array;
	double taken_mib;
	size_t required_bytes;
} shapes[] = {
    {{1, 0, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0}, 2, 65536},
    {{3, 3, 0, LL_CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 2, 65536},
    {{1000, 1000, 0, LL_CU_AD_FORMAT_FLOAT, 4, 0}, 16, 16384000},
    {{4096, 4096, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0}, 64, 67108864},
    {{100, 100, 100, LL_CU_AD_FORMAT_FLOAT, 1, 0}, 6, 5242880},
    {{256, 256, 256, LL_CU_AD_FORMAT_FLOAT, 4, 0}, 256, 268435456},
    {{512, 512, 6, LL_CU_AD_FORMAT_FLOAT, 1, LL_CUDA_ARRAY3D_LAYERED | LL_CUDA_ARRAY3D_CUBEMAP}, 6, 6291456},
    {{1000, 1000, 7, LL_CU_AD_FORMAT_UNSIGNED_INT8, 4, LL_CUDA_ARRAY3D_LAYERED}, 28, 28901376},
    {{4096, 4095, 0, LL_CU_AD_FORMAT_UNSIGNED_INT8, 1, LL_CUDA_ARRAY3D_SURFACE_LDST}, 16, 16777216},
    {{130000, 60000, 0, LL_CU_AD_FORMAT_FLOAT, 4, 0}, 119084, 0},
};

static void check_shape(const struct shape *shape, uint64_t before)
{
	struct ll_cu_array *array;
	struct ll_cu_array_requirements requirements;
	struct ll_cu_array3d_descriptor deferred = shape->array, same;
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &shape->array), 0);
	CHECK_NEAR((double)(used_bytes() - before) / MIB, shape->taken_mib, 0.001);
	CHECK_EQUAL(cu.cuArray3DGetDescriptor(&same, array), 0);
	CHECK_EQUAL(same.width, shape->array.width);
	CHECK_EQUAL(same.height, shape->array.height);
	CHECK_EQUAL(same.depth, shape->array.depth);
	CHECK_EQUAL(same.format, shape->array.format);
	CHECK_EQUAL(same.channels, shape->array.channels);
	CHECK_EQUAL(same.flags, shape->array.flags);
	CHECK_EQUAL(cu.cuArrayGetMemoryRequirements(&requirements, array, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuArrayDestroy(array), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuArrayDestroy(array), LL_CUDA_ERROR_INVALID_HANDLE);
	if (!shape->required_bytes)
		return;
	deferred.flags |= LL_CUDA_ARRAY3D_DEFERRED_MAPPING;
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &deferred), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuArrayGetMemoryRequirements(&requirements, array, 0), 0);
	CHECK_EQUAL(requirements.bytes, shape->required_bytes);
	CHECK_EQUAL(requirements.alignment, 65536);
	CHECK_EQUAL(cu.cuArrayDestroy(array), 0);
}

TEST_IN_WORLD(NULL, arrays_take_what_they_take_on_an_h200)
{
	open_context(0);
	uint64_t before = used_bytes();
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		check_shape(&shapes[i], before);
}

TEST_IN_WORLD(NULL, small_arrays_share_a_block)
{
	enum { COUNT = 64 };
	struct ll_cu_array *arrays[COUNT];
	struct ll_cu_array_descriptor shape = {64, 64, LL_CU_AD_FORMAT_FLOAT, 1}, same;
	open_context(0);
	uint64_t before = used_bytes();
	for (int i = 0; i < COUNT; i++)
		CHECK_EQUAL(cu.cuArrayCreate(&arrays[i], &shape), 0);
	CHECK_EQUAL(used_bytes() - before, 2 * MIB);
	CHECK_EQUAL(cu.cuArrayGetDescriptor(&same, arrays[COUNT - 1]), 0);
	CHECK_EQUAL(same.width, 64);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQUAL(cu.cuArrayDestroy(arrays[i]), 0);
	CHECK_EQUAL(used_bytes(), before);
}

TEST_IN_WORLD(NULL, a_mipmap_takes_the_sum_of_its_levels)
{
	struct ll_cu_array3d_descriptor shape = {1024, 1024, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0}, level;
	struct ll_cu_array_requirements requirements;
	struct ll_cu_mipmapped_array *mipmap;
	struct ll_cu_array *array;
	struct ll_cu_context *context = open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMipmappedArrayCreate(&mipmap, &shape, 99), 0);
	CHECK_EQUAL(used_bytes() - before, 6 * MIB);
	CHECK_EQUAL(cu.cuMipmappedArrayGetLevel(&array, mipmap, 3), 0);
	CHECK_EQUAL(cu.cuArray3DGetDescriptor(&level, array), 0);
	CHECK_EQUAL(level.width, 128);
	CHECK_EQUAL(level.height, 128);
	CHECK_EQUAL(level.depth, 0);
	/* A level is not the program's to destroy. */
	CHECK_EQUAL(cu.cuArrayDestroy(array), 0);
	CHECK_EQUAL(used_bytes() - before, 6 * MIB);
	CHECK_EQUAL(cu.cuMipmappedArrayGetLevel(&array, mipmap, 11), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMipmappedArrayDestroy(mipmap), 0);
	CHECK_EQUAL(used_bytes(), before);
	shape.flags = LL_CUDA_ARRAY3D_DEFERRED_MAPPING;
	CHECK_EQUAL(cu.cuMipmappedArrayCreate(&mipmap, &shape, 11), 0);
	CHECK_EQUAL(cu.cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0), 0);
	CHECK_EQUAL(requirements.bytes, 5636096);
	shape.flags = 0;
	CHECK_EQUAL(cu.cuMipmappedArrayCreate(&mipmap, &shape, 1), 0);
	CHECK_EQUAL(used_bytes() - before, 4 * MIB);
	/* They go with their context. */
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(cu.cuMipmappedArrayDestroy(mipmap), LL_CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(used_bytes(), before);
}

static void body_refused(void)
{
	struct ll_cu_array *array;
	struct ll_cu_array3d_descriptor wide = {1 << 20, 0, 0, LL_CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	struct ll_cu_array3d_descriptor three = {64, 64, 0, LL_CU_AD_FORMAT_FLOAT, 3, 0};
	struct ll_cu_array3d_descriptor large = {16384, 16384, 64, LL_CU_AD_FORMAT_FLOAT, 4, 0};
	struct ll_cu_array3d_descriptor good = {64, 64, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0};
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &wide), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &three), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &large), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &good), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &good), 0);
}

TEST(what_does_not_fit_is_refused_and_faults_reach_arrays)
{
	in_world("fail cuArray3DCreate_v2 CUDA_ERROR_LAUNCH_FAILED after 3 count 1", body_refused);
}
