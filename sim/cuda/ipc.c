/*
 * Memory of one process that another uses (cuIpc…). The handle is a ticket. The opened memory counts as much on the
 * card as its owner's allocation. If the owner frees it or ends, it stays on the card until the last process that
 * opened it closes it. A handle alone does not hold the memory.
 */
#include "cuda/ipc.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/engine.h"
#include "card/holding.h"
#include "card/queue.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/current.h"
#include "cuda/local/event.h"

static bool lend_memory(struct sim_memory *memory, uint64_t counted_bytes)
{
	struct sim_world *w = sim_cuda.world;
	if (memory->share_number)
		return true;
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t share = sim_share_lend(w, sim_cuda.proc, memory->card, counted_bytes);
	sim_unlock(w);
	memory->share_number = share == SIM_NONE ? 0 : share + 1;
	return share != SIM_NONE;
}

ll_cu_result sim_ticket_of(struct sim_memory *memory, enum sim_ticket_kind kind, uint64_t counted_bytes,
			   struct sim_ticket *ret_ticket)
{
	uint64_t skip = memory->offset % sim_arena_round(1);
	if (!lend_memory(memory, counted_bytes))
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	sim_ticket_init(ret_ticket, kind, memory->offset - skip, memory->bytes + skip);
	ret_ticket->skip = (uint32_t)skip;
	ret_ticket->card = memory->card;
	ret_ticket->share = memory->share_number - 1;
	ret_ticket->share_generation = sim_cuda.world->shares[ret_ticket->share].generation;
	return LL_CUDA_SUCCESS;
}

static bool join_ticket(const struct sim_ticket *ticket)
{
	struct sim_world *w = sim_cuda.world;
	sim_lock(w);
	sim_advance_to_now(w);
	bool is_there = sim_share_join(w, ticket->share, ticket->share_generation, sim_cuda.proc);
	sim_unlock(w);
	return is_there;
}

static void leave_ticket(const struct sim_ticket *ticket)
{
	sim_lock(sim_cuda.world);
	sim_share_leave(sim_cuda.world, ticket->share, sim_cuda.proc);
	sim_unlock(sim_cuda.world);
}

ll_cu_result sim_ticket_open(const struct sim_ticket *ticket, const struct sim_memory *model, uint64_t *ret_address)
{
	size_t length = sim_arena_round(ticket->bytes);
	if (!join_ticket(ticket))
		return LL_CUDA_ERROR_INVALID_VALUE; /* freed */
	char *bytes_at = sim_ticket_map(ticket, NULL);
	if (!bytes_at) {
		leave_ticket(ticket);
		return LL_CUDA_ERROR_INVALID_VALUE; /* its process has ended */
	}
	char *address = sim_addresses_new(length, 0, 0);
	struct sim_memory memory = *model;
	memory.bytes = ticket->bytes - ticket->skip;
	memory.kind = SIM_MEMORY_DEVICE;
	memory.card = ticket->card;
	memory.offset = SIM_NEVER;
	memory.address = memory.whole_address = (uintptr_t)address + ticket->skip;
	memory.whole_bytes = memory.bytes;
	memory.bytes_at = bytes_at + ticket->skip;
	memory.share_number = ticket->share + 1;
	if (!address || sim_memory_insert(&memory) < 0) {
		munmap(bytes_at, length);
		if (address)
			munmap(address, length);
		leave_ticket(ticket);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_address = memory.address;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuIpcGetMemHandle(struct ll_cu_ipc_mem_handle *ret_handle, ll_cu_deviceptr address)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	if (!ret_handle)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	struct sim_memory *memory = status ? NULL : sim_memory_find(address);
	bool can = memory && memory->kind == SIM_MEMORY_DEVICE && memory->origin == SIM_ORIGIN_PLAIN;
	if (!status && !can)
		status = LL_CUDA_ERROR_INVALID_VALUE;
	struct sim_ticket ticket;
	if (!status)
		status = sim_ticket_of(memory, SIM_TICKET_IPC, memory->charged_bytes, &ticket);
	if (!status)
		memcpy(ret_handle, &ticket, sizeof *ret_handle);
	sim_cuda_unlock();
	return status;
}

/* If the context has already opened the memory, it is not opened again. It must be closed as often as it was opened. */
static struct sim_memory *find_opened(const struct sim_ticket *ticket, const struct ll_cu_context *context)
{
	const struct sim_world *w = sim_cuda.world;
	for (size_t i = 0; i < sim_cuda.memory_count; i++) {
		struct sim_memory *memory = &sim_cuda.memory[i];
		if (memory->origin == SIM_ORIGIN_IPC && memory->kind == SIM_MEMORY_DEVICE &&
		    memory->context == context && memory->share_number == ticket->share + 1 &&
		    w->shares[ticket->share].generation == ticket->share_generation)
			return memory;
	}
	return NULL;
}

static ll_cu_result open_ticket(const struct sim_ticket *ticket, struct ll_cu_context *context, uint64_t *ret_address)
{
	struct sim_memory model = {.origin = SIM_ORIGIN_IPC, .context = context},
			  *opened = find_opened(ticket, context);
	if (!opened)
		return sim_ticket_open(ticket, &model, ret_address);
	opened->uses++;
	*ret_address = opened->address;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result open_handle(ll_cu_deviceptr *ret_address, const struct ll_cu_ipc_mem_handle *handle, unsigned flags)
{
	struct ll_cu_context *context;
	struct sim_ticket ticket;
	memcpy(&ticket, handle, sizeof ticket);
	if (!ret_address || flags != LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !sim_ticket_is(&ticket, SIM_TICKET_IPC))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (!status && ticket.pid == getpid())
		/* as the real driver returns to the process that made the handle */
		status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (!status && ticket.card != context->card)
		status = LL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	uint64_t address;
	if (!status)
		status = open_ticket(&ticket, context, &address);
	if (!status)
		*ret_address = address;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuIpcOpenMemHandle(ll_cu_deviceptr *ret_address, struct ll_cu_ipc_mem_handle handle, unsigned int flags)
{
	SIM_ENTER();
	return open_handle(ret_address, &handle, flags);
}

ll_cu_result cuIpcOpenMemHandle_v2(ll_cu_deviceptr *ret_address, struct ll_cu_ipc_mem_handle handle, unsigned int flags)
{
	SIM_ENTER();
	return open_handle(ret_address, &handle, flags);
}

ll_cu_result cuIpcCloseMemHandle(ll_cu_deviceptr address)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct sim_memory *memory = sim_memory_find(address);
	bool can = memory && memory->address == address && memory->kind == SIM_MEMORY_DEVICE &&
		   memory->origin == SIM_ORIGIN_IPC;
	if (can) {
		sim_wait_context(memory->context);
		memory = sim_memory_find(address);
		if (memory && memory->origin == SIM_ORIGIN_IPC && memory->uses)
			memory->uses--;
		else if (memory && memory->origin == SIM_ORIGIN_IPC)
			sim_memory_free(memory);
	}
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

/* ---- events ---- */

ll_cu_result cuIpcGetEventHandle(struct ll_cu_ipc_event_handle *ret_handle, struct ll_cu_event *event)
{
	SIM_ENTER();
	if (!ret_handle || !event || event->magic != SIM_MAGIC_EVENT || !(event->flags & LL_CU_EVENT_INTERPROCESS))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_shared = sim_event_share(event);
	if (is_shared) {
		struct sim_ticket ticket;
		sim_ticket_init(&ticket, SIM_TICKET_EVENT, 0, 0);
		ticket.card = event->context->card;
		ticket.slot = event->shared_slot;
		ticket.generation = sim_cuda.world->shared_events[event->shared_slot].generation;
		memcpy(ret_handle, &ticket, sizeof *ret_handle);
	}
	sim_cuda_unlock();
	return is_shared ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuIpcOpenEventHandle(struct ll_cu_event **ret_event, struct ll_cu_ipc_event_handle handle)
{
	SIM_ENTER();
	struct sim_world *w = sim_cuda.world;
	struct ll_cu_context *context;
	struct sim_ticket ticket;
	memcpy(&ticket, &handle, sizeof ticket);
	if (!ret_event || !sim_ticket_is(&ticket, SIM_TICKET_EVENT))
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	struct ll_cu_event *event =
	    status ? NULL : sim_event_new(context, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING);
	if (!status && !event)
		status = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (event) {
		sim_lock(w);
		event->is_shared = sim_shared_event_join(w, ticket.slot, ticket.generation, sim_cuda.proc);
		sim_unlock(w);
		event->shared_slot = ticket.slot;
		if (event->is_shared) {
			*ret_event = event;
		} else {
			sim_event_drop(event);
			status = LL_CUDA_ERROR_INVALID_VALUE; /* its process has ended */
		}
	}
	sim_cuda_unlock();
	return status;
}
