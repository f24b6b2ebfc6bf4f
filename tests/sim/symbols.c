/* What the libraries export, and what they can be made to lack. */
#include "process.h"

#include <dlfcn.h>
#include <pthread.h>

TEST_IN_WORLD("driver 610.10 cuda 13.4", every_declared_function_is_exported)
{
	const char *(*world)(void);
	const char *expected = getenv("LOADLINE_SIM_DIR");
	CHECK_EQUAL(open_cuda(), 0);
	CHECK_EQUAL(open_nvml(), 0);
	void *libraries[] = {cu.library, nv.library};
	for (int i = 0; i < 2; i++) {
		void *found = dlsym(libraries[i], "loadline_sim_world");
		memcpy(&world, &found, sizeof found);
		CHECK(world && expected && world() && strcmp(world(), expected) == 0);
	}
}

static void body_missing(void)
{
	struct ll_nvml_device *card = open_card(0);
	struct ll_nvml_utilization utilization;
	void *found = &found;
	enum ll_cu_proc_address_result result;
	open_context(0);
	CHECK(!nv.nvmlGpmSampleGet);
	CHECK(!cu.cuLaunchKernel);
	CHECK(!cu.cuStreamWriteValue32);
	CHECK(cu.cuStreamWriteValue32_v1);
	CHECK(nv.nvmlGpmSampleAlloc);
	CHECK_EQUAL(cu.cuGetProcAddress("cuLaunchKernel", &found, 12000, 0, &result), 0);
	CHECK(!found);
	CHECK_EQUAL(result, LL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	/* What is left works. */
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), 0);
}

TEST(missing_symbols_are_missing_for_dlsym_and_for_the_driver_s_own_lookup)
{
	in_world("missing nvmlGpmSampleGet cuLaunchKernel cuStreamWriteValue32_v2", body_missing);
}

TEST_IN_WORLD("driver 470.57.02 cuda 11.4\nmissing cuGetProcAddress_v2", an_older_driver_says_so)
{
	struct ll_cu_module *module;
	char text[80];
	int version;
	open_cuda();
	CHECK_EQUAL(cu.cuDriverGetVersion(&version), 0);
	CHECK_EQUAL(version, 11040);
	CHECK(!cu.cuGetProcAddress);
	open_card(0);
	CHECK_EQUAL(nv.nvmlSystemGetDriverVersion(text, sizeof text), 0);
	CHECK(strcmp(text, "470.57.02") == 0);
	CHECK_EQUAL(nv.nvmlSystemGetDriverVersion(text, 4), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	open_context(0);
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ".version 7.4\n.target sm_50\n"), 0);
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ".version 7.5\n.target sm_50\n"),
		    LL_CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ".version 7.4\n.target sm_100\n"), LL_CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_EQUAL(cu.cuModuleLoadData(&module, "rubbish"), LL_CUDA_ERROR_INVALID_IMAGE);
}

static void *look_up(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	enum ll_cu_proc_address_result result;
	CHECK_EQUAL(cu.cuGetProcAddress(name, &found, version, flags, &result), 0);
	CHECK_EQUAL(found != NULL, result == LL_CU_GET_PROC_ADDRESS_SUCCESS);
	return found;
}

TEST_IN_WORLD(NULL, the_driver_s_own_lookup_knows_versions_and_streams)
{
	void *found;
	enum ll_cu_proc_address_result result;
	open_cuda();
	CHECK(look_up("cuMemAlloc", 12000, 0) == dlsym(cu.library, "cuMemAlloc_v2"));
	CHECK(look_up("cuInit", 12000, 0) == dlsym(cu.library, "cuInit"));
	CHECK(look_up("cuCtxCreate", 11000, 0) == dlsym(cu.library, "cuCtxCreate_v2"));
	CHECK(look_up("cuCtxCreate", 12000, 0) == dlsym(cu.library, "cuCtxCreate_v3"));
	CHECK(look_up("cuCtxCreate", 13000, 0) == dlsym(cu.library, "cuCtxCreate_v4"));
	CHECK(look_up("cuGLCtxCreate", 3000, 0) == dlsym(cu.library, "cuGLCtxCreate"));
	CHECK(look_up("cuGLCtxCreate", 12000, 0) == dlsym(cu.library, "cuGLCtxCreate_v2"));
	CHECK(!look_up("cuVDPAUCtxCreate", 3000, 0));
	CHECK(look_up("cuVDPAUCtxCreate", 3010, 0) == dlsym(cu.library, "cuVDPAUCtxCreate"));
	CHECK(look_up("cuVDPAUCtxCreate", 12000, 0) == dlsym(cu.library, "cuVDPAUCtxCreate_v2"));
	CHECK(look_up("cuStreamWriteValue32", 11000, 0) == dlsym(cu.library, "cuStreamWriteValue32"));
	CHECK(look_up("cuLaunchKernel", 12000, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
	      dlsym(cu.library, "cuLaunchKernel_ptsz"));
	CHECK(look_up("cuMemcpyHtoD", 12000, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
	      dlsym(cu.library, "cuMemcpyHtoD_v2_ptds"));
	CHECK(!look_up("cuNoSuchThing", 12000, 0));
	CHECK_EQUAL(cu.cuGetProcAddress("cuFuncGetName", &found, 12000, 0, &result), 0);
	CHECK_EQUAL(result, LL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	CHECK_EQUAL(cu.cuGetProcAddress("cuInit", &found, 99000, 0, &result), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuGetProcAddress_v1("cuNoSuchThing", &found, 12000, 0), LL_CUDA_ERROR_NOT_FOUND);
}

static void check_lookup(const char *symbol)
{
	char name[80], per_thread_name[80];
	const char *version = strstr(symbol, "_v");
	snprintf(name, sizeof name, "%.*s", (int)(version ? (size_t)(version - symbol) : strlen(symbol)), symbol);
	snprintf(per_thread_name, sizeof per_thread_name, "%s_ptsz", symbol);
	void *per_thread = dlsym(cu.library, per_thread_name);
	bool is_newest = look_up(name, 13000, 0) == dlsym(cu.library, symbol);
	void *found = look_up(name, 13000, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	CHECK(found);
	if (per_thread && is_newest)
		CHECK(found == per_thread);
}

static const char *const governed[] = {
#define LL_CUDA_OPENED(...)
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) #symbol,
#include "abi/cuda.def"
};

TEST_IN_WORLD(NULL, the_lookup_knows_all_that_is_governed)
{
	open_cuda();
	for (size_t i = 0; i < sizeof governed / sizeof governed[0]; i++)
		check_lookup(governed[i]);
	CHECK(look_up("cuGraphLaunch", 13000, 0) == dlsym(cu.library, "cuGraphLaunch"));
	CHECK(look_up("cuGraphAddKernelNode", 11080, 0) == dlsym(cu.library, "cuGraphAddKernelNode"));
	CHECK(look_up("cuGraphAddKernelNode", 12000, 0) == dlsym(cu.library, "cuGraphAddKernelNode_v2"));
	CHECK(look_up("cuStreamGetCaptureInfo", 11030, 0) == dlsym(cu.library, "cuStreamGetCaptureInfo_v2"));
	CHECK(look_up("cuStreamGetCaptureInfo", 13000, 0) == dlsym(cu.library, "cuStreamGetCaptureInfo_v3"));
	CHECK(!look_up("cuLibraryLoadData", 11080, 0));
	CHECK(look_up("cuStreamWaitValue32", 11000, 0) == dlsym(cu.library, "cuStreamWaitValue32"));
	CHECK(look_up("cuStreamBeginCapture", 13000, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
	      dlsym(cu.library, "cuStreamBeginCapture_v2_ptsz"));
}

TEST_IN_WORLD(NULL, what_is_not_modelled_is_refused_cleanly)
{
	const struct ll_cu_uuid id = {{0}};
	const void *table = &id;
	const char *text;
	ll_cu_result (*unmodelled)(void);
	open_context(0);
	CHECK_EQUAL(cu.cuGetExportTable(&table, &id), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK(!table);
	void *found = dlsym(cu.library, "cuTexObjectCreate");
	memcpy(&unmodelled, &found, sizeof found);
	CHECK_EQUAL(unmodelled(), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(cu.cuGetErrorName(LL_CUDA_ERROR_ILLEGAL_ADDRESS, &text), 0);
	CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
	CHECK_EQUAL(cu.cuGetErrorString(LL_CUDA_ERROR_OUT_OF_MEMORY, &text), 0);
	CHECK(strcmp(text, "out of memory") == 0);
	CHECK_EQUAL(cu.cuGetErrorName((ll_cu_result)12345, &text), LL_CUDA_ERROR_INVALID_VALUE);
	open_nvml();
	CHECK(strcmp(nv.nvmlErrorString(LL_NVML_ERROR_GPU_IS_LOST), "GPU is lost") == 0);
	CHECK(nv.nvmlErrorString((ll_nvml_result)4711));
}

static struct ll_cu_context *shared_context;

static void *use_own_stream(void *user)
{
	__typeof__(cu.cuMemsetD32Async) memset_async;
	__typeof__(cu.cuStreamSynchronize) synchronize;
	void *found = dlsym(cu.library, "cuMemsetD32Async_ptsz");
	memcpy(&memset_async, &found, sizeof found);
	found = dlsym(cu.library, "cuStreamSynchronize_ptsz");
	memcpy(&synchronize, &found, sizeof found);
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	CHECK_EQUAL(memset_async(*(ll_cu_deviceptr *)user, 5, 4, NULL), 0);
	CHECK_EQUAL(synchronize(NULL), 0);
	return NULL;
}

TEST_IN_WORLD(NULL, threads_have_their_own_default_streams)
{
	ll_cu_deviceptr address;
	pthread_t thread;
	uint32_t value;
	shared_context = open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	/* A stream that does not wait for the legacy one is not in its way: neither is a thread's own, until it is
	 * used. */
	struct ll_cu_stream *s = new_stream();
	launch_timed(get_kernel("work_ns"), s, 60000000000, 1, 32);
	CHECK(pthread_create(&thread, NULL, use_own_stream, &address) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&value, address, 4), 0);
	CHECK_EQUAL(value, 5);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
}
