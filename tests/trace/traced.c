/*
 * traced - a CUDA program for traces. Words, done in this order:
 *
 *     kernels=N:NS[:STREAMS]  N kernels of NS ns, in turn in so many streams of its own (0: the default stream)
 *     gap=NS                  sleeps NS after each kernel of what follows, once that has ended
 *     copies=N:BYTES          N copies to the card and back
 *     memsets=N:BYTES
 *     spin=NS                 computes on the host, and prints what part of that time it had a core
 *     sleep=NS
 *     io=NS                   waits as for a disk: as a vfork does, until its child has slept
 *     mangled=N:NS[:STREAMS]  the same, by a C++ name
 *     nccl=N:NS[:STREAMS]     the same, by a name that says that it communicates
 *     fork=COUNT              so many children, each of which does the words that follow; the parent waits, and ends
 *     end=exit|_exit|kill     how it ends: exit unless told
 *     hold=FILE               makes the file, and waits for a signal
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_launch.h"
#include "abi/cuda_memory.h"
#include "base/clock.h"

enum { STREAMS = 16 };

static struct functions {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
} cu;

static const struct {
	const char *symbol;
	size_t offset;
} slots[] = {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args)                                  \
	{#symbol, offsetof(struct functions, name)},
#include "abi/cuda.def"
};

static const char kernel[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
			     ".visible .entry work_ns(.param .u64 length)\n{\n\tret;\n}\n"
			     ".visible .entry _Z11work_nestedILi3EEvPf(.param .u64 length)\n{\n\tret;\n}\n"
			     ".visible .entry work_ns_nccl(.param .u64 length)\n{\n\tret;\n}\n";

static struct {
	bool is_ready;
	struct ll_cu_function *work, *mangled, *communicate;
	struct ll_cu_stream *streams[STREAMS];
	uint64_t gap_ns;
} program;

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		ll_cu_result status_ = (call);                                                                         \
		if (status_) {                                                                                         \
			fprintf(stderr, "%s: %d\n", #call, (int)status_);                                              \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		exit(1);
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		void *found = dlsym(library, slots[i].symbol);
		memcpy((char *)&cu + slots[i].offset, &found, sizeof found);
	}
}

static void begin(void)
{
	struct ll_cu_context *context;
	struct ll_cu_module *module;
	if (program.is_ready)
		return;
	program.is_ready = true;
	open_driver();
	TRY(cu.cuInit(0));
	TRY(cu.cuCtxCreate(&context, 0, 0));
	TRY(cu.cuModuleLoadData(&module, kernel));
	TRY(cu.cuModuleGetFunction(&program.work, module, "work_ns"));
	TRY(cu.cuModuleGetFunction(&program.mangled, module, "_Z11work_nestedILi3EEvPf"));
	TRY(cu.cuModuleGetFunction(&program.communicate, module, "work_ns_nccl"));
}

static void launch(struct ll_cu_function *function, uint64_t ns, struct ll_cu_stream *stream)
{
	void *params[] = {&ns};
	TRY(cu.cuLaunchKernel(function, 2, 3, 4, 32, 2, 1, 0, stream, params, NULL));
}

static void kernels(struct ll_cu_function *function, uint64_t count, uint64_t ns, uint64_t streams)
{
	for (uint64_t i = 0; i < streams; i++) {
		if (!program.streams[i])
			TRY(cu.cuStreamCreate(&program.streams[i], LL_CU_STREAM_NON_BLOCKING));
	}
	for (uint64_t i = 0; i < count; i++) {
		launch(function, ns, streams ? program.streams[i % streams] : NULL);
		if (program.gap_ns) {
			TRY(cu.cuCtxSynchronize());
			ll_sleep_until_ns(ll_now_ns() + program.gap_ns);
		}
	}
	TRY(cu.cuCtxSynchronize());
}

static void copies(uint64_t count, uint64_t bytes)
{
	ll_cu_deviceptr there;
	char *here = calloc(1, bytes);
	TRY(cu.cuMemAlloc(&there, bytes));
	for (uint64_t i = 0; i < count; i++) {
		TRY(cu.cuMemcpyHtoD(there, here, bytes));
		TRY(cu.cuMemcpyDtoH(here, there, bytes));
	}
	TRY(cu.cuMemFree(there));
	free(here);
}

static void memsets(uint64_t count, uint64_t bytes)
{
	ll_cu_deviceptr there;
	TRY(cu.cuMemAlloc(&there, bytes));
	for (uint64_t i = 0; i < count; i++)
		TRY(cu.cuMemsetD8Async(there, 1, bytes, NULL));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemFree(there));
}

static uint64_t cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * LL_NS_PER_S + (uint64_t)time.tv_nsec;
}

/* On a busy host it does not compute all the time: how much of it is printed. */
static void spin(uint64_t ns)
{
	uint64_t end_ns = ll_now_ns() + ns, before_ns = cpu_ns();
	while (ll_now_ns() < end_ns)
		;
	printf("computed %.3f\n", (double)(cpu_ns() - before_ns) / (double)ns);
}

/* In the memory of its parent, which waits for it. */
static int sleep_and_leave(void *data)
{
	nanosleep(data, NULL);
	_exit(0);
}

static void wait_as_for_a_disk(uint64_t ns)
{
	static char stack[64 * 1024] __attribute__((aligned(64)));
	struct timespec rest = {(time_t)(ns / LL_NS_PER_S), (long)(ns % LL_NS_PER_S)};
	pid_t pid = clone(sleep_and_leave, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &rest);
	waitpid(pid, NULL, 0);
}

static void hold(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	for (;;)
		pause();
}

/* Returns in each child; the parent ends with the number of those that failed. */
static void multiply(uint64_t count)
{
	int failures = 0, status;
	for (uint64_t i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid == 0)
			return;
		failures += pid < 0;
	}
	while (wait(&status) > 0)
		failures += status != 0;
	exit(failures);
}

static void end(const char *how)
{
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	exit(0);
}

static void act(const char *word)
{
	char name[16] = "";
	unsigned long long a = 0, b = 0, c = 0;
	sscanf(word, "%15[a-z]=%llu:%llu:%llu", name, &a, &b, &c);
	const char *text = strchr(word, '=') ? strchr(word, '=') + 1 : "";
	if (strcmp(name, "fork") == 0) {
		multiply(a);
		return;
	}
	begin();
	if (strcmp(name, "kernels") == 0)
		kernels(program.work, a, b, c < STREAMS ? c : STREAMS);
	else if (strcmp(name, "nccl") == 0)
		kernels(program.communicate, a, b, c < STREAMS ? c : STREAMS);
	else if (strcmp(name, "mangled") == 0)
		kernels(program.mangled, a, b, c < STREAMS ? c : STREAMS);
	else if (strcmp(name, "gap") == 0)
		program.gap_ns = a;
	else if (strcmp(name, "copies") == 0)
		copies(a, b);
	else if (strcmp(name, "memsets") == 0)
		memsets(a, b);
	else if (strcmp(name, "spin") == 0)
		spin(a);
	else if (strcmp(name, "sleep") == 0)
		ll_sleep_until_ns(ll_now_ns() + a);
	else if (strcmp(name, "io") == 0)
		wait_as_for_a_disk(a);
	else if (strcmp(name, "hold") == 0)
		hold(text);
	else if (strcmp(name, "end") == 0)
		end(text);
	else
		exit(2);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		act(argv[i]);
	return 0;
}
