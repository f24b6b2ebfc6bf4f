/* Memory that another interface made: a descriptor of it, and what CUDA maps. */
#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

TEST_IN_WORLD(NULL, memory_of_another_interface_takes_nothing_of_the_card)
{
	struct ll_cu_external_memory *memory;
	struct ll_cu_mipmapped_array *mipmap;
	ll_cu_deviceptr a;
	int fd = memfd_create("vulkan", MFD_CLOEXEC);
	CHECK(ftruncate(fd, 8 * MIB) == 0);
	struct ll_cu_external_memory_desc desc = {
	    .type = LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = dup(fd), .bytes = 8 * MIB};
	struct ll_cu_external_buffer_desc buffer = {.offset = 2 * MIB, .bytes = 4 * MIB};
	struct ll_cu_external_mipmap_desc image = {.array = {256, 256, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0}, .levels = 1};
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuImportExternalMemory(&memory, &desc), 0);
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedBuffer(&a, memory, &buffer), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 4 * MIB + 1), LL_CUDA_ERROR_INVALID_VALUE);
	unsigned char seen[2];
	CHECK_EQUAL(pread(fd, seen, 2, 2 * MIB - 1), 2);
	CHECK_EQUAL(seen[0], 0);
	CHECK_EQUAL(seen[1], 42);
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &image), 0);
	image.offset = 8 * MIB;
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &image), LL_CUDA_ERROR_INVALID_VALUE);
	buffer.offset = 6 * MIB;
	CHECK_EQUAL(cu.cuExternalMemoryGetMappedBuffer(&a, memory, &buffer), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMipmappedArrayDestroy(mipmap), 0);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	CHECK_EQUAL(cu.cuDestroyExternalMemory(memory), 0);
	CHECK_EQUAL(used_bytes(), before);
	/* The descriptor was the driver's. */
	CHECK_EQUAL(fcntl(desc.handle.fd, F_GETFD), -1);
	CHECK_EQUAL(cu.cuDestroyExternalMemory(memory), LL_CUDA_ERROR_INVALID_HANDLE);
	desc.handle.fd = STDIN_FILENO;
	CHECK_EQUAL(cu.cuImportExternalMemory(&memory, &desc), LL_CUDA_ERROR_UNKNOWN);
}
