/* A program with a driver that is unlike the simulator (fake/fake_cuda.c), and the shim preloaded. */
#include "where.h"

static void *library(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(handle);
	return handle;
}

static void *get(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	enum ll_cu_proc_address_result status = 99;
	CHECK_EQUAL(as_v2(dlsym(library(), "cuGetProcAddress_v2"))(name, &found, version, flags, &status), 0);
	CHECK_EQUAL(status, LL_CU_GET_PROC_ADDRESS_SUCCESS);
	return found;
}

#define PER_THREAD LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static void inner_addresses_lead_to_the_hooks_by_name_version_and_stream(void)
{
	void *found;
	CHECK(is_hook(get("cuMemAlloc", 12000, 0), "cuMemAlloc_v2"));
	CHECK(is_hook(get("cuMemAlloc", 3020, 0), "cuMemAlloc_v2"));
	CHECK(is_hook(get("cuMemAlloc", 12000, PER_THREAD), "cuMemAlloc_v2"));
	CHECK(is_hook(get("cuLaunchKernel", 12000, 0), "cuLaunchKernel"));
	CHECK(is_hook(get("cuLaunchKernel", 12000, PER_THREAD), "cuLaunchKernel_ptsz"));
	CHECK(is_in(get("cuInit", 12000, 0), "/fake/libcuda.so.1"));
	/* Without a flag the per-thread look-up means per-thread variants. */
	get_proc_v2 per_thread = as_v2(dlsym(library(), "cuGetProcAddress_v2_ptsz"));
	CHECK_EQUAL(per_thread("cuLaunchKernel", &found, 12000, 0, NULL), 0);
	CHECK(is_hook(found, "cuLaunchKernel_ptsz"));
	CHECK_EQUAL(per_thread("cuLaunchKernel", &found, 12000, LL_CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL), 0);
	CHECK(is_hook(found, "cuLaunchKernel"));
}

static void exported_addresses_count_more_than_names(void)
{
	void *cuda = library(), *found;
	CHECK(is_hook(get("cuGetProcAddress", 11030, 0), "cuGetProcAddress"));
	CHECK(is_hook(get("cuGetProcAddress", 12000, 0), "cuGetProcAddress_v2"));
	CHECK(is_hook(get("cuRenamed", 12000, 0), "cuLaunchKernel"));
	/* Another name at the address of a hooked function stays what it is. */
	CHECK(is_in(get("cuFolded", 12000, 0), "/fake/libcuda.so.1"));
	found = dlsym(cuda, "cuFolded");
	CHECK(is_in(found, "/fake/libcuda.so.1"));
}

static void a_variant_that_is_newer_than_our_rows_is_left_alone(void)
{
	CHECK(is_in(get("cuCtxDestroy", 12000, 0), "/fake/libcuda.so.1"));
}

static void dlvsym_leads_to_the_hooks(void)
{
	void *cuda = library();
	CHECK(is_hook(dlvsym(cuda, "cuMemAlloc_v2", "FAKE_1"), "cuMemAlloc_v2"));
	CHECK(is_in(dlvsym(cuda, "cuInit", "FAKE_1"), "/fake/libcuda.so.1"));
	dlerror();
	CHECK(!dlvsym(cuda, "cuMemAlloc_v2", "FAKE_2"));
	const char *text = dlerror();
	CHECK(text && strstr(text, "FAKE_2"));
}

static void every_argument_arrives(void)
{
	__typeof__(cu.cuLaunchKernel) launch;
	ll_cu_result wanted = LL_CUDA_ERROR_MAP_FAILED;
	void *found = dlsym(library(), "cuLaunchKernel");
	memcpy(&launch, &found, sizeof launch);
	CHECK_EQUAL(launch(NULL, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, (void **)(void *)&wanted), wanted);
	CHECK_EQUAL(launch(NULL, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL), 0);
}

static bool is_loaded(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	return handle && dlclose(handle) == 0;
}

/* First of all, as it begins with no driver. */
static void the_driver_may_be_closed_and_opened_again(void)
{
	__typeof__(cu.cuMemAlloc) allocate;
	ll_cu_deviceptr address;
	for (int i = 0; i < 3; i++) {
		CHECK(!is_loaded());
		void *cuda = library();
		CHECK(is_hook(dlsym(cuda, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
		CHECK(is_in(dlsym(cuda, "cuInit"), "/fake/libcuda.so.1"));
		CHECK(dlclose(cuda) == 0);
	}
	/* Used once, it stays: our hooks may be called for as long as the program lives. */
	void *cuda = library(), *found = dlsym(cuda, "cuMemAlloc_v2");
	memcpy(&allocate, &found, sizeof allocate);
	CHECK_EQUAL(allocate(&address, 5), 0);
	CHECK_EQUAL(address, 205);
	CHECK(dlclose(cuda) == 0);
	CHECK(is_loaded());
	CHECK_EQUAL(allocate(&address, 6), 0);
	CHECK_EQUAL(address, 206);
	cuda = library();
	CHECK(is_hook(dlsym(cuda, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
}

int main(void)
{
	the_driver_may_be_closed_and_opened_again();
	dlvsym_leads_to_the_hooks();
	inner_addresses_lead_to_the_hooks_by_name_version_and_stream();
	exported_addresses_count_more_than_names();
	a_variant_that_is_newer_than_our_rows_is_left_alone();
	every_argument_arrives();
	return 0;
}
