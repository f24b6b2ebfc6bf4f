/* Green contexts: a part of a card's SMs in its primary context. */
#include "process.h"

#include <pthread.h>

static struct ll_cu_resource_desc *describe(unsigned least_sms, unsigned *ret_groups)
{
	struct ll_cu_resource all, groups[32], rest;
	struct ll_cu_resource_desc *desc;
	unsigned count = 32;
	CHECK_EQUAL(cu.cuDeviceGetDevResource(0, &all, LL_CU_DEV_RESOURCE_TYPE_SM), 0);
	CHECK_EQUAL(all.sm.sm_count, 132);
	CHECK_EQUAL(cu.cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, least_sms), 0);
	CHECK_EQUAL(rest.sm.sm_count, 132 - count * groups[0].sm.sm_count);
	CHECK_EQUAL(cu.cuDevResourceGenerateDesc(&desc, groups, 1), 0);
	*ret_groups = count;
	return desc;
}

static struct ll_cu_context *view;

static void *try_elsewhere(void *arg)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(view), LL_CUDA_ERROR_INVALID_CONTEXT);
	return arg;
}

TEST_IN_WORLD(NULL, a_green_context_is_a_part_of_the_primary_one)
{
	struct ll_cu_green_context *green;
	struct ll_cu_context *primary, *found;
	struct ll_cu_stream *stream;
	struct ll_cu_resource own;
	pthread_t thread;
	unsigned groups, flags;
	int is_active;
	ll_cu_deviceptr address;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	struct ll_cu_resource_desc *desc = describe(12, &groups);
	CHECK_EQUAL(groups, 8);
	CHECK_EQUAL(cu.cuGreenCtxCreate(&green, desc, 0, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuGreenCtxCreate(&green, desc, 0, LL_CU_GREEN_CTX_DEFAULT_STREAM), 0);
	CHECK_EQUAL(cu.cuGreenCtxGetDevResource(green, &own, LL_CU_DEV_RESOURCE_TYPE_SM), 0);
	CHECK_EQUAL(own.sm.sm_count, 16);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxGetState(0, &flags, &is_active), 0);
	CHECK(is_active);
	CHECK_EQUAL(cu.cuCtxFromGreenCtx(&view, green), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
	CHECK(view != primary);
	CHECK_EQUAL(cu.cuCtxSetCurrent(view), 0);
	CHECK_EQUAL(cu.cuCtxGetCurrent(&found), 0);
	CHECK(found == view);
	/* To one thread at a time. */
	CHECK_EQUAL(pthread_create(&thread, NULL, try_elsewhere, NULL), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK_EQUAL(cu.cuGreenCtxStreamCreate(&stream, green, 0, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuGreenCtxStreamCreate(&stream, green, LL_CU_STREAM_NON_BLOCKING, 0), 0);
	CHECK_EQUAL(cu.cuStreamGetCtx(stream, &found), 0);
	CHECK(found == view);
	/* It has what the primary context has. */
	CHECK_EQUAL(cu.cuMemAlloc(&address, 1 << 20), 0);
	launch_timed(get_kernel("work_ns"), stream, 1000000, 1, 32);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(primary), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(green), 0);
	CHECK_EQUAL(cu.cuGreenCtxDestroy(green), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK(cu.cuCtxSetCurrent(view) != 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxGetState(0, &flags, &is_active), 0);
	CHECK(!is_active);
}
