/*
 * launcher MS [COUNT]: a CUDA program that launches so many kernels of so many ms; without a number for ever. It keeps
 * 16 to 32 of them queued, so that it has work while its host waits for a busy machine.
 * launcher wait MS [COUNT]: it also waits after each launch, for a stream that has nothing to do. So it counts as a
 * program that waits for each of its launches, and its queue does not run dry.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"

static struct {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
} cu;

static const char kernel[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
			     ".visible .entry work_ns(.param .u64 length)\n{\n\tret;\n}\n";

static int open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
	if (!library)
		return -1;
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args)                                  \
                                                                                                                       \
	found = dlsym(library, #symbol);                                                                               \
	memcpy(&cu.name, &found, sizeof found);
#include "abi/cuda.def"
	return 0;
}

static struct ll_cu_stream *idle; /* NULL: the program does not wait */

enum { BATCH = 16 };

/* Launches a batch, and waits until the one before it is done: that is the other event. */
static int launch_batch(struct ll_cu_function *work, void **params, int count, struct ll_cu_event *const events[2],
			int turn)
{
	for (int i = 0; i < count; i++) {
		if (cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) ||
		    (idle && cu.cuStreamSynchronize(idle)))
			return -1;
	}
	return cu.cuEventRecord(events[turn % 2], NULL) || cu.cuEventSynchronize(events[(turn + 1) % 2]) ? -1 : 0;
}

int main(int argc, char **argv)
{
	bool waits = argc > 1 && !strcmp(argv[1], "wait");
	argc -= waits, argv += waits;
	uint64_t length_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 1000000;
	long left = argc > 2 ? atol(argv[2]) : -1;
	void *params[] = {&length_ns};
	struct ll_cu_context *context;
	struct ll_cu_module *module;
	struct ll_cu_function *work;
	struct ll_cu_event *events[2];
	if (open_driver() || cu.cuInit(0) || cu.cuCtxCreate(&context, 0, 0) || cu.cuModuleLoadData(&module, kernel) ||
	    cu.cuModuleGetFunction(&work, module, "work_ns") || cu.cuEventCreate(&events[0], 0) ||
	    cu.cuEventCreate(&events[1], 0))
		return 1;
	if (waits && cu.cuStreamCreate(&idle, LL_CU_STREAM_NON_BLOCKING))
		return 1;
	for (int turn = 0; left; turn++) {
		int count = left < 0 || left > BATCH ? BATCH : (int)left;
		if (launch_batch(work, params, count, events, turn))
			return 1;
		left -= left > 0 ? count : 0;
	}
	return cu.cuCtxSynchronize() ? 1 : 0;
}
