/* contexts: a program fills its limit and then makes contexts, resets the primary one, lets its stacks and heaps grow,
 * and makes contexts in eight threads at once. */
#include <pthread.h>

#include "case.h"

enum { THREADS = 8 };

static struct ll_cu_context *primary;

static void *churn(void *arg)
{
	for (int i = 0; i < 10; i++) {
		struct ll_cu_context *context;
		ll_cu_deviceptr address;
		if (!MADE(cuCtxCreate_v2(&context, 0, 0)))
			continue;
		MADE(cuMemAlloc_v2(&address, 200 * MIB));
		MADE(cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 300 * MIB));
		TRY(cuCtxDestroy_v2(context));
	}
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];
	ll_cu_deviceptr address;
	primary = begin();
	/* Heaps and stacks are asked for again and again, in different sizes. */
	for (size_t i = 1; i <= 8; i++) {
		MADE(cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, i * 4096));
		MADE(cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, i * 512 * MIB));
		MADE(cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, i * 64 * MIB));
	}
	fill();
	TRY(cuDevicePrimaryCtxReset_v2(0));
	primary = begin();
	MADE(cuMemAlloc_v2(&address, 300 * MIB));
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, churn, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	TRY(cuCtxSetCurrent(primary));
	full();
	return 0;
}
