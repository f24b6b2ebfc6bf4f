/*
 * Physical memory and pools that are exported as file descriptors and imported from them. A descriptor has a ticket.
 * Exported physical memory belongs to all its holders, including descriptors (holding.h). A pool stays its maker's. An
 * allocation of it is lent: if the maker's pool returns the chunk, the allocation stays on the card until its importers
 * free it.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/defaults.h"
#include "card/descriptor.h"
#include "card/engine.h"
#include "card/holding.h"
#include "cuda/enter.h"
#include "cuda/ipc.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/pool.h"
#include "cuda/vmm.h"

static uint32_t last_pool_number;

static int make_shared(struct sim_physical *physical)
{
	struct sim_world *w = sim_cuda.world;
	if (physical->share != SIM_NONE)
		return 0;
	sim_lock(w);
	sim_advance_to_now(w);
	physical->share = sim_share_new(w, sim_cuda.proc, physical->card, physical->bytes);
	uint32_t generation = physical->share == SIM_NONE ? 0 : w->shares[physical->share].generation;
	sim_unlock(w);
	if (physical->share == SIM_NONE)
		return -1;
	sim_ticket_init(&physical->ticket, SIM_TICKET_PHYSICAL, physical->offset, physical->bytes);
	physical->ticket.card = physical->card;
	physical->ticket.slot = physical->share;
	physical->ticket.generation = generation;
	return 0;
}

_Static_assert(sizeof(struct sim_ticket) == SIM_DESCRIPTOR_BYTES, "a descriptor carries a ticket");

/* A fabric handle is the ticket itself, and does not hold the memory. */
static ll_cu_result export_physical(const struct sim_ticket *ticket, enum ll_cu_mem_handle_type type, void *ret_handle)
{
	if (type == LL_CU_MEM_HANDLE_TYPE_FABRIC) {
		memcpy(ret_handle, ticket, sizeof *ticket);
		return LL_CUDA_SUCCESS;
	}
	struct sim_world *w = sim_cuda.world;
	int fd = sim_descriptor_new(ticket->slot, ticket->generation, ticket);
	if (fd < 0)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	sim_lock(w);
	*SIM_EDIT(w, &w->shares[ticket->slot].has_descriptors) = 1;
	sim_unlock(w);
	*(int *)ret_handle = fd;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result export_ticket(const struct sim_ticket *ticket, void *ret_handle)
{
	int fd = sim_ticket_to_fd(ticket);
	if (fd < 0)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)ret_handle = fd;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuMemExportToShareableHandle(void *ret_handle, ll_cu_mem_handle handle, enum ll_cu_mem_handle_type type,
					  unsigned long long flags)
{
	SIM_ENTER();
	if (!ret_handle || flags ||
	    (type != LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && type != LL_CU_MEM_HANDLE_TYPE_FABRIC))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct sim_physical *physical = sim_physical_of(handle);
	ll_cu_result status = LL_CUDA_ERROR_INVALID_VALUE;
	if (physical && (physical->prop.handle_types & type))
		status = make_shared(physical) < 0 ? LL_CUDA_ERROR_OUT_OF_MEMORY
						   : export_physical(&physical->ticket, type, ret_handle);
	sim_cuda_unlock();
	return status;
}

static ll_cu_device device_of(uint32_t card)
{
	ll_cu_device device = 0;
	while (device < sim_cuda.device_count && sim_cuda.devices[device] != card)
		device++;
	return device;
}

static ll_cu_result import_physical(const struct sim_ticket *ticket, ll_cu_mem_handle *ret_handle)
{
	struct sim_world *w = sim_cuda.world;
	ll_cu_device device = device_of(ticket->card);
	if (device == sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	struct sim_physical model = {
	    .prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
		     .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		     .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device}},
	    .card = ticket->card,
	    .bytes = ticket->bytes,
	    .is_imported = true,
	    .ticket = *ticket,
	    .share = ticket->slot,
	};
	model.imported_at = sim_ticket_map(ticket, NULL);
	if (!model.imported_at)
		return LL_CUDA_ERROR_INVALID_VALUE; /* its maker has ended */
	struct sim_physical *physical = sim_physical_add(&model);
	if (!physical) {
		munmap(model.imported_at, sim_arena_round(model.bytes));
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_lock(w);
	sim_advance_to_now(w);
	bool is_there = sim_share_join(w, ticket->slot, ticket->generation, sim_cuda.proc);
	sim_unlock(w);
	if (is_there) {
		*ret_handle = (uintptr_t)physical;
		return LL_CUDA_SUCCESS;
	}
	sim_physical_drop(physical);
	return LL_CUDA_ERROR_INVALID_VALUE; /* it had no holder any more */
}

ll_cu_result cuMemImportFromShareableHandle(ll_cu_mem_handle *ret_handle, void *os_handle,
					    enum ll_cu_mem_handle_type type)
{
	SIM_ENTER();
	struct sim_ticket ticket = {0};
	bool is_known = false;
	if (type == LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		is_known = sim_descriptor_read((int)(intptr_t)os_handle, &ticket);
	else if (type == LL_CU_MEM_HANDLE_TYPE_FABRIC && os_handle)
		is_known = memcpy(&ticket, os_handle, sizeof ticket) != NULL;
	if (!ret_handle || !is_known || !sim_ticket_is(&ticket, SIM_TICKET_PHYSICAL))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = import_physical(&ticket, ret_handle);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemPoolExportToShareableHandle(void *ret_handle, struct ll_cu_mem_pool *pool,
					      enum ll_cu_mem_handle_type type, unsigned long long flags)
{
	SIM_ENTER();
	if (!ret_handle || flags || type != LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_ERROR_INVALID_VALUE;
	if (sim_pool_is_known(pool) && !pool->is_imported && (pool->handle_types & type)) {
		struct sim_ticket ticket;
		if (!pool->ticket_number)
			pool->ticket_number = ++last_pool_number;
		pool->ticket_pid = getpid();
		sim_ticket_init(&ticket, SIM_TICKET_POOL, 0, 0);
		ticket.card = pool->card;
		ticket.slot = pool->ticket_number;
		status = export_ticket(&ticket, ret_handle);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemPoolImportFromShareableHandle(struct ll_cu_mem_pool **ret_pool, void *handle,
						enum ll_cu_mem_handle_type type, unsigned long long flags)
{
	SIM_ENTER();
	struct sim_ticket ticket;
	if (!ret_pool || flags || type != LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !sim_ticket_from_fd((int)(intptr_t)handle, &ticket) || !sim_ticket_is(&ticket, SIM_TICKET_POOL))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_device device = device_of(ticket.card);
	struct ll_cu_mem_pool *pool = device < sim_cuda.device_count ? sim_pool_new(device) : NULL;
	if (pool) {
		pool->is_imported = true;
		pool->ticket_number = ticket.slot;
		pool->ticket_pid = ticket.pid;
		*ret_pool = pool;
	}
	sim_cuda_unlock();
	return pool ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_DEVICE;
}

static uint64_t whole_blocks(uint64_t bytes)
{
	return (bytes + SIM_GRANULARITY_BYTES - 1) / SIM_GRANULARITY_BYTES * SIM_GRANULARITY_BYTES;
}

ll_cu_result cuMemPoolExportPointer(struct ll_cu_mem_pool_pointer *ret_pointer, ll_cu_deviceptr address)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct sim_memory *memory = sim_memory_find(address);
	bool can = ret_pointer && memory && memory->address == address && memory->kind == SIM_MEMORY_DEVICE &&
		   memory->origin == SIM_ORIGIN_POOL && memory->pool->handle_types && memory->pool->ticket_number;
	struct sim_ticket ticket;
	ll_cu_result status = can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	if (can)
		status = sim_ticket_of(memory, SIM_TICKET_POINTER, whole_blocks(memory->bytes), &ticket);
	if (!status) {
		ticket.slot = memory->pool->ticket_number;
		memcpy(ret_pointer, &ticket, sizeof *ret_pointer);
	}
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemPoolImportPointer(ll_cu_deviceptr *ret_address, struct ll_cu_mem_pool *pool,
				    struct ll_cu_mem_pool_pointer *pointer)
{
	SIM_ENTER();
	struct sim_ticket ticket;
	if (!ret_address || !pointer)
		return LL_CUDA_ERROR_INVALID_VALUE;
	memcpy(&ticket, pointer, sizeof ticket);
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_ERROR_INVALID_VALUE;
	if (sim_pool_is_known(pool) && pool->is_imported && sim_ticket_is(&ticket, SIM_TICKET_POINTER) &&
	    ticket.slot == pool->ticket_number && ticket.pid == pool->ticket_pid) {
		struct sim_memory model = {.origin = SIM_ORIGIN_EXTERNAL, .pool = pool};
		uint64_t address;
		status = sim_ticket_open(&ticket, &model, &address);
		if (!status)
			*ret_address = address;
	}
	sim_cuda_unlock();
	return status;
}
