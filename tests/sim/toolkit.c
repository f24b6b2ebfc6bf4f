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

int main(void)
{
	enum { N = 1 << 16 };
	static int in[N], out[N];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction add;
	CUstream stream;
	CUevent start, stop;
	CUdeviceptr a, b, counter;
	CUuuid uuid;
	size_t bytes, total, free_bytes;
	char name[100];
	int sms, version, n = N;
	float ms;
	CHECK(cuInit(0));
	CHECK(cuDriverGetVersion(&version));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetName(name, sizeof name, device));
	CHECK(cuDeviceGetUuid(&uuid, device));
	CHECK(cuDeviceTotalMem(&total, device));
	CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	printf("%s, %d SMs, %zu MiB, CUDA %d\n", name, sms, total >> 20, version);
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxPushCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
	CHECK(cuMemsetD32(counter, 3, 1));
	CHECK(cuMemAlloc(&a, sizeof in));
	CHECK(cuMemAlloc(&b, sizeof in));
	CHECK(cuMemGetInfo(&free_bytes, &total));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
	for (int i = 0; i < N; i++)
		in[i] = i * 3;
	CHECK(cuEventRecord(start, stream));
	CHECK(cuMemcpyHtoDAsync(a, in, sizeof in, stream));
	void *params[] = {&a, &b, &n};
	CHECK(cuLaunchKernel(add, N / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
	CHECK(cuMemcpyDtoDAsync(b, a, sizeof in, stream));
	CHECK(cuEventRecord(stop, stream));
	CHECK(cuMemcpyDtoHAsync(out, b, sizeof out, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuEventElapsedTime(&ms, start, stop));
	printf("%.3f ms on the card\n", (double)ms);
	int is_right = memcmp(in, out, sizeof in) == 0 && ms > 0;
	CHECK(cuMemFree(a));
	CHECK(cuMemFree(b));
	CHECK(cuEventDestroy(start));
	CHECK(cuEventDestroy(stop));
	CHECK(cuStreamDestroy(stream));
	CHECK(cuModuleUnload(module));
	CHECK(cuCtxPopCurrent(&context));
	CHECK(cuDevicePrimaryCtxRelease(device));
	return is_right ? 0 : 1;
}

#else

int main(void)
{
	puts("no CUDA toolkit here: skipped");
	return 77;
}

#endif
