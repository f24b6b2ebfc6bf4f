/*
 * A foreign program: it launches a kernel, waits for it, sleeps, and repeats that. It uses libcuda like any program,
 * and ends like one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "simctl/simctl_busy.h"

static const char kernel_text[] = ".version 7.4\n"
				  ".target sm_50\n"
				  ".address_size 64\n"
				  ".visible .entry spin_ns(.param .u64 length_ns, .param .u64 record,\n"
				  "	.param .u64 late_after, .param .u64 gap_limit, .param .u64 epoch_seq)\n"
				  "{\n"
				  "	ret;\n"
				  "}\n"
				  ".visible .entry work_ns(.param .u64 length_ns)\n"
				  "{\n"
				  "	ret;\n"
				  "}\n";

struct options {
	uint64_t card, kernel_ns, sleep_ns, for_ns, count, blocks, threads, memory_bytes;
	bool is_work; /* the kernel needs its length on the card; else it ends by the clock */
};

/* The record that the kernel writes (src/hold/payload.h). */
struct record {
	uint64_t start_ns, end_ns, gap_ns;
	uint32_t flags, sequence;
};

struct functions {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
};

static const struct {
	const char *symbol;
	size_t offset;
} rows[] = {
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args)                                  \
	{#symbol, offsetof(struct functions, name)},
#include "abi/cuda.def"
};

static volatile sig_atomic_t is_stopped;

static void stop_loop(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

static int parse_options(int count, char **words, struct options *options, struct ll_err *err)
{
	if (count < 1)
		return ll_err_set(err, -EINVAL, "busy: no card named");
	int rc = ll_parse_uint(words[0], 0, 63, &options->card, err), first = 1;
	double percent;
	if (rc == 0 && count > 1 && ll_parse_percent(words[1], &percent, NULL) == 0) {
		if (!(percent > 0 && percent <= 100))
			return ll_err_set(err, -EINVAL, "busy: '%s': not between 0 and 100", words[1]);
		options->kernel_ns = (uint64_t)(percent / 100 * 10e6);
		options->sleep_ns = 10 * LL_NS_PER_MS - options->kernel_ns;
		first = 2;
	}
	for (int i = first; rc == 0 && i < count; i += 2) {
		const char *value = i + 1 < count ? words[i + 1] : "";
		bool is_work = strcmp(words[i], "work") == 0;
		options->is_work |= is_work;
		if (is_work || strcmp(words[i], "kernel") == 0)
			rc = ll_parse_duration(value, &options->kernel_ns, err);
		else if (strcmp(words[i], "sleep") == 0)
			rc = ll_parse_duration(value, &options->sleep_ns, err);
		else if (strcmp(words[i], "for") == 0)
			rc = ll_parse_duration(value, &options->for_ns, err);
		else if (strcmp(words[i], "count") == 0)
			rc = ll_parse_uint(value, 1, UINT64_MAX, &options->count, err);
		else if (strcmp(words[i], "blocks") == 0)
			rc = ll_parse_uint(value, 1, INT32_MAX, &options->blocks, err);
		else if (strcmp(words[i], "threads") == 0)
			rc = ll_parse_uint(value, 1, 1024, &options->threads, err);
		else if (strcmp(words[i], "memory") == 0)
			rc = ll_parse_bytes(value, &options->memory_bytes, err);
		else
			rc = ll_err_set(err, -EINVAL, "busy: '%s': not an option", words[i]);
	}
	return rc;
}

/* Opens the library beside this program, so that it works from any folder. */
static void *open_library(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
	char *slash = n > 0 ? (path[n] = '\0', strrchr(path, '/')) : NULL;
	if (!slash)
		return NULL;
	memcpy(slash, "/libcuda.so.1", 14);
	void *library = dlopen(path, RTLD_NOW);
	return library ? library : dlopen("libcuda.so.1", RTLD_NOW);
}

static int load_functions(struct functions *cu, struct ll_err *err)
{
	void *library = open_library();
	if (!library)
		return ll_err_set(err, -ENODEV, "busy: %s", dlerror());
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		void *found = dlsym(library, rows[i].symbol);
		memcpy((char *)cu + rows[i].offset, &found, sizeof found);
	}
	return 0;
}

static int call_failed(const struct functions *cu, const char *what, ll_cu_result status, struct ll_err *err)
{
	const char *name = "?";
	if (cu->cuGetErrorName)
		cu->cuGetErrorName(status, &name);
	return ll_err_set(err, -EIO, "busy: %s: %s (%d)", what, name, (int)status);
}

#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		ll_cu_result status_ = cu->call;                                                                       \
		if (status_)                                                                                           \
			return call_failed(cu, #call, status_, err);                                                   \
	} while (0)

static int run_loop(const struct functions *cu, const struct options *options, struct ll_cu_function *function,
		    struct ll_cu_stream *stream, volatile struct record *record, struct ll_err *err)
{
	uint64_t begun_ns = ll_now_ns(), launches = 0, first_start_ns = 0, late = 0, limit = 0;
	uint64_t length_ns = options->kernel_ns, address = (uintptr_t)record;
	while (!is_stopped && launches < options->count && ll_now_ns() - begun_ns < options->for_ns) {
		uint64_t epoch_seq = UINT64_C(1) << 32 | (uint32_t)(launches + 1);
		void *params[] = {&length_ns, &address, &late, &limit, &epoch_seq};
		TRY(cuLaunchKernel(function, (unsigned)options->blocks, 1, 1, (unsigned)options->threads, 1, 1, 0,
				   stream, params, NULL));
		TRY(cuStreamSynchronize(stream));
		if (launches++ == 0)
			first_start_ns = record->start_ns;
		if (options->sleep_ns)
			ll_sleep_until_ns(ll_now_ns() + options->sleep_ns);
	}
	printf("{\"launches\":%llu,\"seconds\":%.3f,\"first_start_ns\":%llu,\"last_end_ns\":%llu}\n",
	       (unsigned long long)launches, (double)(ll_now_ns() - begun_ns) * 1e-9,
	       (unsigned long long)first_start_ns, (unsigned long long)record->end_ns);
	return 0;
}

int simctl_busy(int count, char **words, struct ll_err *err)
{
	struct options options = {
	    .kernel_ns = 2 * LL_NS_PER_MS,
	    .for_ns = UINT64_MAX,
	    .count = UINT64_MAX,
	    .blocks = 1,
	    .threads = 32,
	};
	static struct functions functions;
	const struct functions *cu = &functions;
	struct ll_cu_context *context;
	struct ll_cu_module *module;
	struct ll_cu_function *function;
	struct ll_cu_stream *stream;
	ll_cu_deviceptr memory = 0;
	void *record;
	int rc = parse_options(count, words, &options, err);
	if (rc == 0)
		rc = load_functions(&functions, err);
	if (rc < 0)
		return rc;
	signal(SIGTERM, stop_loop);
	signal(SIGINT, stop_loop);
	TRY(cuInit(0));
	TRY(cuCtxCreate(&context, 0, (ll_cu_device)options.card));
	TRY(cuModuleLoadData(&module, kernel_text));
	TRY(cuModuleGetFunction(&function, module, options.is_work ? "work_ns" : "spin_ns"));
	TRY(cuStreamCreate(&stream, LL_CU_STREAM_NON_BLOCKING));
	TRY(cuMemHostAlloc(&record, sizeof(struct record), LL_CU_MEMHOSTALLOC_DEVICEMAP));
	if (options.memory_bytes)
		TRY(cuMemAlloc(&memory, options.memory_bytes));
	/* A script that started this program may continue after this line. */
	printf("busy: pid %d on card %d\n", (int)getpid(), (int)options.card);
	fflush(stdout);
	rc = run_loop(cu, &options, function, stream, record, err);
	if (memory) /* before the context, whose end takes a while */
		cu->cuMemFree(memory);
	cu->cuCtxDestroy(context);
	return rc;
}
