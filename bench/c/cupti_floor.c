/*
 * cupti_floor.c - the least that can be asked of CUPTI: records of kernels, in buffers that are used again and that
 * nobody reads. In place of libloadline-trace.so (LOADLINE_TRACE_LIBRARY) under `loadline trace --by cupti` it shows
 * what of the cost of a trace is CUPTI's own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/cupti.h"
#include "trace/trace.h"

enum { BUFFER_BYTES = 1024 * 1024, ALIGNMENT = 64, MOST_SPARE = 64 };

static struct {
	pthread_mutex_t lock;
	uint8_t *buffers[MOST_SPARE];
	unsigned count;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_most_records)
{
	void *buffer = NULL;
	pthread_mutex_lock(&spare.lock);
	if (spare.count)
		buffer = spare.buffers[--spare.count];
	pthread_mutex_unlock(&spare.lock);
	if (!buffer && posix_memalign(&buffer, ALIGNMENT, BUFFER_BYTES))
		buffer = NULL;
	*ret_buffer = buffer;
	*ret_bytes = buffer ? BUFFER_BYTES : 0;
	*ret_most_records = 0;
}

static void complete(struct ll_cu_context *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
	(void)context, (void)stream, (void)bytes, (void)valid_bytes;
	pthread_mutex_lock(&spare.lock);
	if (spare.count < MOST_SPARE) {
		spare.buffers[spare.count++] = buffer;
		buffer = NULL;
	}
	pthread_mutex_unlock(&spare.lock);
	free(buffer);
}

static bool begin(const char *path)
{
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library)
		return false;
	ll_cupti_result (*register_callbacks)(ll_cupti_request, ll_cupti_complete);
	ll_cupti_result (*enable)(uint32_t);
	*(void **)&register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
	*(void **)&enable = dlsym(library, "cuptiActivityEnable");
	return register_callbacks && enable && register_callbacks(request, complete) == LL_CUPTI_SUCCESS &&
	       enable(LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL) == LL_CUPTI_SUCCESS;
}

/* What the driver calls when it has loaded this (CUDA_INJECTION64_PATH). */
int InitializeInjection(void)
{
	static bool has_begun;
	if (!has_begun && !begin(getenv(LL_TRACE_CUPTI)))
		fprintf(stderr, "cupti_floor: no records of kernels\n");
	has_begun = true;
	return 1;
}
