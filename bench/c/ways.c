/*
 * ways.c - a program that comes to the driver by one of the ways that programs use, and tells how much memory it sees.
 *
 *     ways WAY BYTES [LIBRARY]
 *
 *   dlsym         the handle from dlopen          path          the same, LIBRARY being a path
 *   default       RTLD_DEFAULT, library global    deepbind      dlopen with RTLD_DEEPBIND
 *   lazy          dlopen with RTLD_LAZY           thread        all of it in a second thread
 *   address       cuGetProcAddress of before 12   address-v2    the one of today
 *   address-self  cuGetProcAddress found by itself, with per-thread streams asked for
 *   fork, exec    in a forked child, after exec   shell         by a shell
 *   nvml          NVML alone, CUDA never touched  nvml-v2       its second version
 *   linked        against the library: ways_linked alone
 *
 * One JSON line: the card's memory as it is told, and what the driver answers to a request of BYTES and to one of 1 MiB
 * (2 is out of memory; null: not asked):
 *
 *     {"event":"way","way":"dlsym","total_bytes":8589934592,"beyond":2,"within":0}
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/library.h"

enum { WITHIN_BYTES = 1 << 20, CUDA_12 = 12000, CUDA_11_3 = 11030, PER_THREAD_STREAMS = 2 };

/* What of the driver is used, whichever way it is found. */
struct calls {
	__typeof__(((struct ll_cuda *)0)->cuInit) init;
	__typeof__(((struct ll_cuda *)0)->cuDeviceGet) device_get;
	__typeof__(((struct ll_cuda *)0)->cuDevicePrimaryCtxRetain) context_retain;
	__typeof__(((struct ll_cuda *)0)->cuCtxSetCurrent) context_set;
	__typeof__(((struct ll_cuda *)0)->cuMemGetInfo) memory_info;
	__typeof__(((struct ll_cuda *)0)->cuMemAlloc) alloc;
};

struct way {
	const char *name;
	int flags; /* of dlopen */
	int (*run)(const struct way *way);
};

static uint64_t beyond_bytes;
static const char *library = "libcuda.so.1";
static char **arguments;

static int fail(const char *what)
{
	fprintf(stderr, "ways: %s\n", what);
	return 1;
}

static int tell(const char *way, uint64_t total_bytes, int beyond, int within)
{
	printf("{\"event\":\"way\",\"way\":\"%s\",\"total_bytes\":%llu,\"beyond\":%d,\"within\":%d}\n", way,
	       (unsigned long long)total_bytes, beyond, within);
	return 0;
}

static int use(const char *way, const struct calls *calls)
{
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	ll_cu_device device;
	size_t free_bytes, total_bytes;
	if (!calls->init || !calls->device_get || !calls->context_retain || !calls->context_set ||
	    !calls->memory_info || !calls->alloc)
		return fail("a function was not found");
	if (calls->init(0) || calls->device_get(&device, 0) || calls->context_retain(&context, device) ||
	    calls->context_set(context))
		return fail("no context");
	if (calls->memory_info(&free_bytes, &total_bytes))
		return fail("cuMemGetInfo");
	int beyond = (int)calls->alloc(&address, beyond_bytes);
	return tell(way, total_bytes, beyond, (int)calls->alloc(&address, WITHIN_BYTES));
}

/* ---- by dlsym ---- */

static void find(void *handle, const char *symbol, void *slot)
{
	void *address = dlsym(handle, symbol);
	memcpy(slot, &address, sizeof address);
}

static int use_symbols(const char *way, void *handle)
{
	struct calls calls;
	find(handle, "cuInit", &calls.init);
	find(handle, "cuDeviceGet", &calls.device_get);
	find(handle, "cuDevicePrimaryCtxRetain", &calls.context_retain);
	find(handle, "cuCtxSetCurrent", &calls.context_set);
	find(handle, "cuMemGetInfo_v2", &calls.memory_info);
	find(handle, "cuMemAlloc_v2", &calls.alloc);
	return use(way, &calls);
}

static int by_dlsym(const struct way *way)
{
	void *handle = dlopen(library, way->flags);
	return handle ? use_symbols(way->name, handle) : fail(dlerror());
}

static int by_default(const struct way *way)
{
	return dlopen(library, way->flags) ? use_symbols(way->name, RTLD_DEFAULT) : fail(dlerror());
}

static void *in_thread(void *argument)
{
	return by_dlsym(argument) ? argument : NULL;
}

static int by_thread(const struct way *way)
{
	struct way copy = *way;
	pthread_t thread;
	void *failed;
	if (pthread_create(&thread, NULL, in_thread, &copy) || pthread_join(thread, &failed))
		return fail("no thread");
	return failed != NULL;
}

/* ---- by cuGetProcAddress ---- */

typedef __typeof__(((struct ll_cuda *)0)->cuGetProcAddress) proc_address_v2;
typedef __typeof__(((struct ll_cuda *)0)->cuGetProcAddress_v1) proc_address_v1;

/* One of them is NULL. */
struct asker {
	proc_address_v1 v1;
	proc_address_v2 v2;
	uint64_t flags;
};

static void ask(const struct asker *asker, const char *name, void *slot)
{
	enum ll_cu_proc_address_result result;
	void *address = NULL;
	ll_cu_result status = asker->v2 ? asker->v2(name, &address, CUDA_12, asker->flags, &result)
					: asker->v1(name, &address, CUDA_11_3, asker->flags);
	if (status != LL_CUDA_SUCCESS)
		address = NULL;
	memcpy(slot, &address, sizeof address);
}

static int use_addresses(const char *way, const struct asker *asker)
{
	struct calls calls;
	if (!asker->v1 && !asker->v2)
		return fail("no cuGetProcAddress");
	ask(asker, "cuInit", &calls.init);
	ask(asker, "cuDeviceGet", &calls.device_get);
	ask(asker, "cuDevicePrimaryCtxRetain", &calls.context_retain);
	ask(asker, "cuCtxSetCurrent", &calls.context_set);
	ask(asker, "cuMemGetInfo", &calls.memory_info);
	ask(asker, "cuMemAlloc", &calls.alloc);
	return use(way, &calls);
}

static int by_address(const struct way *way)
{
	struct asker asker = {0};
	void *handle = dlopen(library, way->flags);
	if (!handle)
		return fail(dlerror());
	find(handle, "cuGetProcAddress", &asker.v1);
	return use_addresses(way->name, &asker);
}

static int by_address_v2(const struct way *way)
{
	struct asker asker = {0};
	void *handle = dlopen(library, way->flags);
	if (!handle)
		return fail(dlerror());
	find(handle, "cuGetProcAddress_v2", &asker.v2);
	return use_addresses(way->name, &asker);
}

static int by_address_self(const struct way *way)
{
	struct asker first = {0}, asker = {.flags = PER_THREAD_STREAMS};
	void *handle = dlopen(library, way->flags);
	if (!handle)
		return fail(dlerror());
	find(handle, "cuGetProcAddress_v2", &first.v2);
	if (first.v2)
		ask(&first, "cuGetProcAddress", &asker.v2);
	return use_addresses(way->name, &asker);
}

/* ---- by another process ---- */

static int wait_for(pid_t pid)
{
	int status;
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : fail("no child");
}

static int by_fork(const struct way *way)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		exit(by_dlsym(way));
	return wait_for(pid);
}

static int by_exec(const struct way *way)
{
	(void)way;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "ways", "dlsym", arguments[2], library, (char *)NULL);
		exit(127);
	}
	return wait_for(pid);
}

static int by_shell(const struct way *way)
{
	char path[512], command[1200];
	(void)way;
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
	if (length < 0)
		return fail("/proc/self/exe");
	path[length] = '\0';
	snprintf(command, sizeof command, "'%s' dlsym %llu '%s'; exit $?", path, (unsigned long long)beyond_bytes,
		 library);
	int status = system(command);
	return status == -1 || !WIFEXITED(status) ? fail("no shell") : WEXITSTATUS(status);
}

/* ---- NVML ---- */

/* What both versions of nvmlDeviceGetMemoryInfo fill. */
union reading {
	struct {
		uint64_t total, free, used;
	} v1;
	struct ll_nvml_memory_v2 v2;
};

static int by_nvml(const struct way *way)
{
	bool is_second = strcmp(way->name, "nvml-v2") == 0;
	union reading reading;
	struct ll_nvml_device *card;
	ll_nvml_result (*init)(void), (*get_card)(unsigned, struct ll_nvml_device **);
	ll_nvml_result (*read_memory)(struct ll_nvml_device *, void *);
	void *handle = dlopen("libnvidia-ml.so.1", way->flags);
	if (!handle)
		return fail(dlerror());
	find(handle, "nvmlInit_v2", &init);
	find(handle, "nvmlDeviceGetHandleByIndex_v2", &get_card);
	find(handle, is_second ? "nvmlDeviceGetMemoryInfo_v2" : "nvmlDeviceGetMemoryInfo", &read_memory);
	memset(&reading, 0, sizeof reading);
	if (is_second)
		reading.v2.version = LL_NVML_MEMORY_V2;
	if (!init || !get_card || !read_memory || init() || get_card(0, &card) || read_memory(card, &reading))
		return fail("NVML");
	printf("{\"event\":\"way\",\"way\":\"%s\",\"total_bytes\":%llu,\"beyond\":null,\"within\":null}\n", way->name,
	       (unsigned long long)(is_second ? reading.v2.total_bytes : reading.v1.total));
	return 0;
}

/* ---- linked ---- */

#ifdef WAYS_LINKED
extern ll_cu_result cuInit(unsigned int flags);
extern ll_cu_result cuDeviceGet(ll_cu_device *ret_device, int ordinal);
extern ll_cu_result cuDevicePrimaryCtxRetain(struct ll_cu_context **ret_context, ll_cu_device device);
extern ll_cu_result cuCtxSetCurrent(struct ll_cu_context *context);
extern ll_cu_result cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
extern ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes);

static int by_link(const struct way *way)
{
	struct calls calls = {cuInit,          cuDeviceGet,     cuDevicePrimaryCtxRetain,
			      cuCtxSetCurrent, cuMemGetInfo_v2, cuMemAlloc_v2};
	return use(way->name, &calls);
}
#endif

static const struct way ways[] = {
    {"dlsym", RTLD_NOW, by_dlsym},
    {"path", RTLD_NOW, by_dlsym},
    {"default", RTLD_NOW | RTLD_GLOBAL, by_default},
    {"deepbind", RTLD_NOW | RTLD_DEEPBIND, by_dlsym},
    {"lazy", RTLD_LAZY, by_dlsym},
    {"thread", RTLD_NOW, by_thread},
    {"address", RTLD_NOW, by_address},
    {"address-v2", RTLD_NOW, by_address_v2},
    {"address-self", RTLD_NOW, by_address_self},
    {"fork", RTLD_NOW, by_fork},
    {"exec", RTLD_NOW, by_exec},
    {"shell", RTLD_NOW, by_shell},
    {"nvml", RTLD_NOW, by_nvml},
    {"nvml-v2", RTLD_NOW, by_nvml},
#ifdef WAYS_LINKED
    {"linked", 0, by_link},
#endif
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return fail("usage: see the beginning of bench/c/ways.c") + 1;
	arguments = argv;
	beyond_bytes = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		library = argv[3];
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (strcmp(ways[i].name, argv[1]) == 0)
			return ways[i].run(&ways[i]);
	}
	return fail("no such way") + 1;
}
