/*
 * attributes.c - prints all that the driver tells of allocations by cuMemAlloc and cuMemAllocAsync, so that the outputs
 * of two runs can be compared byte for byte: without loadline, and under `loadline run --evictable`.
 *
 *     attributes > native; loadline run --evictable -- attributes > evictable; diff native evictable
 *     attributes peers      of two cards: which may use the other's memory, before, between and after
 *     attributes wait       a stream waits for a value that the program writes later
 *     attributes buffer     an allocation is given away as a DMA buffer, and freed later
 *
 * In the last three ways it prints "ready" amid, and goes on when it has read a line.
 *
 * Addresses are printed as distances from the allocation's start. Of ids and handles only what can be compared is
 * printed.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"

#define FUNCTIONS(X)                                                                                                   \
	X(cuInit)                                                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                                    \
	X(cuDeviceGetCount)                                                                                            \
	X(cuCtxSetCurrent)                                                                                             \
	X(cuCtxSynchronize)                                                                                            \
	X(cuCtxEnablePeerAccess)                                                                                       \
	X(cuCtxDisablePeerAccess)                                                                                      \
	X(cuStreamWaitValue32_v2)                                                                                      \
	X(cuMemHostAlloc)                                                                                              \
	X(cuMemAlloc_v2)                                                                                               \
	X(cuMemAllocPitch_v2)                                                                                          \
	X(cuMemFree_v2)                                                                                                \
	X(cuMemAllocAsync)                                                                                             \
	X(cuMemAllocFromPoolAsync)                                                                                     \
	X(cuMemFreeAsync)                                                                                              \
	X(cuMemPoolCreate)                                                                                             \
	X(cuMemPoolDestroy)                                                                                            \
	X(cuMemPoolTrimTo)                                                                                             \
	X(cuMemPoolGetAttribute)                                                                                       \
	X(cuMemPoolSetAttribute)                                                                                       \
	X(cuDeviceGetDefaultMemPool)                                                                                   \
	X(cuStreamSynchronize)                                                                                         \
	X(cuMemGetAddressRange_v2)                                                                                     \
	X(cuMemHostGetDevicePointer_v2)                                                                                \
	X(cuMemHostGetFlags)                                                                                           \
	X(cuMemGetAccess)                                                                                              \
	X(cuMemSetAccess)                                                                                              \
	X(cuMemUnmap)                                                                                                  \
	X(cuMemRetainAllocationHandle)                                                                                 \
	X(cuMemGetHandleForAddressRange)                                                                               \
	X(cuIpcGetMemHandle)                                                                                           \
	X(cuPointerGetAttribute)                                                                                       \
	X(cuPointerGetAttributes)                                                                                      \
	X(cuPointerSetAttribute)

static struct {
#define MEMBER(name) __typeof__(&name) name;
	FUNCTIONS(MEMBER)
} cu;

static struct ll_cu_context *context;
static bool is_pooled; /* the allocation is a pool's, of which the driver maps other pieces than loadline */

enum how { NUMBER, ADDRESS, CONTEXT, HANDLE, ID };

static const struct attribute {
	enum ll_cu_pointer_attribute number;
	const char *name;
	size_t bytes;
	enum how how;
} attributes[] = {
    {LL_CU_POINTER_ATTRIBUTE_CONTEXT, "CONTEXT", 8, CONTEXT},
    {LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "MEMORY_TYPE", 4, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "DEVICE_POINTER", 8, ADDRESS},
    {LL_CU_POINTER_ATTRIBUTE_HOST_POINTER, "HOST_POINTER", 8, ADDRESS},
    {LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "SYNC_MEMOPS", 1, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_BUFFER_ID, "BUFFER_ID", 8, ID},
    {LL_CU_POINTER_ATTRIBUTE_IS_MANAGED, "IS_MANAGED", 4, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "DEVICE_ORDINAL", 4, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "RANGE_START_ADDR", 8, ADDRESS},
    {LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE, "RANGE_SIZE", 8, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_MAPPED, "MAPPED", 1, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "ALLOWED_HANDLE_TYPES", 8, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "IS_GPU_DIRECT_RDMA_CAPABLE", 1, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "ACCESS_FLAGS", 4, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "MEMPOOL_HANDLE", 8, HANDLE},
    {LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE, "MAPPING_SIZE", 8, NUMBER},
    {LL_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, "MAPPING_BASE_ADDR", 8, ADDRESS},
    {LL_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, "MEMORY_BLOCK_ID", 8, HANDLE},
    {LL_CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, "IS_HW_DECOMPRESS_CAPABLE", 1, NUMBER},
};
enum { COUNT = sizeof attributes / sizeof *attributes, IDS = 64 };

/* Ids of earlier allocations. */
static uint64_t ids[IDS];
static size_t id_count;

static const char *describe_id(uint64_t id, bool is_first_look)
{
	for (size_t i = 0; i < id_count; i++) {
		if (ids[i] == id)
			return is_first_look ? "an earlier allocation's" : "the same again";
	}
	if (is_first_look && id_count < IDS)
		ids[id_count++] = id;
	return is_first_look ? "new" : "another";
}

static void print_value(const struct attribute *attribute, uint64_t value, ll_cu_deviceptr start, bool is_first_look)
{
	switch (attribute->how) {
	case NUMBER:
		printf("%" PRIu64, value);
		break;
	case ADDRESS:
		if (value)
			printf("start%+" PRId64, (int64_t)(value - start));
		else
			printf("null");
		break;
	case CONTEXT:
		printf("%s", !value ? "null" : value == (uintptr_t)context ? "the current one" : "another");
		break;
	case HANDLE:
		printf("%s", value ? "some" : "null");
		break;
	case ID:
		printf("%s", describe_id(value, is_first_look));
		break;
	}
}

/* Of a value that is shorter than eight bytes the rest is to stay as it was. */
#define UNTOUCHED UINT64_C(0xa5a5a5a5a5a5a5a5)

static void print_word(const struct attribute *attribute, uint64_t word, ll_cu_deviceptr start, bool is_first_look)
{
	uint64_t mask = attribute->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * attribute->bytes)) - 1;
	bool is_of_mapping = attribute->number == LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE ||
			     attribute->number == LL_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR;
	if (is_pooled && is_of_mapping && word && word != UNTOUCHED) {
		printf("a mapping's");
		return;
	}
	if (word == UNTOUCHED) {
		printf("untouched");
		return;
	}
	print_value(attribute, word & mask, start, is_first_look);
	if ((word & ~mask) != (UNTOUCHED & ~mask))
		printf(", and more");
}

static void print_attributes(ll_cu_deviceptr start, uint64_t offset, bool is_first_look)
{
	enum ll_cu_pointer_attribute numbers[COUNT];
	uint64_t words[COUNT];
	void *places[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t word = UNTOUCHED;
		ll_cu_result status = cu.cuPointerGetAttribute(&word, attributes[i].number, start + offset);
		printf("  %s: %d ", attributes[i].name, (int)status);
		print_word(&attributes[i], word, start, is_first_look);
		printf("\n");
		numbers[i] = attributes[i].number;
		words[i] = UNTOUCHED;
		places[i] = &words[i];
	}
	printf("  all at once: %d", (int)cu.cuPointerGetAttributes(COUNT, numbers, places, start + offset));
	for (size_t i = 0; i < COUNT; i++) {
		printf(" ");
		print_word(&attributes[i], words[i], start, false);
	}
	printf("\n");
}

static void print_range(ll_cu_deviceptr start, uint64_t offset)
{
	ll_cu_deviceptr base = UNTOUCHED;
	size_t bytes = (size_t)UNTOUCHED;
	ll_cu_result status = cu.cuMemGetAddressRange_v2(&base, &bytes, start + offset);
	printf("  range: %d", (int)status);
	if (status == LL_CUDA_SUCCESS)
		printf(" start%+" PRId64 ", %zu bytes", (int64_t)(base - start), bytes);
	printf("; base alone %d, size alone %d, neither %d\n",
	       (int)cu.cuMemGetAddressRange_v2(&base, NULL, start + offset),
	       (int)cu.cuMemGetAddressRange_v2(NULL, &bytes, start + offset),
	       (int)cu.cuMemGetAddressRange_v2(NULL, NULL, start + offset));
}

/* What is not for memory by cuMemAlloc, or not for memory of a card. */
static void print_refusals(ll_cu_deviceptr start, size_t bytes)
{
	struct ll_cu_mem_location here = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0};
	struct ll_cu_mem_access_desc access = {.location = here, .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	const size_t block = (size_t)2 << 20;
	void *pointer = (void *)(uintptr_t)start;
	ll_cu_mem_handle handle;
	ll_cu_deviceptr mapped;
	unsigned long long flags;
	unsigned int host_flags;
	printf("  retain a handle: %d\n", (int)cu.cuMemRetainAllocationHandle(&handle, pointer));
	printf("  access: %d %d\n", (int)cu.cuMemGetAccess(&flags, &here, start),
	       (int)cu.cuMemSetAccess(start / block * block, block, &access, 1));
	printf("  unmap: %d\n", (int)cu.cuMemUnmap(start / block * block, (bytes + block - 1) / block * block));
	printf("  of the host: %d %d\n", (int)cu.cuMemHostGetDevicePointer_v2(&mapped, pointer, 0),
	       (int)cu.cuMemHostGetFlags(&host_flags, pointer));
	printf("  free a byte further: %d\n", (int)cu.cuMemFree_v2(start + 1));
}

/* Legacy IPC. */
static void print_ipc(ll_cu_deviceptr start)
{
	struct ll_cu_ipc_mem_handle letter;
	uint64_t can = 0xa5; /* the driver writes more than the byte that counts */
	ll_cu_result status = cu.cuPointerGetAttribute(&can, LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, start);
	printf("ipc capable: %d %u; handle: %d\n", (int)status, (unsigned)(can & 0xff),
	       (int)cu.cuIpcGetMemHandle(&letter, start));
}

static void print_dma_buffer(ll_cu_deviceptr start, size_t bytes)
{
	const size_t page = (size_t)64 << 10;
	int fd = -1;
	ll_cu_result status = bytes < page
				  ? LL_CUDA_ERROR_UNKNOWN
				  : cu.cuMemGetHandleForAddressRange(&fd, start, bytes / page * page,
								     LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (bytes >= page)
		printf("  DMA buffer: %d\n", (int)status);
	if (fd >= 0)
		close(fd);
}

static void print_synced(ll_cu_deviceptr start)
{
	unsigned int value = 1;
	uint64_t now = 0xa5;
	printf("  set SYNC_MEMOPS: %d",
	       (int)cu.cuPointerSetAttribute(&value, LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start));
	printf(" %d", (int)cu.cuPointerGetAttribute(&now, LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start));
	printf(" %u\n", (unsigned)(now & 0xff));
	value = 0;
	cu.cuPointerSetAttribute(&value, LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start);
	printf("  set BUFFER_ID: %d, nothing: %d\n",
	       (int)cu.cuPointerSetAttribute(&value, LL_CU_POINTER_ATTRIBUTE_BUFFER_ID, start),
	       (int)cu.cuPointerSetAttribute(NULL, LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start));
}

static void print_allocation(size_t bytes)
{
	ll_cu_deviceptr start = 0;
	ll_cu_result status = cu.cuMemAlloc_v2(&start, bytes);
	printf("%zu bytes: %d, start at a multiple of 512: %s\n", bytes, (int)status, start % 512 ? "no" : "yes");
	if (status != LL_CUDA_SUCCESS)
		return;
	print_attributes(start, 0, true);
	print_range(start, 0);
	printf(" in the middle\n");
	print_attributes(start, bytes / 2, false);
	print_range(start, bytes / 2);
	printf(" the last byte\n");
	print_attributes(start, bytes - 1, false);
	print_range(start, bytes - 1);
	print_refusals(start, bytes);
	print_synced(start);
	print_ipc(start);
	print_dma_buffer(start, bytes);
	printf("  free: %d", (int)cu.cuMemFree_v2(start));
	printf(", again: %d\n", (int)cu.cuMemFree_v2(start));
	printf(" freed\n");
	print_attributes(start, 0, false);
	print_range(start, 0);
}

/* A freed allocation beside one that is not. */
static void print_neighbours(void)
{
	ll_cu_deviceptr first = 0, second = 0;
	printf("neighbours: %d", (int)cu.cuMemAlloc_v2(&first, 1000));
	printf(" %d", (int)cu.cuMemAlloc_v2(&second, 1000));
	printf(" %d\n", (int)cu.cuMemFree_v2(first));
	print_attributes(first, 0, false);
	print_range(first, 0);
	print_refusals(first, 1000);
	printf("  free again: %d", (int)cu.cuMemFree_v2(first));
	printf(", the other: %d\n", (int)cu.cuMemFree_v2(second));
}

/* ---- pools ---- */

static uint64_t pool_size(struct ll_cu_mem_pool *pool, enum ll_cu_mem_pool_attribute attribute)
{
	uint64_t bytes = 77;
	ll_cu_result status = cu.cuMemPoolGetAttribute(pool, attribute, &bytes);
	return status ? (uint64_t)status : bytes;
}

/* How much is reserved for what is used is the pool's own affair. */
static void print_pool(const char *when, struct ll_cu_mem_pool *pool)
{
	uint64_t used = pool_size(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	uint64_t reserved = pool_size(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	printf("  pool %s: used %" PRIu64 ", at most %" PRIu64 ", reserved %s, at most %s\n", when, used,
	       pool_size(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH),
	       !reserved         ? "nothing"
	       : reserved < used ? "less"
				 : "enough",
	       pool_size(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) < reserved ? "less" : "as much or more");
}

static void print_pooled(size_t bytes, struct ll_cu_mem_pool *pool)
{
	ll_cu_deviceptr start = 0;
	uint64_t none = 0;
	printf("%zu bytes in order: %d", bytes, (int)cu.cuMemAllocFromPoolAsync(&start, bytes, pool, NULL));
	printf(", start at a multiple of 512: %s\n", start % 512 ? "no" : "yes");
	is_pooled = true;
	print_attributes(start, 0, true);
	print_range(start, 0);
	printf(" the last byte\n");
	print_attributes(start, bytes - 1, false);
	print_refusals(start, bytes);
	print_ipc(start);
	print_pool("in use", pool);
	printf("  free a byte further in order: %d", (int)cu.cuMemFreeAsync(start + 1, NULL));
	printf(", free: %d", (int)cu.cuMemFreeAsync(start, NULL));
	printf(", again: %d", (int)cu.cuMemFreeAsync(start, NULL));
	printf(", and at once: %d\n", (int)cu.cuMemFree_v2(start));
	cu.cuStreamSynchronize(NULL);
	print_attributes(start, 0, false);
	is_pooled = false;
	print_pool("after", pool);
	printf("  high marks anew: %d", (int)cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
	printf(" %d\n", (int)cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none));
}

static void print_kept(struct ll_cu_mem_pool *pool)
{
	ll_cu_deviceptr start = 0, plain = 0;
	uint64_t threshold = UINT64_MAX;
	printf("threshold: %d", (int)cu.cuMemPoolSetAttribute(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	printf(", allocate: %d", (int)cu.cuMemAllocFromPoolAsync(&start, 5000000, pool, NULL));
	printf(", free: %d\n", (int)cu.cuMemFreeAsync(start, NULL));
	cu.cuStreamSynchronize(NULL);
	print_pool("kept", pool);
	printf("  trim: %d\n", (int)cu.cuMemPoolTrimTo(pool, 0));
	print_pool("trimmed", pool);
	printf("  allocate: %d", (int)cu.cuMemAllocFromPoolAsync(&start, 5000000, pool, NULL));
	printf(", free at once: %d\n", (int)cu.cuMemFree_v2(start)); /* the driver counts it as used from then on */
	printf("  plain memory: %d", (int)cu.cuMemAlloc_v2(&plain, 5000000));
	printf(", freed in order: %d\n", (int)cu.cuMemFreeAsync(plain, NULL));
	cu.cuStreamSynchronize(NULL);
}

static void show_pools(void)
{
	static const size_t sizes[] = {1, 1000, 1 << 20, (1 << 20) + 1, 3 << 20, 33 << 20, 300 << 20};
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	struct ll_cu_mem_pool *pool = NULL, *own = NULL;
	ll_cu_deviceptr address = 0;
	printf("pools: %d", (int)cu.cuDeviceGetDefaultMemPool(&pool, 0));
	printf(" %d\n", (int)cu.cuMemPoolCreate(&own, &props));
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		print_pooled(sizes[i], i % 2 ? own : pool);
	print_kept(pool);
	print_kept(own);
	printf("allocate to nowhere: %d", (int)cu.cuMemAllocAsync(NULL, 16, NULL));
	printf(", free nothing: %d, what never was: %d\n", (int)cu.cuMemFreeAsync(0, NULL),
	       (int)cu.cuMemFreeAsync(12345, NULL));
	printf("a block of a destroyed pool: %d", (int)cu.cuMemAllocFromPoolAsync(&address, 1000, own, NULL));
	printf(" %d", (int)cu.cuMemPoolDestroy(own));
	printf(", free: %d\n", (int)cu.cuMemFreeAsync(address, NULL));
	cu.cuStreamSynchronize(NULL);
}

static void print_odd_calls(void)
{
	ll_cu_deviceptr address = 0;
	size_t pitch = 0;
	printf("allocate nothing: %d, to nowhere: %d\n", (int)cu.cuMemAlloc_v2(&address, 0),
	       (int)cu.cuMemAlloc_v2(NULL, 16));
	printf("free nothing: %d, what never was: %d\n", (int)cu.cuMemFree_v2(0), (int)cu.cuMemFree_v2(12345));
	printf("rows of nothing: %d", (int)cu.cuMemAllocPitch_v2(&address, &pitch, 0, 0, 4));
	printf(", of odd elements: %d", (int)cu.cuMemAllocPitch_v2(&address, &pitch, 100, 100, 3));
	printf(", of 1000 bytes: %d", (int)cu.cuMemAllocPitch_v2(&address, &pitch, 1000, 10, 4));
	printf(", pitch %zu, free: %d\n", pitch, (int)cu.cuMemFree_v2(address));
	printf("attributes of nothing: %d", (int)cu.cuPointerGetAttributes(0, NULL, NULL, address));
	printf(", to nowhere: %d\n", (int)cu.cuPointerGetAttribute(NULL, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
}

/* ---- the other ways ---- */

static void wait_for_line(void)
{
	char line[16];
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		printf("no line\n");
}

static void print_access(const char *when, struct ll_cu_context *user, const ll_cu_deviceptr *addresses, size_t count)
{
	cu.cuCtxSetCurrent(user);
	printf("%s:", when);
	for (size_t i = 0; i < count; i++) {
		unsigned int flags = 77;
		ll_cu_result status =
		    cu.cuPointerGetAttribute(&flags, LL_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, addresses[i]);
		printf(" %d/%u", (int)status, flags);
	}
	printf("\n");
}

static int show_peers(void)
{
	struct ll_cu_context *user;
	ll_cu_deviceptr addresses[4] = {0};
	int count = 0;
	if (cu.cuDeviceGetCount(&count) || count < 2 || cu.cuDevicePrimaryCtxRetain(&user, 1))
		return 77;
	cu.cuMemAlloc_v2(&addresses[0], 1000);
	cu.cuMemAlloc_v2(&addresses[1], (size_t)300 << 20);
	print_access("before", user, addresses, 2);
	printf("enable: %d", (int)cu.cuCtxEnablePeerAccess(context, 0));
	printf(", again: %d\n", (int)cu.cuCtxEnablePeerAccess(context, 0));
	print_access("enabled", user, addresses, 2);
	cu.cuCtxSetCurrent(context);
	cu.cuMemAlloc_v2(&addresses[2], 2000);
	cu.cuMemAlloc_v2(&addresses[3], (size_t)5 << 20);
	print_access("allocated later", user, addresses, 4);
	wait_for_line();
	print_access("then", user, addresses, 4);
	print_access("its own card", context, addresses, 4);
	cu.cuCtxSetCurrent(user);
	printf("disable: %d", (int)cu.cuCtxDisablePeerAccess(context));
	printf(", again: %d\n", (int)cu.cuCtxDisablePeerAccess(context));
	print_access("disabled", user, addresses, 4);
	print_access("its own card", context, addresses, 4);
	for (size_t i = 0; i < 4; i++)
		printf("free: %d\n", (int)cu.cuMemFree_v2(addresses[i]));
	return 0;
}

static int show_wait(void)
{
	ll_cu_deviceptr address = 0, value_at = 0;
	void *value = NULL;
	if (cu.cuMemAlloc_v2(&address, (size_t)8 << 20) || cu.cuMemHostAlloc(&value, 4, 0) ||
	    cu.cuMemHostGetDevicePointer_v2(&value_at, value, 0))
		return 1;
	*(volatile uint32_t *)value = 0;
	printf("wait: %d\n", (int)cu.cuStreamWaitValue32_v2(NULL, value_at, 1, LL_CU_STREAM_WAIT_VALUE_EQ));
	wait_for_line();
	*(volatile uint32_t *)value = 1;
	printf("end: %d\n", (int)cu.cuCtxSynchronize());
	wait_for_line();
	return 0;
}

static int show_buffer(void)
{
	ll_cu_deviceptr kept = 0, address = 0;
	int fd = -1;
	cu.cuMemAlloc_v2(&kept, (size_t)8 << 20);
	cu.cuMemAlloc_v2(&address, (size_t)8 << 20);
	printf("buffer: %d\n", (int)cu.cuMemGetHandleForAddressRange(&fd, address, (size_t)2 << 20,
								     LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	wait_for_line();
	printf("free: %d\n", (int)cu.cuMemFree_v2(address));
	wait_for_line();
	return 0;
}

static bool find_functions(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	bool has_all = library;
#define FIND(name)                                                                                                     \
	if (library) {                                                                                                 \
		*(void **)&cu.name = dlsym(library, #name);                                                            \
		has_all &= cu.name != NULL;                                                                            \
	}
	FUNCTIONS(FIND)
	return has_all;
}

static int show_all(void)
{
	static const size_t sizes[] = {1,       511,           512,           513,     4096,
				       65536,   1000000,       (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
				       2 << 20, (2 << 20) + 1, 3 << 20,       5000000, 300 << 20};
	print_odd_calls();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		print_allocation(sizes[i]);
	print_neighbours();
	show_pools();
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	if (!find_functions() || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) ||
	    cu.cuCtxSetCurrent(context)) {
		fprintf(stderr, "attributes: no card, or a driver that lacks a function\n");
		return 77;
	}
	if (strcmp(way, "peers") == 0)
		return show_peers();
	if (strcmp(way, "wait") == 0)
		return show_wait();
	return strcmp(way, "buffer") == 0 ? show_buffer() : show_all();
}
