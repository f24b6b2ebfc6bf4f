/*
 * The table of addresses that the card can reach. Device memory has an address that the host cannot touch (a mapping
 * without access, as on a real card) and bytes elsewhere; host memory is its own address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_local.h"
#include "engine.h"
#include "population.h"

#define SMALL_BYTES (UINT64_C(1) << 20)
#define BLOCK_BYTES (UINT64_C(2) << 20)

/* Index of the first range that ends after address. */
static size_t lower_bound(uint64_t address)
{
	size_t low = 0, high = sim_cuda.memory_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (sim_cuda.memory[middle].address + sim_cuda.memory[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sim_memory *sim_memory_find(uint64_t address)
{
	size_t i = lower_bound(address);
	return i < sim_cuda.memory_count && sim_cuda.memory[i].address <= address ? &sim_cuda.memory[i] : NULL;
}

char *sim_memory_at(uint64_t address, uint64_t bytes)
{
	const struct sim_memory *memory = sim_memory_find(address);
	if (!memory || bytes > memory->bytes - (address - memory->address))
		return NULL;
	return memory->bytes_at + (address - memory->address);
}

int sim_memory_insert(const struct sim_memory *memory)
{
	if (sim_cuda.memory_count == sim_cuda.memory_capacity) {
		size_t capacity = sim_cuda.memory_capacity ? sim_cuda.memory_capacity * 2 : 64;
		struct sim_memory *grown = realloc(sim_cuda.memory, capacity * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		sim_cuda.memory = grown;
		sim_cuda.memory_capacity = capacity;
	}
	size_t i = lower_bound(memory->address);
	memmove(&sim_cuda.memory[i + 1], &sim_cuda.memory[i], (sim_cuda.memory_count - i) * sizeof *memory);
	sim_cuda.memory[i] = *memory;
	sim_cuda.memory_count++;
	return 0;
}

void sim_memory_remove(const struct sim_memory *memory)
{
	size_t i = (size_t)(memory - sim_cuda.memory);
	memmove(&sim_cuda.memory[i], &sim_cuda.memory[i + 1], (sim_cuda.memory_count - i - 1) * sizeof *memory);
	sim_cuda.memory_count--;
}

static size_t mapped_bytes(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

int sim_memory_map(size_t bytes, uint64_t *ret_address, char **ret_bytes_at)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	size_t length = mapped_bytes(bytes);
	void *address = mmap(NULL, length, PROT_NONE, flags, -1, 0);
	void *bytes_at = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (address == MAP_FAILED || bytes_at == MAP_FAILED) {
		if (address != MAP_FAILED)
			munmap(address, length);
		if (bytes_at != MAP_FAILED)
			munmap(bytes_at, length);
		return -ENOMEM;
	}
	*ret_address = (uintptr_t)address;
	*ret_bytes_at = bytes_at;
	return 0;
}

void sim_memory_unmap(const struct sim_memory *memory)
{
	munmap((void *)(uintptr_t)memory->address, mapped_bytes(memory->bytes));
	munmap(memory->bytes_at, mapped_bytes(memory->bytes));
}

/* Small allocations share blocks of 2 MiB, larger ones have their own. */
static int charge(const struct ll_cu_context *context, struct sim_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	memory->is_small = memory->bytes < SMALL_BYTES;
	uint64_t unit = memory->is_small ? 512 : BLOCK_BYTES;
	memory->charged_bytes = (memory->bytes + unit - 1) / unit * unit;
	sim_lock(w);
	sim_advance_to_now(w);
	struct sim_context *shared = &w->contexts[context->slot];
	struct sim_context after = *shared;
	*(memory->is_small ? &after.small_bytes : &after.large_bytes) += memory->charged_bytes;
	uint64_t more = sim_context_used_bytes(&after) - sim_context_used_bytes(shared);
	int rc = more == 0 || sim_card_has_room(w, context->card, more) ? 0 : -ENOMEM;
	if (rc == 0)
		*SIM_EDIT(w, shared) = after;
	sim_unlock(w);
	return rc;
}

static void refund(const struct sim_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	struct sim_context *shared = &w->contexts[memory->context->slot];
	if (shared->is_used && shared->generation == memory->context->generation) {
		SIM_EDIT(w, shared);
		*(memory->is_small ? &shared->small_bytes : &shared->large_bytes) -= memory->charged_bytes;
	}
	sim_unlock(w);
}

ll_cu_result sim_memory_new(struct ll_cu_context *context, size_t bytes, bool is_global, struct sim_memory *ret_memory)
{
	struct sim_memory memory = {
	    .bytes = bytes, .kind = SIM_MEMORY_DEVICE, .is_global = is_global, .context = context};
	/* A module's variables are in what the context takes anyway. */
	if (!is_global && charge(context, &memory) < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (sim_memory_map(bytes, &memory.address, &memory.bytes_at) < 0) {
		refund(&memory);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (sim_memory_insert(&memory) < 0) {
		sim_memory_unmap(&memory);
		refund(&memory);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_memory = memory;
	return LL_CUDA_SUCCESS;
}

void sim_memory_free(const struct sim_memory *memory)
{
	struct sim_memory copy = *memory;
	sim_memory_remove(memory);
	if (copy.kind == SIM_MEMORY_DEVICE) {
		refund(&copy);
		sim_memory_unmap(&copy);
	} else if (copy.kind == SIM_MEMORY_HOST) {
		munmap(copy.bytes_at, mapped_bytes(copy.bytes));
	}
}

void sim_memory_free_context(const struct ll_cu_context *context)
{
	for (size_t i = 0; i < sim_cuda.memory_count;) {
		if (sim_cuda.memory[i].context == context)
			sim_memory_free(&sim_cuda.memory[i]);
		else
			i++;
	}
}

ll_cu_result sim_memory_reserve(struct ll_cu_context *context, size_t bytes, struct sim_graph_memory *graph,
				uint64_t *ret_address)
{
	struct sim_memory memory = {.bytes = bytes, .kind = SIM_MEMORY_DEVICE, .context = context, .graph = graph};
	if (sim_memory_map(bytes, &memory.address, &memory.bytes_at) < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (sim_memory_insert(&memory) < 0) {
		sim_memory_unmap(&memory);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_address = memory.address;
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_memory_charge(struct sim_memory *memory)
{
	if (memory->charged_bytes || charge(memory->context, memory) == 0)
		return LL_CUDA_SUCCESS;
	memory->charged_bytes = 0;
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_memory_discharge(struct sim_memory *memory)
{
	refund(memory);
	memory->charged_bytes = 0;
}
