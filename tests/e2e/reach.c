/*
 * reach WAY MIB_EACH MAX_COUNT: a program that is linked to no driver. It allocates until it is refused, and prints
 * what it got and how large NVML says that the card is:
 *
 *     allocated_mib 1408 last 2 card_mib 2048
 *
 * WAY is how it finds the driver's functions:
 *
 *     dlsym           dlopen and dlsym
 *     NAME@HANDLE     the same by a dlsym that it found under that name: dlsym@libc.so.6, dlsym@default, dlsym@next
 *     dlvsym@HANDLE   the same by a dlsym that dlvsym found so
 *     dlvsym@dlsym@HANDLE   the same, with a dlvsym that was found so
 *     proc1, proc2    by the two versions of cuGetProcAddress, as the CUDA runtime does
 *     proc1@proc2     by the first version, which the second one found
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"

typedef void *(*find_fn)(void *handle, const char *name);
typedef void *(*find_version_fn)(void *handle, const char *name, const char *version);

static find_fn find = dlsym;
static find_version_fn find_version = dlvsym;
static void *driver;
static __typeof__(&cuGetProcAddress) proc1;
static __typeof__(&cuGetProcAddress_v2) proc2;

static void *handle_named(const char *name)
{
	if (strcmp(name, "default") == 0)
		return RTLD_DEFAULT;
	return strcmp(name, "next") == 0 ? RTLD_NEXT : dlopen(name, RTLD_LAZY);
}

static void *with_version(void *handle, const char *name)
{
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof versions / sizeof versions[0]; i++)
		found = find_version(handle, name, versions[i]);
	return found;
}

#define TAKE(function, address)                                                                                        \
	do {                                                                                                           \
		void *address_ = (address);                                                                            \
		if (!address_)                                                                                         \
			return -1;                                                                                     \
		memcpy(&(function), &address_, sizeof address_);                                                       \
	} while (0)

static int take_way(const char *way)
{
	const char *handle = strrchr(way, '@');
	if (strncmp(way, "proc", 4) == 0) {
		TAKE(proc2, dlsym(driver, "cuGetProcAddress_v2"));
		if (strcmp(way, "proc1@proc2") == 0) {
			void *found = NULL;
			if (proc2("cuGetProcAddress", &found, 11030, 0, NULL))
				return -1;
			TAKE(proc1, found);
		} else if (strcmp(way, "proc1") == 0) {
			TAKE(proc1, dlsym(driver, "cuGetProcAddress"));
		}
		return 0;
	}
	if (!handle)
		return 0;
	if (strncmp(way, "dlvsym@dlsym@", 13) == 0) {
		TAKE(find_version, dlsym(handle_named(handle + 1), "dlvsym"));
		TAKE(find, with_version(RTLD_DEFAULT, "dlsym"));
	} else if (strncmp(way, "dlvsym@", 7) == 0) {
		TAKE(find, with_version(handle_named(handle + 1), "dlsym"));
	} else {
		TAKE(find, dlsym(handle_named(handle + 1), "dlsym"));
	}
	return 0;
}

/* The plain name is cuGetProcAddress's, the symbol the loader's. */
static void *get(const char *name, const char *symbol)
{
	void *found = NULL;
	if (proc1)
		return proc1(name, &found, 11030, 0) ? NULL : found;
	if (proc2)
		return proc2(name, &found, 12000, 0, NULL) ? NULL : found;
	return find(driver, symbol);
}

static int make_context(void)
{
	__typeof__(&cuInit) init;
	__typeof__(&cuDeviceGet) get_device;
	__typeof__(&cuDevicePrimaryCtxRetain) retain;
	__typeof__(&cuCtxSetCurrent) set;
	struct ll_cu_context *context;
	ll_cu_device device;
	TAKE(init, get("cuInit", "cuInit"));
	TAKE(get_device, get("cuDeviceGet", "cuDeviceGet"));
	TAKE(retain, get("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain"));
	TAKE(set, get("cuCtxSetCurrent", "cuCtxSetCurrent"));
	return init(0) || get_device(&device, 0) || retain(&context, device) || set(context) ? -1 : 0;
}

static int allocate(size_t each_mib, size_t count_max)
{
	__typeof__(&cuMemAlloc_v2) alloc;
	ll_cu_result status = LL_CUDA_SUCCESS;
	ll_cu_deviceptr address;
	size_t count = 0;
	TAKE(alloc, get("cuMemAlloc", "cuMemAlloc_v2"));
	while (count < count_max && !(status = alloc(&address, each_mib << 20)))
		count++;
	printf("allocated_mib %zu last %d", count * each_mib, status);
	return 0;
}

static int ask_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
	__typeof__(&nvmlInit_v2) init;
	__typeof__(&nvmlDeviceGetHandleByIndex_v2) get_card;
	__typeof__(&nvmlDeviceGetMemoryInfo) get_memory;
	struct ll_nvml_device *card;
	struct ll_nvml_memory memory;
	TAKE(init, find(library, "nvmlInit_v2"));
	TAKE(get_card, find(library, "nvmlDeviceGetHandleByIndex_v2"));
	TAKE(get_memory, find(library, "nvmlDeviceGetMemoryInfo"));
	if (init() || get_card(0, &card) || get_memory(card, &memory))
		return -1;
	printf(" card_mib %llu\n", memory.total_bytes >> 20);
	return 0;
}

int main(int argc, char **argv)
{
	driver = argc < 4 ? NULL : dlopen("libcuda.so.1", RTLD_LAZY);
	if (!driver || take_way(argv[1]) || make_context() ||
	    allocate(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10)) || ask_nvml()) {
		puts("no way");
		return 4;
	}
	return 0;
}
