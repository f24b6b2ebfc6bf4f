/*
 * causes PHASE:MS...: a CUDA program that goes through these phases again and again, each so long by the clock, for
 * the tests of `loadline explain`.
 *
 *     work    it keeps up to 4 kernels of 20 ms queued: so long that a busy host's lateness is little beside them
 *     host    it launches a kernel of 0.1 ms each 100 ms, and waits for it
 *     copies  it copies 8 MiB to the card, again and again
 *     feed    the same, asynchronously, with two kernels of 0.1 ms behind each copy
 *     compute it computes on the host
 *     idle    it does nothing
 *
 * A phase "once" ends the first round: what stands before it is done once.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"

static struct {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
} cu;

/* One for each length: beside another program a kernel is charged by the shortest of its launches. */
static const char kernels[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry work_ns_long(.param .u64 length)\n{\n\tret;\n}\n"
			      ".visible .entry work_ns_brief(.param .u64 length)\n{\n\tret;\n}\n";

enum { QUEUED = 4, COPY_BYTES = 8 << 20, MS_NS = 1000000 };

static struct ll_cu_function *work, *brief;
static struct ll_cu_event *ends[QUEUED];
static ll_cu_deviceptr memory;
static void *host;

static int open_card(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
	struct ll_cu_context *context;
	struct ll_cu_module *module;
	if (!library)
		return -1;
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args)                                  \
                                                                                                                       \
	found = dlsym(library, #symbol);                                                                               \
	memcpy(&cu.name, &found, sizeof found);
#include "abi/cuda.def"
	for (int i = 0; i < QUEUED; i++)
		ends[i] = NULL;
	if (cu.cuInit(0) || cu.cuCtxCreate(&context, 0, 0) || cu.cuModuleLoadData(&module, kernels) ||
	    cu.cuModuleGetFunction(&work, module, "work_ns_long") ||
	    cu.cuModuleGetFunction(&brief, module, "work_ns_brief") || cu.cuMemAlloc(&memory, COPY_BYTES) ||
	    cu.cuMemHostAlloc(&host, COPY_BYTES, 0))
		return -1;
	for (int i = 0; i < QUEUED; i++) {
		if (cu.cuEventCreate(&ends[i], LL_CU_EVENT_DISABLE_TIMING))
			return -1;
	}
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS_NS + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec rest = {(time_t)(ns / (1000 * MS_NS)), (long)(ns % (1000 * MS_NS))};
	nanosleep(&rest, NULL);
}

static int launch(struct ll_cu_function *kernel, uint64_t length_ns)
{
	void *params[] = {&length_ns};
	return cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) ? -1 : 0;
}

static int do_work(unsigned number)
{
	struct ll_cu_event *end = ends[number % QUEUED];
	return cu.cuEventSynchronize(end) || launch(work, 20 * MS_NS) || cu.cuEventRecord(end, NULL) ? -1 : 0;
}

static int do_feed(unsigned number)
{
	struct ll_cu_event *end = ends[number % QUEUED];
	return cu.cuEventSynchronize(end) || cu.cuMemcpyHtoDAsync(memory, host, COPY_BYTES, NULL) ||
		       launch(brief, MS_NS / 10) || launch(work, MS_NS / 10) || cu.cuEventRecord(end, NULL)
		   ? -1
		   : 0;
}

static int do_phase(const char *name, uint64_t end_ns)
{
	int rc = 0;
	for (unsigned number = 0; !rc && now_ns() < end_ns; number++) {
		if (strcmp(name, "work") == 0) {
			rc = do_work(number);
		} else if (strcmp(name, "host") == 0) {
			rc = launch(brief, MS_NS / 10) || cu.cuCtxSynchronize() ? -1 : 0;
			sleep_ns(100 * MS_NS);
		} else if (strcmp(name, "copies") == 0) {
			rc = cu.cuMemcpyHtoD(memory, host, COPY_BYTES) ? -1 : 0;
		} else if (strcmp(name, "feed") == 0) {
			rc = do_feed(number);
		} else if (strcmp(name, "idle") == 0) {
			sleep_ns(end_ns - now_ns());
		}
	}
	return rc || cu.cuCtxSynchronize() ? -1 : 0;
}

int main(int argc, char **argv)
{
	int first = 1;
	if (argc < 2 || open_card())
		return 1;
	for (;;) {
		for (int i = first; i < argc; i++) {
			char name[16];
			unsigned long ms = 0;
			if (strcmp(argv[i], "once") == 0)
				first = i + 1;
			else if (sscanf(argv[i], "%15[a-z]:%lu", name, &ms) != 2 ||
				 do_phase(name, now_ns() + ms * MS_NS))
				return 1;
		}
	}
}
