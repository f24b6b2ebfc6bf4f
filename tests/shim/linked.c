/*
 * A program that is linked against the driver, on the simulator with the shim preloaded; SHIM_TEST_WRAPPED says which
 * library (wrap.c) sees its allocations besides, if any does.
 */
#include "where.h"

#include "abi/cuda_prototypes.h"

int wrapped_calls(void) __attribute__((weak));

static int calls_seen(void)
{
	return wrapped_calls ? wrapped_calls() : 0;
}

static void allocate_by_every_way(bool is_wrapped)
{
	ll_cu_deviceptr address;
	void *found = NULL;
	__typeof__(&cuMemAlloc_v2) by_address = cuMemAlloc_v2;
	CHECK_EQUAL(cuMemAlloc_v2(&address, 4096), 0);
	CHECK_EQUAL(by_address(&address, 4096), 0);
	CHECK_EQUAL(calls_seen(), is_wrapped ? 2 : 0);
	memcpy(&found, &by_address, sizeof found);
	CHECK(is_in(found, is_wrapped ? "wrap" : "/libloadline-cuda.so"));
	CHECK(is_in(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), is_wrapped ? "wrap" : "/libloadline-cuda.so"));
	/* The driver's own way, and a handle, never lead to another library. */
	CHECK_EQUAL(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, NULL), 0);
	CHECK(is_in_shim(found) || is_in(found, "wrap"));
	found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
	CHECK(is_in_shim(found));
	memcpy(&by_address, &found, sizeof by_address);
	int before = calls_seen();
	CHECK_EQUAL(by_address(&address, 4096), 0);
	CHECK_EQUAL(calls_seen(), before);
}

/* A wrapper that comes after the shim finds the hooks by RTLD_NEXT, and they call the driver. */
static void call_the_wrapper(const char *path)
{
	ll_cu_deviceptr address;
	__typeof__(&cuMemAlloc_v2) allocate;
	void *wrapper = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *found = wrapper ? dlsym(wrapper, "cuMemAlloc_v2") : NULL;
	CHECK(is_in(found, "wrap"));
	memcpy(&allocate, &found, sizeof allocate);
	int before = calls_seen();
	CHECK_EQUAL(allocate(&address, 4096), 0);
	CHECK_EQUAL(calls_seen(), before + 1);
	void *(*next)(void);
	found = dlsym(wrapper, "wrapped_next");
	memcpy(&next, &found, sizeof next);
	const char *expected = getenv("SHIM_TEST_NEXT");
	CHECK(!expected || is_in(next(), expected));
}

int main(void)
{
	struct ll_cu_context *context;
	ll_cu_device device;
	const char *wrapped = getenv("SHIM_TEST_WRAPPED"), *wrapper = getenv("SHIM_TEST_WRAPPER");
	CHECK_EQUAL(cuInit(0), 0);
	CHECK_EQUAL(cuDeviceGet(&device, 0), 0);
	CHECK_EQUAL(cuCtxCreate_v2(&context, 0, device), 0);
	allocate_by_every_way(wrapped && strcmp(wrapped, "yes") == 0);
	if (wrapper)
		call_the_wrapper(wrapper);
	CHECK_EQUAL(cuCtxDestroy_v2(context), 0);
	return 0;
}
