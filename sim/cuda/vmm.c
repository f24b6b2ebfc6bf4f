/*
 * cuMemCreate, cuMemAddressReserve, cuMemMap and related functions. The refusals and their statuses are as measured on
 * an H200 (driver 580).
 */
#include "cuda/vmm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "card/defaults.h"
#include "card/engine.h"
#include "card/holding.h"
#include "cuda/enter.h"
#include "cuda/local/allocations.h"

struct reservation {
	uint64_t address;
	uint64_t bytes;
	char *bytes_at; /* a range of host addresses of the same size, in which the mapped bytes are contiguous */
	struct reservation *next;
};

static struct sim_physical *physicals;
static struct reservation *reservations;

struct sim_physical *sim_physical_of(ll_cu_mem_handle handle)
{
	struct sim_physical *p = physicals;
	while (p && (uintptr_t)p != handle)
		p = p->next;
	return p && p->handles ? p : NULL;
}

struct sim_physical *sim_physical_add(const struct sim_physical *model)
{
	struct sim_physical *physical = malloc(sizeof *physical);
	if (!physical)
		return NULL;
	*physical = *model;
	physical->handles = 1;
	physical->next = physicals;
	physicals = physical;
	return physical;
}

void sim_physical_drop(struct sim_physical *physical)
{
	struct sim_physical **link = &physicals;
	while (*link != physical)
		link = &(*link)->next;
	*link = physical->next;
	if (physical->imported_at)
		munmap(physical->imported_at, sim_arena_round(physical->bytes));
	free(physical);
}

/* Bytes of this process that other processes or descriptors still hold. */
struct late_clear {
	uint64_t offset, bytes;
	uint32_t share, generation;
	struct late_clear *next;
};

static struct late_clear *late_clears;

static void clear_later(const struct sim_physical *physical)
{
	struct late_clear *late = malloc(sizeof *late);
	if (!late)
		return;
	*late = (struct late_clear){physical->offset, physical->bytes, physical->share, physical->ticket.generation,
				    late_clears};
	late_clears = late;
}

static void clear_late(void)
{
	for (struct late_clear **link = &late_clears, *late; (late = *link);) {
		sim_lock(sim_cuda.world);
		bool is_held = sim_share_is_held(sim_cuda.world, late->share, late->generation);
		sim_unlock(sim_cuda.world);
		if (is_held) {
			link = &late->next;
			continue;
		}
		sim_arena_clear(late->offset, late->bytes);
		*link = late->next;
		free(late);
	}
}

void sim_physical_settle(struct sim_physical *physical)
{
	struct sim_world *w = sim_cuda.world;
	if (physical->handles || physical->mappings)
		return;
	bool is_held_twice = false; /* imported by its maker, or imported twice */
	for (const struct sim_physical *p = physicals; p; p = p->next)
		is_held_twice |= p != physical && physical->share != SIM_NONE && p->share == physical->share;
	bool is_last = physical->share == SIM_NONE;
	sim_lock(w);
	if (is_last)
		sim_holding_give_back(w, sim_cuda.proc, physical->card, physical->bytes);
	else if (!is_held_twice)
		is_last = sim_share_leave(w, physical->share, sim_cuda.proc);
	sim_unlock(w);
	if (is_last && physical->is_imported)
		sim_ticket_clear(&physical->ticket);
	else if (is_last)
		sim_arena_clear(physical->offset, physical->bytes);
	else if (!physical->is_imported && !is_held_twice)
		clear_later(physical);
	sim_physical_drop(physical);
}

static bool is_whole(uint64_t bytes)
{
	return bytes && bytes % SIM_GRANULARITY_BYTES == 0;
}

static ll_cu_result check_prop(const struct ll_cu_mem_allocation_prop *prop, ll_cu_device *ret_device)
{
	if (!prop || prop->type != LL_CU_MEM_ALLOCATION_TYPE_PINNED)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type > LL_CU_MEM_LOCATION_TYPE_DEVICE)
		return LL_CUDA_ERROR_NOT_SUPPORTED; /* host memory */
	if (!sim_location_is_device(&prop->location, ret_device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	unsigned known = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if (sim_cuda.world->cards[sim_cuda.devices[*ret_device]].has_fabric)
		known |= LL_CU_MEM_HANDLE_TYPE_FABRIC;
	return !((unsigned)prop->handle_types & ~known) ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_NOT_SUPPORTED;
}

ll_cu_result cuMemGetAllocationGranularity(size_t *ret_bytes, const struct ll_cu_mem_allocation_prop *prop,
					   enum ll_cu_mem_granularity_flags option)
{
	SIM_ENTER();
	ll_cu_device device;
	if (!ret_bytes || (unsigned)option > LL_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = check_prop(prop, &device);
	if (status == LL_CUDA_SUCCESS)
		*ret_bytes = SIM_GRANULARITY_BYTES;
	return status;
}

ll_cu_result cuMemCreate(ll_cu_mem_handle *ret_handle, size_t bytes, const struct ll_cu_mem_allocation_prop *prop,
			 unsigned long long flags)
{
	SIM_ENTER();
	struct sim_world *w = sim_cuda.world;
	ll_cu_device device;
	if (!ret_handle || flags || !is_whole(bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = check_prop(prop, &device);
	if (status)
		return status;
	struct sim_physical model = {
	    .prop = *prop, .card = sim_cuda.devices[device], .bytes = bytes, .share = SIM_NONE};
	sim_cuda_lock();
	clear_late();
	sim_lock(w);
	sim_advance_to_now(w);
	bool has_taken = sim_holding_take(w, sim_cuda.proc, model.card, bytes) == 0;
	sim_unlock(w);
	struct sim_physical *physical = NULL;
	if (has_taken && sim_arena_new(bytes, &model.offset) == 0)
		physical = sim_physical_add(&model);
	if (has_taken && !physical) {
		sim_lock(w);
		sim_holding_give_back(w, sim_cuda.proc, model.card, bytes);
		sim_unlock(w);
	}
	if (physical)
		*ret_handle = (uintptr_t)physical;
	sim_cuda_unlock();
	return physical ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

ll_cu_result cuMemRelease(ll_cu_mem_handle handle)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct sim_physical *physical = sim_physical_of(handle);
	if (physical) {
		physical->handles--;
		sim_physical_settle(physical);
	}
	sim_cuda_unlock();
	return physical ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemGetAllocationPropertiesFromHandle(struct ll_cu_mem_allocation_prop *ret_prop, ll_cu_mem_handle handle)
{
	SIM_ENTER();
	sim_cuda_lock();
	const struct sim_physical *physical = ret_prop ? sim_physical_of(handle) : NULL;
	if (physical)
		*ret_prop = physical->prop;
	sim_cuda_unlock();
	return physical ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

static struct sim_memory *find_mapping(uint64_t address)
{
	struct sim_memory *memory = sim_memory_find(address);
	return memory && memory->origin == SIM_ORIGIN_MAPPED && memory->kind == SIM_MEMORY_DEVICE ? memory : NULL;
}

ll_cu_result cuMemRetainAllocationHandle(ll_cu_mem_handle *ret_handle, void *address)
{
	SIM_ENTER();
	sim_cuda_lock();
	const struct sim_memory *memory = ret_handle ? find_mapping((uintptr_t)address) : NULL;
	if (memory) {
		memory->physical->handles++;
		*ret_handle = (uintptr_t)memory->physical;
	}
	sim_cuda_unlock();
	return memory ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemAddressReserve(ll_cu_deviceptr *ret_address, size_t bytes, size_t alignment, ll_cu_deviceptr wish,
				 unsigned long long flags)
{
	SIM_ENTER();
	if (!ret_address || flags || !is_whole(bytes) || alignment & (alignment - 1))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (alignment < SIM_GRANULARITY_BYTES)
		alignment = SIM_GRANULARITY_BYTES;
	sim_cuda_lock();
	struct reservation *r = calloc(1, sizeof *r);
	char *address = sim_addresses_new(bytes, alignment, wish % alignment ? 0 : wish);
	char *bytes_at = sim_addresses_new(bytes, 0, 0);
	bool is_made = r && address && bytes_at;
	if (is_made) {
		*r = (struct reservation){(uintptr_t)address, bytes, bytes_at, reservations};
		reservations = r;
		*ret_address = r->address;
	} else {
		free(r);
		if (address)
			munmap(address, bytes);
		if (bytes_at)
			munmap(bytes_at, bytes);
	}
	sim_cuda_unlock();
	return is_made ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
}

static struct reservation *find_reservation(uint64_t address, uint64_t bytes)
{
	struct reservation *r = reservations;
	while (r && !(address >= r->address && address - r->address < r->bytes))
		r = r->next;
	return r && bytes <= r->bytes - (address - r->address) ? r : NULL;
}

/* The first mapping that ends after address, if it begins before the end. */
static struct sim_memory *first_mapping(uint64_t address, uint64_t end)
{
	struct sim_memory *memory = sim_memory_after(address);
	return memory && memory->address < end ? memory : NULL;
}

ll_cu_result cuMemAddressFree(ll_cu_deviceptr address, size_t bytes)
{
	SIM_ENTER();
	sim_cuda_lock();
	struct reservation **link = &reservations, *r;
	while ((r = *link) && r->address != address)
		link = &r->next;
	bool can = r && r->bytes == bytes && !first_mapping(address, address + bytes);
	if (can) {
		*link = r->next;
		munmap((void *)(uintptr_t)r->address, bytes);
		munmap(r->bytes_at, bytes);
		free(r);
	}
	sim_cuda_unlock();
	return can ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

static ll_cu_result map_physical(const struct reservation *r, uint64_t address, struct sim_physical *physical)
{
	char *at = r->bytes_at + (address - r->address);
	char *mapped = physical->is_imported ? sim_arena_map_again(physical->imported_at, physical->bytes, at)
					     : sim_arena_map(physical->offset, physical->bytes, at);
	struct sim_memory memory = {
	    .address = address,
	    .bytes = physical->bytes,
	    .bytes_at = at,
	    .kind = SIM_MEMORY_DEVICE,
	    .origin = SIM_ORIGIN_MAPPED,
	    .card = physical->card,
	    .offset = SIM_NEVER,
	    .physical = physical,
	    .whole_address = r->address,
	    .whole_bytes = r->bytes,
	    .is_blocked = true,
	};
	if (!mapped)
		return LL_CUDA_ERROR_MAP_FAILED;
	if (sim_memory_insert(&memory) < 0)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	physical->mappings++;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuMemMap(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle,
		      unsigned long long flags)
{
	SIM_ENTER();
	if (flags || offset || !is_whole(bytes) || address % SIM_GRANULARITY_BYTES)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	struct sim_physical *physical = sim_physical_of(handle);
	const struct reservation *r = find_reservation(address, bytes);
	ll_cu_result status;
	if (!physical || !r || bytes > physical->bytes || first_mapping(address, address + bytes))
		status = LL_CUDA_ERROR_INVALID_VALUE;
	else if (bytes < physical->bytes)
		status = LL_CUDA_ERROR_NOT_SUPPORTED; /* only whole mappings, as in the real driver */
	else
		status = map_physical(r, address, physical);
	sim_cuda_unlock();
	return status;
}

/* Accepts only whole mappings. Like the real driver, it does not wait for kernels (doc/facts.md). It waits for copies
 * to and from this memory, so that nothing writes to freed memory. */
static ll_cu_result unmap_range(uint64_t address, uint64_t bytes)
{
	const struct reservation *r = find_reservation(address, bytes);
	uint64_t end = address + bytes;
	struct sim_memory *memory = first_mapping(address, end);
	if (!r)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (const struct sim_memory *m = memory; m && m < sim_cuda.memory + sim_cuda.memory_count; m++) {
		if (m->address < end && (m->address < address || m->address + m->bytes > end))
			return LL_CUDA_ERROR_INVALID_VALUE;
	}
	if (memory)
		sim_wait_bytes(r->bytes_at + (address - r->address), bytes);
	while ((memory = first_mapping(address, end))) {
		struct sim_physical *physical = memory->physical;
		sim_addresses_clear(memory->bytes_at, memory->bytes);
		sim_memory_remove(memory);
		physical->mappings--;
		sim_physical_settle(physical);
	}
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuMemUnmap(ll_cu_deviceptr address, size_t bytes)
{
	SIM_ENTER();
	if (!is_whole(bytes) || address % SIM_GRANULARITY_BYTES)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = unmap_range(address, bytes);
	sim_cuda_unlock();
	return status;
}

static bool are_peers(uint32_t a, uint32_t b)
{
	const struct sim_card *cards = sim_cuda.world->cards;
	return a != b && cards[a].has_peers && cards[b].has_peers;
}

static void allow_access(struct sim_memory *memory, uint32_t card, enum ll_cu_mem_access_flags flags)
{
	uint64_t bit = UINT64_C(1) << card;
	if (card != memory->card) {
		memory->peers = flags == LL_CU_MEM_ACCESS_FLAGS_PROT_NONE ? memory->peers & ~bit : memory->peers | bit;
		return;
	}
	memory->is_blocked = flags == LL_CU_MEM_ACCESS_FLAGS_PROT_NONE;
	memory->flags = flags;
}

static ll_cu_result set_access(uint64_t address, uint64_t bytes, const struct ll_cu_mem_access_desc *desc)
{
	ll_cu_device device;
	uint64_t end = address + bytes, reached = address;
	if (!sim_location_is_device(&desc->location, &device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	struct sim_memory *first = find_mapping(address);
	for (struct sim_memory *m = first; m && reached < end; m++) {
		bool follows = m < sim_cuda.memory + sim_cuda.memory_count && m->origin == SIM_ORIGIN_MAPPED &&
			       m->address == reached && m->address + m->bytes <= end;
		if (!follows)
			return LL_CUDA_ERROR_INVALID_VALUE;
		if (sim_cuda.devices[device] != m->card && !are_peers(sim_cuda.devices[device], m->card))
			return LL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
		reached += m->bytes;
	}
	if (reached < end)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (struct sim_memory *m = first; m->address < end; m++) {
		allow_access(m, sim_cuda.devices[device], desc->flags);
		if (m->address + m->bytes == end)
			break;
	}
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuMemSetAccess(ll_cu_deviceptr address, size_t bytes, const struct ll_cu_mem_access_desc *accesses,
			    size_t count)
{
	SIM_ENTER();
	ll_cu_result status = accesses && count && bytes ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	for (size_t i = 0; !status && i < count; i++)
		status = set_access(address, bytes, &accesses[i]);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMemGetAccess(unsigned long long *ret_flags, const struct ll_cu_mem_location *location,
			    ll_cu_deviceptr address)
{
	SIM_ENTER();
	ll_cu_device device;
	if (!ret_flags || !location)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!sim_location_is_device(location, &device))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	sim_cuda_lock();
	/* The driver also returns it for cuMemAlloc's memory. */
	const struct sim_memory *memory = sim_memory_find(address);
	if (memory && (memory->kind != SIM_MEMORY_DEVICE || memory->origin == SIM_ORIGIN_ARRAY))
		memory = NULL;
	if (memory && sim_cuda.devices[device] == memory->card)
		*ret_flags =
		    memory->origin == SIM_ORIGIN_MAPPED ? memory->flags : LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else if (memory)
		*ret_flags = memory->peers >> sim_cuda.devices[device] & 1 ? LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
	sim_cuda_unlock();
	return memory ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

/* ---- multicast objects and sparse arrays ---- */

/*
 * Multicast objects and sparse arrays are not supported, because this card has no switch. Each call returns that, as on
 * a single H200.
 */

ll_cu_result cuMulticastCreate(ll_cu_mem_handle *ret_handle, const struct ll_cu_multicast_prop *prop)
{
	SIM_ENTER();
	return ret_handle && prop ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastAddDevice(ll_cu_mem_handle handle, ll_cu_device device)
{
	SIM_ENTER();
	(void)handle;
	(void)device;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindMem(ll_cu_mem_handle handle, size_t offset, ll_cu_mem_handle memory, size_t memory_offset,
				size_t bytes, unsigned long long flags)
{
	SIM_ENTER();
	(void)handle;
	(void)offset;
	(void)memory;
	(void)memory_offset;
	(void)bytes;
	(void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindAddr(ll_cu_mem_handle handle, size_t offset, ll_cu_deviceptr address, size_t bytes,
				 unsigned long long flags)
{
	SIM_ENTER();
	(void)handle;
	(void)offset;
	(void)address;
	(void)bytes;
	(void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindMem_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset, ll_cu_mem_handle memory,
				   size_t memory_offset, size_t bytes, unsigned long long flags)
{
	SIM_ENTER();
	(void)handle, (void)device, (void)offset, (void)memory, (void)memory_offset, (void)bytes, (void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastBindAddr_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset,
				    ll_cu_deviceptr address, size_t bytes, unsigned long long flags)
{
	SIM_ENTER();
	(void)handle, (void)device, (void)offset, (void)address, (void)bytes, (void)flags;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastUnbind(ll_cu_mem_handle handle, ll_cu_device device, size_t offset, size_t bytes)
{
	SIM_ENTER();
	(void)handle;
	(void)device;
	(void)offset;
	(void)bytes;
	return LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMulticastGetGranularity(size_t *ret_bytes, const struct ll_cu_multicast_prop *prop,
				       enum ll_cu_multicast_granularity_flags option)
{
	SIM_ENTER();
	(void)option;
	return ret_bytes && prop ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuMemMapArrayAsync(struct ll_cu_array_map_info *infos, unsigned int count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	(void)stream;
	return infos && count ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_ERROR_INVALID_VALUE;
}

/* No other device of this machine accepts a DMA buffer, so a descriptor of one has no use. */
ll_cu_result cuMemGetHandleForAddressRange(void *ret_handle, ll_cu_deviceptr address, size_t bytes,
					   enum ll_cu_mem_range_handle_type type, unsigned long long flags)
{
	SIM_ENTER();
	(void)flags;
	if (!ret_handle || !address || !bytes || type != LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	const struct sim_memory *memory = sim_memory_find(address);
	bool is_memory = memory && memory->kind == SIM_MEMORY_DEVICE;
	bool can = is_memory && sim_cuda.world->cards[memory->card].has_dma_buffers;
	sim_cuda_unlock();
	if (!can)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	int fd = memfd_create("dma-buffer", MFD_CLOEXEC);
	if (fd < 0)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)ret_handle = fd;
	return LL_CUDA_SUCCESS;
}
