/*
 * The table of addresses that the card can access. Device memory has an address that the host cannot access (a mapping
 * without access, as on a real card), and its bytes are elsewhere. Host memory has its own address.
 */
#include "cuda/local/allocations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "card/engine.h"
#include "card/holding.h"
#include "card/memory.h"
#include "cuda/local/arena.h"
#include "cuda/local/current.h"
#include "cuda/local/observed.h"
#include "cuda/local/state.h"

#define SMALL_BYTES (UINT64_C(1) << 20)
#define BLOCK_BYTES (UINT64_C(2) << 20)

static uint64_t last_id;

/* Returns the index of the first range that ends after the address. */
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

struct sim_memory *sim_memory_after(uint64_t address)
{
	size_t i = lower_bound(address);
	return i < sim_cuda.memory_count ? &sim_cuda.memory[i] : NULL;
}

struct sim_memory *sim_memory_find(uint64_t address)
{
	size_t i = lower_bound(address);
	return i < sim_cuda.memory_count && sim_cuda.memory[i].address <= address ? &sim_cuda.memory[i] : NULL;
}

/* Whether the card of the current context may access mapped memory. */
static bool is_reachable(const struct sim_memory *memory)
{
	const struct ll_cu_context *context = memory->origin == SIM_ORIGIN_MAPPED ? sim_current_top() : NULL;
	if (context && context->card != memory->card)
		return memory->peers >> context->card & 1;
	return !memory->is_blocked;
}

char *sim_memory_at(uint64_t address, uint64_t bytes)
{
	const struct sim_memory *memory = sim_memory_find(address);
	if (!memory || !is_reachable(memory))
		return NULL;
	const struct sim_memory *end = sim_cuda.memory + sim_cuda.memory_count;
	char *at = memory->bytes_at + (address - memory->address);
	uint64_t reached = memory->bytes - (address - memory->address);
	for (; bytes > reached; reached += memory->bytes) {
		/* Mapped physical memory may consist of several ranges. Their bytes are then contiguous too. */
		memory++;
		if (memory == end || memory->origin != SIM_ORIGIN_MAPPED || !is_reachable(memory) ||
		    memory->address != address + reached || memory->bytes_at != at + reached)
			return NULL;
	}
	return at;
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
	sim_cuda.memory[i].id = ++last_id;
	sim_cuda.memory_count++;
	return 0;
}

void sim_memory_remove(const struct sim_memory *memory)
{
	size_t i = (size_t)(memory - sim_cuda.memory);
	memmove(&sim_cuda.memory[i], &sim_cuda.memory[i + 1], (sim_cuda.memory_count - i - 1) * sizeof *memory);
	sim_cuda.memory_count--;
}

/* Small allocations share blocks of 2 MiB, larger ones have their own. */
int sim_memory_charge(const struct ll_cu_context *context, struct sim_memory *memory)
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
	int rc = more == 0 || sim_proc_has_room(w, context->card, shared->proc, more) ? 0 : -ENOMEM;
	if (rc == 0)
		*SIM_EDIT(w, shared) = after;
	sim_unlock(w);
	return rc;
}

void sim_memory_refund(const struct sim_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	if (!memory->charged_bytes)
		return;
	sim_lock(w);
	sim_advance_to_now(w); /* until now the memory was there */
	struct sim_context *shared = &w->contexts[memory->context->slot];
	if (shared->is_used && shared->generation == memory->context->generation) {
		SIM_EDIT(w, shared);
		*(memory->is_small ? &shared->small_bytes : &shared->large_bytes) -= memory->charged_bytes;
	}
	sim_unlock(w);
}

static int map_memory(struct sim_memory *memory)
{
	if (sim_arena_new(memory->bytes, &memory->offset) < 0)
		return -ENOMEM;
	char *address = sim_addresses_new(memory->bytes, 0, 0);
	memory->bytes_at = sim_arena_map(memory->offset, memory->bytes, NULL);
	if (!address || !memory->bytes_at) {
		if (address)
			munmap(address, sim_arena_round(memory->bytes));
		if (memory->bytes_at)
			munmap(memory->bytes_at, sim_arena_round(memory->bytes));
		return -ENOMEM;
	}
	memory->address = (uintptr_t)address;
	return 0;
}

static bool is_borrowed_again(const struct sim_memory *memory)
{
	for (size_t i = 0; i < sim_cuda.memory_count; i++) {
		const struct sim_memory *other = &sim_cuda.memory[i];
		if (other != memory && other->share_number == memory->share_number && other->offset == SIM_NEVER)
			return true;
	}
	return false;
}

/* Removes this process from the share by which the memory is lent or borrowed. The memory must not be in the table.
 * Returns false if the share still has a holder; the bytes then stay. */
static bool leave_share(const struct sim_memory *memory)
{
	struct sim_world *w = sim_cuda.world;
	uint32_t share = memory->share_number - 1;
	if (!memory->share_number)
		return true;
	if (memory->offset == SIM_NEVER && is_borrowed_again(memory))
		return false;
	sim_lock(w);
	bool is_last =
	    memory->offset == SIM_NEVER ? sim_share_leave(w, share, sim_cuda.proc) : sim_share_end_loan(w, share);
	sim_unlock(w);
	return is_last;
}

static void unmap_memory(const struct sim_memory *memory)
{
	/* Memory that another process has lent may begin within a page. */
	size_t skip = memory->address % sim_arena_round(1), length = sim_arena_round(memory->bytes + skip);
	if (leave_share(memory) && memory->offset != SIM_NEVER)
		sim_arena_clear(memory->offset, memory->bytes);
	if ((uintptr_t)memory->bytes_at != memory->address)
		munmap(memory->bytes_at - skip, length);
	munmap((void *)(uintptr_t)(memory->address - skip), length);
}

/* Gives the memory addresses and bytes, and adds it to the table. */
static int place_memory(struct sim_memory *memory)
{
	if (map_memory(memory) < 0)
		return -ENOMEM;
	memory->whole_address = memory->address;
	memory->whole_bytes = memory->bytes;
	if (sim_memory_insert(memory) < 0) {
		unmap_memory(memory);
		return -ENOMEM;
	}
	return 0;
}

ll_cu_result sim_memory_new(struct ll_cu_context *context, size_t bytes, bool is_global, struct sim_memory *ret_memory)
{
	struct sim_memory memory = {
	    .bytes = bytes,
	    .kind = SIM_MEMORY_DEVICE,
	    .origin = is_global ? SIM_ORIGIN_GLOBAL : SIM_ORIGIN_PLAIN,
	    .context = context,
	    .card = context->card,
	};
	/* A module's variables are included in the memory of the context. */
	if (!is_global && sim_memory_charge(context, &memory) < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (place_memory(&memory) < 0) {
		sim_memory_refund(&memory);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_activity_memory(&memory, false);
	*ret_memory = memory;
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_memory_new_of_graph(uint32_t card, size_t bytes, struct sim_graph_memory *graph, uint64_t *ret_address)
{
	struct sim_memory memory = {
	    .bytes = bytes, .kind = SIM_MEMORY_DEVICE, .origin = SIM_ORIGIN_GRAPH, .card = card, .graph = graph};
	if (place_memory(&memory) < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	*ret_address = memory.address;
	return LL_CUDA_SUCCESS;
}

void sim_memory_free(const struct sim_memory *memory)
{
	struct sim_memory copy = *memory;
	sim_activity_memory(&copy, true);
	sim_memory_remove(memory);
	if (copy.kind == SIM_MEMORY_DEVICE) {
		sim_memory_refund(&copy);
		unmap_memory(&copy);
	} else if (copy.kind == SIM_MEMORY_HOST) {
		munmap(copy.bytes_at, sim_arena_round(copy.bytes));
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
