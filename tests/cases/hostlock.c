/* hostlock: a host function needs a lock that the launching thread holds around its launches, as Python's callbacks
 * need the interpreter's lock. Natively it never stands. Says its longest standstill when its input ends. */
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "case.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic long called;

static void call_back(void *user)
{
	(void)user;
	pthread_mutex_lock(&lock);
	called++;
	pthread_mutex_unlock(&lock);
}

static void add_callback(struct ll_cu_stream *stream, ll_cu_result status, void *user)
{
	(void)stream, (void)status;
	call_back(user);
}

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin_ns(.param .u64 length)\n{\n\tret;\n}\n";

static void launch(struct ll_cu_function *kernel, struct ll_cu_stream *stream, uint64_t length_ns)
{
	void *words[] = {&length_ns};
	TRY(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, words, NULL));
}

static double now_s(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int main(void)
{
	struct pollfd input = {0, POLLIN, 0};
	struct ll_cu_module *module;
	struct ll_cu_function *kernel;
	ll_cu_deviceptr block;
	double worst = 0;
	long rounds = 0;
	begin();
	struct ll_cu_stream *first = new_stream(), *second = new_stream();
	TRY(cuModuleLoadData(&module, ptx));
	TRY(cuModuleGetFunction(&kernel, module, "spin_ns"));
	TRY(cuMemAlloc_v2(&block, 8 * MIB));
	for (; poll(&input, 1, 0) == 0; rounds++) {
		double since = now_s();
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 8; i++) {
			launch(kernel, first, 200000);
			if (i % 2)
				TRY(cuLaunchHostFunc(first, call_back, NULL));
			else
				TRY(cuStreamAddCallback(first, add_callback, NULL, 0));
			usleep(50); /* the lock is held for a part of the time that can be hit */
			launch(kernel, second, 100000);
		}
		pthread_mutex_unlock(&lock);
		TRY(cuStreamSynchronize(first));
		TRY(cuStreamSynchronize(second));
		since = now_s() - since;
		worst = since > worst ? since : worst;
		if (rounds == 10) {
			puts("full");
			fflush(stdout);
		}
	}
	printf("rounds %ld, callbacks %ld, longest standstill %.2f s\n", rounds, (long)called, worst);
	return called == rounds * 8 ? 0 : 1;
}
