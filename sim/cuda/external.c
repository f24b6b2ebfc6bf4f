/*
 * Memory that another interface (Vulkan) has made and exported as a file descriptor. Here the descriptor is a memfd.
 * The memory does not count on the card here, because its maker counts it.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/array.h"
#include "cuda/local/current.h"

struct ll_cu_external_memory {
	uint64_t bytes;
	int fd;
	char *bytes_at; /* for mipmaps; mapped buffers have their own mappings, because they may live longer */
	struct ll_cu_context *context;
	struct ll_cu_external_memory *next;
};

static struct ll_cu_external_memory *externals;

static bool is_known(const struct ll_cu_external_memory *memory)
{
	for (const struct ll_cu_external_memory *m = externals; m; m = m->next) {
		if (m == memory)
			return true;
	}
	return false;
}

ll_cu_result cuImportExternalMemory(struct ll_cu_external_memory **ret_memory,
				    const struct ll_cu_external_memory_desc *descriptor)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	struct stat st;
	if (!ret_memory || !descriptor || !descriptor->bytes || descriptor->flags > 1)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (descriptor->type != LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	if (fstat(descriptor->handle.fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < descriptor->bytes)
		return LL_CUDA_ERROR_UNKNOWN; /* the status of the real driver for a descriptor of another kind */
	void *bytes_at = mmap(NULL, descriptor->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor->handle.fd, 0);
	if (bytes_at == MAP_FAILED)
		return LL_CUDA_ERROR_UNKNOWN;
	struct ll_cu_external_memory *memory = malloc(sizeof *memory);
	sim_cuda_lock();
	ll_cu_result status = memory ? sim_current(&context) : LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (!status) {
		*memory = (struct ll_cu_external_memory){descriptor->bytes, descriptor->handle.fd, bytes_at, context,
							 externals};
		externals = memory;
		*ret_memory = memory;
	} else {
		munmap(bytes_at, descriptor->bytes);
		free(memory);
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result map_buffer(const struct ll_cu_external_memory *external,
			       const struct ll_cu_external_buffer_desc *descriptor, ll_cu_deviceptr *ret_address)
{
	if (!descriptor->bytes || descriptor->flags || descriptor->offset % sim_arena_round(1) ||
	    descriptor->offset > external->bytes || descriptor->bytes > external->bytes - descriptor->offset)
		return LL_CUDA_ERROR_INVALID_VALUE;
	size_t length = sim_arena_round(descriptor->bytes);
	void *bytes_at =
	    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, external->fd, (off_t)descriptor->offset);
	char *address = sim_addresses_new(length, 0, 0);
	struct sim_memory memory = {
	    .address = (uintptr_t)address,
	    .bytes = descriptor->bytes,
	    .bytes_at = bytes_at,
	    .kind = SIM_MEMORY_DEVICE,
	    .origin = SIM_ORIGIN_EXTERNAL,
	    .context = external->context,
	    .card = external->context->card,
	    .offset = SIM_NEVER,
	    .whole_address = (uintptr_t)address,
	    .whole_bytes = descriptor->bytes,
	};
	if (bytes_at != MAP_FAILED && address && sim_memory_insert(&memory) == 0) {
		*ret_address = memory.address;
		return LL_CUDA_SUCCESS;
	}
	if (bytes_at != MAP_FAILED)
		munmap(bytes_at, length);
	if (address)
		munmap(address, length);
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuExternalMemoryGetMappedBuffer(ll_cu_deviceptr *ret_address, struct ll_cu_external_memory *memory,
					     const struct ll_cu_external_buffer_desc *descriptor)
{
	SIM_ENTER();
	if (!ret_address || !descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status =
	    is_known(memory) ? map_buffer(memory, descriptor, ret_address) : LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuExternalMemoryGetMappedMipmappedArray(struct ll_cu_mipmapped_array **ret_mipmap,
						     struct ll_cu_external_memory *memory,
						     const struct ll_cu_external_mipmap_desc *descriptor)
{
	SIM_ENTER();
	if (!ret_mipmap || !descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = is_known(memory) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
	if (!status && descriptor->offset > memory->bytes)
		status = LL_CUDA_ERROR_INVALID_VALUE;
	if (!status) {
		struct ll_cu_mipmapped_array *mipmap =
		    sim_mipmap_over(memory->context, &descriptor->array, descriptor->levels,
				    memory->bytes_at + descriptor->offset, memory->bytes - descriptor->offset, &status);
		if (mipmap)
			*ret_mipmap = mipmap;
	}
	sim_cuda_unlock();
	return status;
}

/* The program must free mapped buffers and mipmaps before. */
ll_cu_result cuDestroyExternalMemory(struct ll_cu_external_memory *memory)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct ll_cu_external_memory **link = &externals;
	while (*link && *link != memory)
		link = &(*link)->next;
	bool can = memory && *link == memory;
	if (can) {
		*link = memory->next;
		munmap(memory->bytes_at, memory->bytes);
		close(memory->fd);
		free(memory);
	}
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}
