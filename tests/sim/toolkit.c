/*
 * A CUDA driver-API program as a user writes it: the toolkit's header, linked with -lcuda against the toolkit's stub.
 * It knows nothing of the simulator; the loader finds libcuda.so.1 through LD_LIBRARY_PATH. Without a toolkit it skips
 * (77).
 */
#include <stdio.h>

#if defined(HAVE_TOOLKIT)

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
	do {                                                                                                           \
		CUresult status_ = (call);                                                                             \
		if (status_ != CUDA_SUCCESS) {                                                                         \
			const char *name_ = "?";                                                                       \
			cuGetErrorName(status_, &name_);                                                               \
			fprintf(stderr, "%s: %s\n", #call, name_);                                                     \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static const char ptx[] = ".version 7.4\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 counter;\n"
			  ".visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n";

enum { N = 1 << 16 };

static void describe(CUdevice device)
{
	CUuuid uuid;
	size_t total;
	char name[100];
	int sms, version;
	CHECK(cuDriverGetVersion(&version));
	CHECK(cuDeviceGetName(name, sizeof name, device));
	CHECK(cuDeviceGetUuid(&uuid, device));
	CHECK(cuDeviceTotalMem(&total, device));
	CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	printf("%s, %d SMs, %zu MiB, CUDA %d\n", name, sms, total >> 20, version);
}

/* in -> a -> b -> out on one stream, with a kernel between and events around. Returns the time on the card. */
static float run(CUfunction add, CUdeviceptr a, CUdeviceptr b, const int *in, int *out)
{
	CUstream stream;
	CUevent start, stop;
	float ms;
	int n = N;
	void *params[] = {&a, &b, &n};
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
	CHECK(cuEventRecord(start, stream));
	CHECK(cuMemcpyHtoDAsync(a, in, N * sizeof *in, stream));
	CHECK(cuLaunchKernel(add, N / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
	CHECK(cuMemcpyDtoDAsync(b, a, N * sizeof *in, stream));
	CHECK(cuEventRecord(stop, stream));
	CHECK(cuMemcpyDtoHAsync(out, b, N * sizeof *out, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuEventElapsedTime(&ms, start, stop));
	CHECK(cuEventDestroy(start));
	CHECK(cuEventDestroy(stop));
	CHECK(cuStreamDestroy(stream));
	return ms;
}

int main(void)
{
	static int in[N], out[N];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction add;
	CUdeviceptr a, b, counter;
	size_t bytes;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	describe(device);
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxPushCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
	CHECK(cuMemsetD32(counter, 3, 1));
	CHECK(cuMemAlloc(&a, sizeof in));
	CHECK(cuMemAlloc(&b, sizeof in));
	for (int i = 0; i < N; i++)
		in[i] = i * 3;
	float ms = run(add, a, b, in, out);
	printf("%.3f ms on the card\n", (double)ms);
	CHECK(cuMemFree(a));
	CHECK(cuMemFree(b));
	CHECK(cuModuleUnload(module));
	CHECK(cuCtxPopCurrent(&context));
	CHECK(cuDevicePrimaryCtxRelease(device));
	return memcmp(in, out, sizeof in) == 0 && ms > 0 ? 0 : 1;
}

#else

int main(void)
{
	puts("no CUDA toolkit here: skipped");
	return 77;
}

#endif
