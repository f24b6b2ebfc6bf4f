/* Every other entry that takes memory of a card: physical memory, arrays, mipmaps, imports. */
#include "governed.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t kinds_charge(void)
{
	return charged() - CONTEXT_BYTES;
}

static ll_cu_result create(ll_cu_mem_handle *ret_handle, uint64_t bytes)
{
	struct ll_cu_mem_allocation_prop prop = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
	    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE},
	};
	return cu.cuMemCreate(ret_handle, bytes, &prop, 0);
}

TEST_IN_WORLD(NULL, physical_memory_is_charged_until_nothing_holds_it)
{
	ll_cu_mem_handle first, second, again, refused;
	ll_cu_deviceptr range;
	govern(CONTEXT_BYTES + 20 * MIB);
	open_context(0);
	CHECK_EQUAL(create(&first, 12 * MIB), 0);
	CHECK_EQUAL(kinds_charge(), 12 * MIB);
	CHECK_EQUAL(create(&refused, 10 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(create(&refused, 1000), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(create(&second, 8 * MIB), 0);
	CHECK_EQUAL(kinds_charge(), 20 * MIB);
	CHECK_EQUAL(cu.cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemMap(range, 12 * MIB, 0, first, 0), 0);
	CHECK_EQUAL(cu.cuMemMap(range + 12 * MIB, 8 * MIB, 0, second, 0), 0);
	/* Released and still mapped; and by another handle again. */
	CHECK_EQUAL(cu.cuMemRelease(first), 0);
	CHECK_EQUAL(kinds_charge(), 20 * MIB);
	CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + MIB)), 0);
	CHECK_EQUAL(cu.cuMemRelease(second), 0);
	/* Both mappings at once. */
	CHECK_EQUAL(cu.cuMemUnmap(range, 20 * MIB), 0);
	CHECK_EQUAL(kinds_charge(), 12 * MIB);
	cu.cuMemUnmap(range, 20 * MIB); /* nothing is there: whatever the driver says */
	CHECK_EQUAL(kinds_charge(), 12 * MIB);
	CHECK_EQUAL(simctl("fail cuMemRelease CUDA_ERROR_LAUNCH_FAILED count 1"), 0);
	CHECK_EQUAL(cu.cuMemRelease(again), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(kinds_charge(), 12 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(again), 0);
	CHECK_EQUAL(kinds_charge(), 0);
	CHECK(cu.cuMemRelease(again) != 0);
	CHECK_EQUAL(kinds_charge(), 0);
	CHECK_EQUAL(cu.cuMemAddressFree(range, 64 * MIB), 0);
}

TEST_IN_WORLD(NULL, each_mapping_holds_it_and_an_import_is_the_exporter_s)
{
	ll_cu_mem_handle handle;
	ll_cu_deviceptr range;
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(create(&handle, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemMap(range, 4 * MIB, 0, handle, 0), 0);
	CHECK_EQUAL(cu.cuMemMap(range + 16 * MIB, 4 * MIB, 0, handle, 0), 0);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(cu.cuMemUnmap(range, 4 * MIB), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	CHECK_EQUAL(cu.cuMemUnmap(range + 16 * MIB, 4 * MIB), 0);
	CHECK_EQUAL(kinds_charge(), 0);
	/* Its own export comes back to it, and takes nothing. */
	int fd;
	ll_cu_mem_handle imported;
	CHECK_EQUAL(create(&handle, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(imported), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB); /* the descriptor holds it */
	close(fd);
	WAIT_FOR(kinds_charge() == 0);
}

struct shape {
	struct ll_cu_array3d_descriptor descriptor;
	unsigned levels;
	uint64_t bytes;
};

#define FLOAT4 .format = LL_CU_AD_FORMAT_FLOAT, .channels = 4
#define BYTES1 .format = LL_CU_AD_FORMAT_UNSIGNED_INT8, .channels = 1
#define HALF2 .format = LL_CU_AD_FORMAT_HALF, .channels = 2

/* bytes: as the card takes them, measured (doc/facts.md). */
static const struct shape shapes[] = {
    {{.width = 1000, .height = 1000, FLOAT4}, 0, 16 * MIB},
    {{.width = 64, .height = 8, BYTES1}, 0, 512},
    {{.width = 100, .height = 100, .depth = 100, .format = LL_CU_AD_FORMAT_FLOAT, .channels = 1}, 0, 6 * MIB},
    {{.width = 1024, .height = 1024, HALF2}, 0, 4 * MIB},
    {{.width = 65536, FLOAT4}, 0, MIB},
    {{.width = 256, .height = 256, .depth = 12, FLOAT4, .flags = LL_CUDA_ARRAY3D_LAYERED}, 0, 12 * MIB},
    {{.width = 1024, .height = 1024, FLOAT4}, 1, 16 * MIB},
    {{.width = 1024, .height = 1024, FLOAT4}, 3, 22 * MIB},
    {{.width = 1024, .height = 1024, FLOAT4, .flags = LL_CUDA_ARRAY3D_DEFERRED_MAPPING}, 0, 0},
};

static void check_array(const struct shape *shape)
{
	struct ll_cu_array *array;
	uint64_t before = charged(), used = card_used();
	CHECK_EQUAL(cu.cuArray3DCreate(&array, &shape->descriptor), 0);
	CHECK_EQUAL(charged() - before, shape->bytes);
	/* The card takes the same, but for blocks of 2 MiB that small ones share. */
	CHECK_NEAR(card_used() - used, shape->bytes, 2.1 * (double)MIB);
	CHECK_EQUAL(cu.cuArrayDestroy(array), 0);
	CHECK_EQUAL(charged(), before);
	CHECK(cu.cuArrayDestroy(array) != 0);
	CHECK_EQUAL(charged(), before);
}

static void check_mipmap(const struct shape *shape)
{
	struct ll_cu_mipmapped_array *mipmap;
	uint64_t before = charged(), used = card_used();
	CHECK_EQUAL(cu.cuMipmappedArrayCreate(&mipmap, &shape->descriptor, shape->levels), 0);
	CHECK_EQUAL(charged() - before, shape->bytes);
	CHECK_NEAR(card_used() - used, shape->bytes, 2.1 * (double)MIB);
	CHECK_EQUAL(cu.cuMipmappedArrayDestroy(mipmap), 0);
	CHECK_EQUAL(charged(), before);
}

TEST_IN_WORLD(NULL, arrays_and_mipmaps_are_charged_by_their_tiles)
{
	struct ll_cu_array *array;
	struct ll_cu_mipmapped_array *mipmap;
	govern(CONTEXT_BYTES + 22 * MIB);
	open_context(0);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		if (shapes[i].levels)
			check_mipmap(&shapes[i]);
		else
			check_array(&shapes[i]);
	}
	struct ll_cu_array_descriptor flat = {.width = 1000, .height = 1000, FLOAT4};
	CHECK_EQUAL(cu.cuArrayCreate(&array, &flat), 0);
	CHECK_EQUAL(kinds_charge(), 16 * MIB);
	/* Over the limit, of every kind. */
	struct ll_cu_array *refused;
	CHECK_EQUAL(cu.cuArrayCreate(&refused, &flat), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuArray3DCreate(&refused, &shapes[0].descriptor), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMipmappedArrayCreate(&mipmap, &shapes[0].descriptor, 2), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(kinds_charge(), 16 * MIB);
	CHECK_EQUAL(cu.cuArrayDestroy(array), 0);
	struct ll_cu_array_descriptor none = {.width = 0, FLOAT4};
	CHECK_EQUAL(cu.cuArrayCreate(&array, &none), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK(cu.cuArrayCreate(&array, NULL) != 0);
	CHECK_EQUAL(kinds_charge(), 0);
}

TEST_IN_WORLD(NULL, memory_from_elsewhere_is_charged_to_the_importer)
{
	struct ll_cu_external_memory *memory;
	govern(CONTEXT_BYTES + 5 * MIB);
	open_context(0);
	int fd = memfd_create("external", 0);
	CHECK_EQUAL(ftruncate(fd, 8 * MIB), 0);
	struct ll_cu_external_memory_desc descriptor = {
	    .type = LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .bytes = 8 * MIB};
	CHECK_EQUAL(cu.cuImportExternalMemory(&memory, &descriptor), LL_CUDA_ERROR_OUT_OF_MEMORY);
	descriptor.bytes = 3 * MIB;
	CHECK_EQUAL(cu.cuImportExternalMemory(&memory, &descriptor), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	/* Views of it are nothing more. */
	ll_cu_deviceptr view;
	struct ll_cu_mipmapped_array *levels;
	struct ll_cu_external_buffer_desc part = {.bytes = 3 * MIB};
	struct ll_cu_external_mipmap_desc shape = {.array = {.width = 64, .height = 64, FLOAT4}, .levels = 1};
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedBuffer(&view, memory, &part), 0);
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedMipmappedArray(&levels, memory, &shape), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	CHECK_EQUAL(cu.cuMemFree(view), 0);
	CHECK_EQUAL(cu.cuMipmappedArrayDestroy(levels), 0);
	CHECK_EQUAL(kinds_charge(), 4 * MIB);
	CHECK_EQUAL(cu.cuDestroyExternalMemory(memory), 0);
	CHECK_EQUAL(kinds_charge(), 0);
	CHECK(cu.cuDestroyExternalMemory(memory) != 0);
	descriptor.handle.fd = -1;
	CHECK(cu.cuImportExternalMemory(&memory, &descriptor) != 0);
	CHECK(cu.cuImportExternalMemory(&memory, NULL) != 0);
	CHECK_EQUAL(kinds_charge(), 0);
}

TEST_IN_WORLD(NULL, what_a_graph_frees_is_charged_until_it_is_trimmed)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *taking, *giving;
	struct ll_cu_graph_exec *exec;
	struct ll_cu_mem_alloc_params wish = {
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}},
	    .bytes = 10 * MIB,
	};
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddMemAllocNode(&taking, graph, NULL, 0, &wish), 0);
	CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&giving, graph, &taking, 1, wish.address), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK(kinds_charge() >= 10 * MIB);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(kinds_charge(), 0);
}

TEST_IN_WORLD(NULL, the_oldest_functions_take_nothing_that_is_not_charged)
{
	ll_cu_deviceptr_v1 address = 0;
	unsigned pitch, free_bytes, total_bytes;
	struct ll_cu_array *array;
	struct ll_cu_array_descriptor_v1 flat = {.width = 100, .height = 100, FLOAT4};
	struct ll_cu_array3d_descriptor_v1 deep = {.width = 100, .height = 100, .depth = 1, FLOAT4};
	govern(CONTEXT_BYTES + MIB);
	open_context(0);
	/* Too large by our own count, and refused by every driver of today: whatever they answer, nothing is charged.
	 */
	CHECK_EQUAL(cu.cuMemAlloc_v1(&address, 2 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cu.cuMemAlloc_v1(&address, 1000) != 0);
	CHECK(cu.cuMemAllocPitch_v1(&address, &pitch, 100, 100, 4) != 0);
	CHECK_EQUAL(cu.cuMemAllocPitch_v1(&address, &pitch, 1000, 10000, 4), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cu.cuMemFree_v1(4096) != 0);
	CHECK(cu.cuArrayCreate_v1(&array, &flat) != 0);
	CHECK(cu.cuArray3DCreate_v1(&array, &deep) != 0);
	flat.height = 10000;
	CHECK_EQUAL(cu.cuArrayCreate_v1(&array, &flat), LL_CUDA_ERROR_OUT_OF_MEMORY);
	deep.depth = 10000;
	CHECK_EQUAL(cu.cuArray3DCreate_v1(&array, &deep), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(kinds_charge(), 0);
	if (cu.cuMemGetInfo_v1(&free_bytes, &total_bytes) == 0)
		CHECK(total_bytes <= CONTEXT_BYTES + MIB && free_bytes <= MIB);
	if (cu.cuDeviceTotalMem_v1(&total_bytes, 0) == 0)
		CHECK(total_bytes <= CONTEXT_BYTES + MIB);
}
