/* Older drivers, and odd ones: what they lack is not invented, nothing breaks, and limits hold for what is there. */
#include "launching.h"

#include <dlfcn.h>

#define ID 7
#define MS UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)
/* What a context is charged here. */
#define CONTEXT_BYTES (528 * MIB)
#define LIMIT_BYTES (CONTEXT_BYTES + 300 * MIB)
#define DEBT (5 * MS)

/* What the driver itself would say of a function that is not there cannot be asked. */
#define HAS(name) (cu.name != NULL)

static struct ll_cu_stream *stream;
static struct ll_cu_function *work;
static ll_cu_deviceptr address;

static void begin(void)
{
	struct ll_cu_context *context;
	govern_by((struct ll_run_settings){.id = ID,
					   .tenant = "test",
					   .memory_limit_bytes = LIMIT_BYTES,
					   .compute_cap_permille = 100,
					   .counts_context = true});
	open_cuda();
	if (!HAS(cuCtxCreate)) {
		CHECK_EQUAL(cu.cuInit(0), 0);
		CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
		CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	} else {
		open_context(0);
	}
	work = HAS(cuModuleLoadData) && HAS(cuModuleGetFunction) ? get_kernel("work_ns") : NULL;
	stream = HAS(cuStreamCreate) ? new_stream() : NULL;
}

static void use_memory(void)
{
	size_t free_bytes, total_bytes;
	if (HAS(cuMemAlloc)) {
		CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	} else {
		CHECK_EQUAL(cu.cuMemAllocManaged(&address, 100 * MIB, LL_CU_MEM_ATTACH_GLOBAL), 0);
	}
	if (HAS(cuMemGetInfo))
		CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	if (HAS(cuMemsetD8))
		CHECK_EQUAL(cu.cuMemsetD8(address, 1, MIB), 0);
	if (HAS(cuMemcpyDtoD))
		CHECK_EQUAL(cu.cuMemcpyDtoD(address, address + 2 * MIB, MIB), 0);
	if (HAS(cuMemcpyAsync))
		CHECK_EQUAL(cu.cuMemcpyAsync(address, address + 2 * MIB, MIB, stream), 0);
}

static void use_pool(void)
{
	ll_cu_deviceptr block;
	if (HAS(cuMemAllocAsync)) {
		CHECK_EQUAL(cu.cuMemAllocAsync(&block, 10 * MIB, stream), 0);
		if (HAS(cuMemFreeAsync))
			CHECK_EQUAL(cu.cuMemFreeAsync(block, stream), 0);
	}
}

static void use_graph(void)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	if (!stream || !HAS(cuStreamBeginCapture) || !HAS(cuGraphInstantiate) || !HAS(cuGraphLaunch))
		return;
	/* It came with capture itself: there is no driver that captures and does not tell. */
	if (!HAS(cuStreamIsCapturing))
		return;
	/* Without it whatever another thread asks ends a capture. It is as old as the driver of CUDA 10.1. */
	if (!dlsym(cu.library, "cuThreadExchangeStreamCaptureMode"))
		return;
	sleep_ms(25); /* the library looks at timing events again after 20 */
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	launch_timed(work, stream, MS / 10, 1, 32);
	sleep_ms(5); /* and at what is not timed yet after 1 */
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
}

static void use_all(void)
{
	begin();
	use_memory();
	use_pool();
	if (work && HAS(cuLaunchKernel)) {
		for (int i = 0; i < 5; i++)
			launch_timed(work, stream, MS / 10, 1, 32);
		use_graph();
	}
	if (HAS(cuStreamSynchronize))
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	if (HAS(cuCtxSynchronize))
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	if (stream && HAS(cuStreamDestroy))
		CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	if (HAS(cuMemFree))
		CHECK_EQUAL(cu.cuMemFree(address), 0);
}

static void check_limits(void)
{
	ll_cu_deviceptr refused;
	size_t free_bytes, total_bytes;
	struct ll_nvml_memory memory;
	struct ll_nvml_device *card = open_card(0);
	use_all();
	stream = HAS(cuStreamCreate) ? new_stream() : NULL;
	CHECK_EQUAL(charged_bytes(ID), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 300 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&refused, 1), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAllocAsync(&refused, MIB, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(total_bytes, LIMIT_BYTES);
	CHECK_EQUAL(free_bytes, 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQUAL(memory.total_bytes, LIMIT_BYTES);
	/* And the cap. */
	owe(ID, DEBT);
	uint64_t before_ns = gpu_ns(ID);
	launch_timed(work, stream, MS, 1, 32);
	CHECK(tokens_ns(ID) > -(int64_t)(DEBT / 2));
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(gpu_ns(ID) > before_ns);
	CHECK_EQUAL(has_note(ID), 0);
}

TEST_IN_WORLD("driver 470.57.02 cuda 11.4\n", limits_hold_with_a_driver_of_cuda_11_4)
{
	struct ll_nvml_process list[8];
	unsigned count = 8;
	check_limits();
	/* What came later is not there. */
	static const char *const later[] = {
	    "cuGetProcAddress_v2", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz", "cuGraphAddNode",
	    "cuMemcpyBatchAsync",  "cuGreenCtxCreate", "cuCtxSynchronize_v2",   "cuStreamBeginCaptureToGraph"};
	for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
		if (dlsym(cu.library, later[i]))
			give_up(__FILE__, __LINE__, later[i]);
	}
	CHECK(!dlsym(nv.library, "nvmlDeviceGetComputeRunningProcesses_v3"));
	CHECK(!dlsym(nv.library, "nvmlDeviceGetRunningProcessDetailList"));
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses_v2(card, &count, list), 0);
	CHECK_EQUAL(count, 1);
	/* Its own look-up leads to the hooks as well. */
	void *found = NULL;
	CHECK_EQUAL(cu.cuGetProcAddress_v1("cuMemAlloc", &found, 11040, 0), 0);
	CHECK(found == dlsym(cu.library, "cuMemAlloc_v2"));
}

/* What no driver from 470 on need have, and we call: it is done without. */
TEST(limits_hold_without_what_came_later)
{
	in_world("missing cuDeviceGetUuid_v2 cuMemGetDefaultMemPool cuCtxFromGreenCtx cuGraphAddNode_v2 "
		 "cuCtxSynchronize_v2\n",
		 check_limits);
}

/* As many as the simulator lets a scenario name. */
static void without(const char *const *symbols, size_t count)
{
	char scenario[4096] = "";
	for (size_t i = 0; i < count; i++)
		snprintf(scenario + strlen(scenario), sizeof scenario - strlen(scenario), "missing %s\n", symbols[i]);
	print_message("without %s\n", symbols[0]);
	in_world(scenario, use_all);
}

/* Such a driver there is not; a program must not fall over it all the same. */
TEST(whatever_we_call_may_be_missing)
{
	static const char *const called[] = {
#define LL_CALL(symbol) #symbol,
#include "shim/interpose/hooks.def"
	};
	for (size_t i = 0; i < sizeof called / sizeof called[0]; i++)
		without(&called[i], 1);
}

/* Each hook whose function is missing, by themselves where this program uses them, the rest together. */
TEST(whatever_we_stand_in_front_of_may_be_missing)
{
	static const char *const alone[] = {
	    "cuMemAlloc_v2",       "cuMemFree_v2",       "cuMemGetInfo_v2", "cuMemAllocAsync",
	    "cuMemFreeAsync",      "cuLaunchKernel",     "cuMemsetD8_v2",   "cuMemcpyDtoD_v2",
	    "cuMemcpyAsync",       "cuGraphLaunch",      "cuCtxCreate_v2",  "cuStreamSynchronize",
	    "cuCtxSynchronize",    "cuStreamDestroy_v2", "cuMemPoolTrimTo", "cuStreamBeginCapture_v2",
	    "cuGetProcAddress_v2", "cuGetProcAddress",   "cuStreamCreate",  "cuStreamWaitValue32_v2",
	    "cuMemcpyHtoD_v2",
	};
	static const char *const hooks[] = {
#define LL_HOOK(symbol) #symbol,
#include "shim/interpose/hooks.def"
	};
	enum { TOGETHER = 30, COUNT = sizeof hooks / sizeof hooks[0] };
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
		without(&alone[i], 1);
	for (size_t from = 0; from < COUNT; from += TOGETHER) {
		const char *symbols[TOGETHER];
		size_t count = 0;
		for (size_t i = from; i < from + TOGETHER && i < COUNT; i++) {
			/* The program takes these where it cannot have the usual ones. */
			bool is_needed = strcmp(hooks[i], "cuDevicePrimaryCtxRetain") == 0 ||
					 strcmp(hooks[i], "cuMemAllocManaged") == 0;
			if (!is_needed)
				symbols[count++] = hooks[i];
		}
		without(symbols, count);
	}
}
