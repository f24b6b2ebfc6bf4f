/* A program that opens the driver itself, with the shim preloaded: dlsym, dlvsym, cuGetProcAddress. On the simulator.
 */
#include "where.h"

#include <pthread.h>
#include <unistd.h>

static void *library(void)
{
	char path[512];
	snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("LOADLINE_SIM_LIBRARIES"));
	void *handle = dlopen(path, RTLD_NOW);
	CHECK(handle);
	return handle;
}

TEST_IN_WORLD(NULL, a_handle_and_dlsym_lead_to_the_hooks_and_to_nothing_else)
{
	void *cuda = library();
	CHECK(is_hook(dlsym(cuda, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
	CHECK(is_hook(dlsym(cuda, "cuLaunchKernel"), "cuLaunchKernel"));
	CHECK(is_hook(dlsym(cuda, "cuLaunchKernel_ptsz"), "cuLaunchKernel_ptsz"));
	CHECK(is_hook(dlsym(cuda, "cuGetProcAddress"), "cuGetProcAddress"));
	CHECK(is_hook(dlsym(cuda, "cuGetProcAddress_v2"), "cuGetProcAddress_v2"));
	/* What is not governed stays the driver's. */
	CHECK(is_in(dlsym(cuda, "cuInit"), "/libcuda.so.1"));
	CHECK(is_in(dlsym(cuda, "cuDriverGetVersion"), "/libcuda.so.1"));
}

TEST_IN_WORLD(NULL, nvml_readings_and_lists_of_every_version_are_hooked)
{
	struct ll_nvml_device *card = open_card(0);
	void *found;
	memcpy(&found, &nv.nvmlDeviceGetMemoryInfo, sizeof found);
	CHECK(is_hook(found, "nvmlDeviceGetMemoryInfo"));
	for (int kind = 0; kind < 3; kind++) {
		for (int version = 1; version <= 3; version++) {
			char symbol[80];
			const char *kinds[] = {"Compute", "Graphics", "MPSCompute"};
			const char *suffixes[] = {"", "_v2", "_v3"};
			snprintf(symbol, sizeof symbol, "nvmlDeviceGet%sRunningProcesses%s", kinds[kind],
				 suffixes[version - 1]);
			CHECK(is_hook(dlsym(nv.library, symbol), symbol));
		}
	}
	CHECK(is_in(dlsym(nv.library, "nvmlDeviceGetName"), "/libnvidia-ml.so.1"));
	struct ll_nvml_memory_v2 memory = {.version = LL_NVML_MEMORY_V2};
	struct ll_nvml_process_v1 list[4];
	ll_nvml_result (*list_v1)(struct ll_nvml_device *, unsigned *, struct ll_nvml_process_v1 *);
	unsigned count = 4;
	open_context(0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo_v2(card, &memory), 0);
	CHECK(memory.total_bytes > memory.used_bytes && memory.used_bytes > 0);
	found = dlsym(nv.library, "nvmlDeviceGetComputeRunningProcesses");
	memcpy(&list_v1, &found, sizeof list_v1);
	CHECK_EQUAL(list_v1(card, &count, list), 0);
	CHECK_EQUAL(count, 1);
	CHECK_EQUAL(list[0].pid, getpid());
	count = 0;
	CHECK_EQUAL(list_v1(card, &count, NULL), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 1);
}

TEST_IN_WORLD("missing cuMemAlloc_v2", what_the_driver_lacks_is_not_invented)
{
	void *cuda = library();
	dlerror();
	CHECK(!dlsym(cuda, "cuMemAlloc_v2"));
	const char *text = dlerror();
	CHECK(text && strstr(text, "cuMemAlloc_v2"));
	CHECK(!dlerror());
	/* A found symbol leaves no error behind, hooked or not. */
	CHECK(dlsym(cuda, "cuLaunchKernel") && !dlerror());
	CHECK(dlsym(cuda, "cuInit") && !dlerror());
	/* cuGetProcAddress: its status is the driver's. */
	void *found = &found;
	enum ll_cu_proc_address_result status;
	get_proc_v2 get = as_v2(dlsym(cuda, "cuGetProcAddress_v2"));
	CHECK_EQUAL(get("cuMemAlloc", &found, 12000, 0, &status), 0);
	CHECK(!found);
	CHECK_EQUAL(status, LL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK_EQUAL(get("cuLaunchKernelEx", &found, 11000, 0, &status), 0);
	CHECK_EQUAL(status, LL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	CHECK_EQUAL(get("cuMemFree", &found, 99000, 0, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	get_proc_v1 get_v1 = as_v1(dlsym(cuda, "cuGetProcAddress"));
	CHECK_EQUAL(get_v1("cuMemAlloc", &found, 12000, 0), LL_CUDA_ERROR_NOT_FOUND);
	CHECK_EQUAL(get_v1(NULL, &found, 12000, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(get_v1("cuMemAlloc", NULL, 12000, 0), LL_CUDA_ERROR_INVALID_VALUE);
	/* A direct call, as of a program that is linked: an error, and no crash. */
	ll_cu_deviceptr address = 7;
	__typeof__(cu.cuMemAlloc) allocate;
	found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	memcpy(&allocate, &found, sizeof allocate);
	CHECK_EQUAL(allocate(&address, 16), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(address, 7);
}

static void *get(get_proc_v2 function, const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	enum ll_cu_proc_address_result status = 99;
	CHECK_EQUAL(function(name, &found, version, flags, &status), 0);
	CHECK_EQUAL(status, LL_CU_GET_PROC_ADDRESS_SUCCESS);
	return found;
}

TEST_IN_WORLD(NULL, the_driver_s_own_look_up_leads_to_the_hooks)
{
	void *cuda = library(), *found;
	get_proc_v2 v2 = as_v2(dlsym(cuda, "cuGetProcAddress_v2"));
	get_proc_v1 v1 = as_v1(dlsym(cuda, "cuGetProcAddress"));
	CHECK(is_hook(get(v2, "cuMemAlloc", 12000, 0), "cuMemAlloc_v2"));
	CHECK(is_hook(get(v2, "cuLaunchKernel", 12000, 0), "cuLaunchKernel"));
	CHECK(is_hook(get(v2, "cuLaunchKernel", 12000, LL_CU_GET_PROC_ADDRESS_LEGACY_STREAM), "cuLaunchKernel"));
	CHECK(is_hook(get(v2, "cuLaunchKernel", 12000, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
		      "cuLaunchKernel_ptsz"));
	CHECK(is_hook(get(v2, "cuCtxDestroy", 12000, 0), "cuCtxDestroy_v2"));
	CHECK(is_in(get(v2, "cuInit", 12000, 0), "/libcuda.so.1"));
	CHECK(is_hook(get(v2, "cuGetProcAddress", 12000, 0), "cuGetProcAddress_v2"));
	CHECK(is_hook(get(v2, "cuGetProcAddress", 11030, 0), "cuGetProcAddress"));
	/* What it finds through itself finds the same. */
	v2 = as_v2(get(v2, "cuGetProcAddress", 12000, 0));
	CHECK(is_hook(get(v2, "cuMemAlloc", 12000, 0), "cuMemAlloc_v2"));
	CHECK_EQUAL(v1("cuMemAlloc", &found, 11030, 0), 0);
	CHECK(is_hook(found, "cuMemAlloc_v2"));
	CHECK_EQUAL(v1("cuLaunchKernel", &found, 11030, LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM), 0);
	CHECK(is_hook(found, "cuLaunchKernel_ptsz"));
	CHECK_EQUAL(v1("cuInit", &found, 11030, 0), 0);
	CHECK(is_in(found, "/libcuda.so.1"));
}

static void use(void)
{
	ll_cu_deviceptr address;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(address, 3, 4096), 0);
	launch_timed(get_kernel("work_ns"), NULL, 1000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
}

TEST(hooked_functions_do_their_work)
{
	in_world(NULL, use);
}

TEST_IN_WORLD(NULL, a_forked_child_can_use_the_driver)
{
	void *cuda = library();
	CHECK(is_hook(dlsym(cuda, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
	/* Bound here already, and used for the first time in the child. */
	CHECK(get(as_v2(dlsym(cuda, "cuGetProcAddress_v2")), "cuMemAlloc", 12000, 0));
	join(spawn(use));
	join(spawn(use));
	use();
}

static pthread_barrier_t barrier;

static void *look_up(void *cuda)
{
	pthread_barrier_wait(&barrier);
	get_proc_v2 v2 = as_v2(dlsym(cuda, "cuGetProcAddress_v2"));
	for (int i = 0; i < 50; i++) {
		CHECK(is_in_shim(get(v2, "cuMemAlloc", 12000, 0)));
		CHECK(is_in_shim(get(v2, "cuLaunchKernel", 12000, 0)));
		CHECK(is_in_shim(dlsym(cuda, "cuMemAlloc_v2")));
		CHECK(is_in(dlsym(cuda, "cuInit"), "/libcuda.so.1"));
		CHECK(!dlsym(cuda, "cuNoSuchThing"));
	}
	return NULL;
}

static void body_threads(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	void *cuda = library();
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, look_up, cuda) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

TEST(threads_may_all_look_up_at_once_for_the_first_time)
{
	for (int i = 0; i < 5; i++)
		in_world(NULL, body_threads);
}

TEST_IN_WORLD(NULL, next_and_default_mean_what_they_mean_without_us)
{
	/* This program comes before the shim, the shim before the driver. */
	CHECK(is_in_shim(dlsym(RTLD_NEXT, "cuMemAlloc_v2")));
	CHECK(is_in_shim(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
	CHECK(!dlsym(RTLD_NEXT, "cuInit"));
	CHECK(!is_in_shim(dlsym(RTLD_NEXT, "malloc")));
	/* libc's own answers are not touched, under any handle. */
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	if (libc)
		CHECK(is_in(dlsym(libc, "strlen"), "/libc.so.6"));
}
