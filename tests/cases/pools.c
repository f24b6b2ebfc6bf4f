/* pools: two threads with a stream each use two pools, which get gaps, while a third one sets the threshold to nothing
 * and to all, and trims. */
#include <pthread.h>

#include "case.h"

enum { HELD = 24, ROUNDS = 600 };

static struct ll_cu_context *context;
static struct ll_cu_mem_pool *pools[2];
static _Atomic int working = 2;

static void *use(void *arg)
{
	ll_cu_deviceptr held[HELD] = {0};
	unsigned seed = (unsigned)(uintptr_t)arg;
	TRY(cuCtxSetCurrent(context));
	struct ll_cu_stream *stream = new_stream(), *other = new_stream();
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1103515245 + 12345;
		ll_cu_deviceptr *one = &held[seed / 65536 % HELD];
		if (*one)
			TRY(cuMemFreeAsync(*one, seed & 4096 ? other : stream));
		*one = 0;
		if (!MADE(cuMemAllocFromPoolAsync(one, (1 + seed / 7919 % 150) * MIB - 1000, pools[seed / 512 % 2],
						  seed & 8192 ? other : stream)))
			*one = 0;
		/* What the one stream has given back is the other's only then. */
		TRY(cuStreamSynchronize(stream));
		TRY(cuStreamSynchronize(other));
	}
	working--;
	return NULL;
}

int main(void)
{
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	pthread_t threads[2];
	uint64_t all = UINT64_MAX, none = 0;
	context = begin();
	TRY(cuDeviceGetDefaultMemPool(&pools[0], 0));
	TRY(cuMemPoolCreate(&pools[1], &props));
	for (uintptr_t i = 0; i < 2; i++)
		NEED(pthread_create(&threads[i], NULL, use, (void *)(i + 1)) == 0);
	for (unsigned i = 0; working; i++) {
		TRY(cuMemPoolSetAttribute(pools[i % 2], LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, i & 2 ? &none : &all));
		if (i % 8 == 0)
			TRY(cuMemPoolTrimTo(pools[i / 8 % 2], i & 64 ? 100 * MIB : 0));
		usleep(500);
	}
	for (int i = 0; i < 2; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	full();
	return 0;
}
