#include "shim/memory/memory.h"

#include <stdatomic.h>

#include "shim/device_state.h"
#include "shim/interpose/real.h"

/* The first stand-in. It is above all addresses of a program. The driver's handles are addresses or small numbers, so
 * no handle is in this range. */
#define STAND_IN_FIRST (UINT64_C(0x4c4c) << 48)

static _Atomic uint32_t last_serial;

static bool is_stand_in(ll_cu_mem_handle number)
{
	return number >> 48 == STAND_IN_FIRST >> 48;
}

bool ll_physical_can_move(const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags)
{
	return !flags && prop->type == LL_CU_MEM_ALLOCATION_TYPE_PINNED &&
	       prop->location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE && !prop->win32 && !prop->compression &&
	       !prop->usage && !((unsigned)prop->handle_types & ~(unsigned)LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

struct ll_cu_mem_allocation_prop ll_physical_movable(const struct ll_cu_mem_allocation_prop *prop)
{
	struct ll_cu_mem_allocation_prop movable = *prop;
	movable.handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	return movable;
}

ll_cu_mem_handle ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle,
				 const struct ll_cu_mem_allocation_prop *asked)
{
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL,
				     .address = handle,
				     .bytes = charge->bytes,
				     .charged_bytes = charge->bytes,
				     .dev = charge->target.dev,
				     .handles = 1,
				     .serial = ++last_serial};
	if (asked) {
		physical.address = STAND_IN_FIRST + physical.serial;
		physical.real = handle;
		physical.is_stand_in = true;
		physical.is_rdma_capable = asked->is_rdma_capable;
		physical.handle_types = (uint8_t)asked->handle_types;
	}
	if (!physical.dev || !ll_charge_put(&physical))
		return handle;
	charge->bytes = 0;
	return physical.address;
}

bool ll_physical_find(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle)
{
	struct ll_extent physical;
	*ret_handle = number;
	if (!is_stand_in(number))
		return true;
	if (!ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical) || !physical.handles)
		return false;
	*ret_handle = physical.real;
	return true;
}

LL_EXTENT_SETTER(set_is_pinned, is_pinned)

void ll_physical_pin(ll_cu_mem_handle number)
{
	if (is_stand_in(number))
		ll_extents_change(LL_EXTENT_PHYSICAL, number, set_is_pinned, true, NULL);
}

void ll_physical_pin_range(ll_cu_deviceptr address, size_t bytes)
{
	struct ll_extent mapping;
	if (ll_extents_find_containing(address, &mapping) && mapping.kind == LL_EXTENT_MAPPING)
		ll_physical_pin(mapping.handle);
	mapping = (struct ll_extent){.address = address};
	while (ll_extents_next(&mapping) && ll_extent_has_address(mapping.kind) && mapping.address - address < bytes) {
		if (mapping.kind == LL_EXTENT_MAPPING)
			ll_physical_pin(mapping.handle);
	}
}

bool ll_physical_may_export(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type)
{
	struct ll_extent physical;
	if (!is_stand_in(number) || !ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical))
		return true;
	return physical.handle_types & (unsigned)type;
}

void ll_physical_describe(ll_cu_mem_handle number, struct ll_cu_mem_allocation_prop *prop)
{
	struct ll_extent physical;
	if (!is_stand_in(number) || !ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical))
		return;
	prop->handle_types = (enum ll_cu_mem_handle_type)physical.handle_types;
	prop->is_rdma_capable = physical.is_rdma_capable;
}

/* Functions for ll_extents_change on physical memory. They return false when no handle and no mapping holds the memory.
 */
static bool add_handle(struct ll_extent *physical, uint64_t unused)
{
	(void)unused;
	physical->handles++;
	return true;
}

static bool drop_handle(struct ll_extent *physical, uint64_t unused)
{
	(void)unused;
	physical->handles -= physical->handles > 0;
	return physical->handles || physical->mappings;
}

static bool add_mapping(struct ll_extent *physical, uint64_t address)
{
	physical->mappings++;
	physical->mapped_at = address;
	return true;
}

static bool drop_mapping(struct ll_extent *physical, uint64_t serial)
{
	physical->mappings -= physical->serial == serial && physical->mappings > 0;
	return physical->handles || physical->mappings;
}

bool ll_physical_retain(ll_cu_mem_handle handle)
{
	return ll_extents_change(LL_EXTENT_PHYSICAL, handle, add_handle, 0, NULL);
}

/* ---- exported and imported ---- */

void ll_physical_exported(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type, const void *shareable)
{
	if (type == LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		ll_exported_as_descriptor(LL_EXTENT_PHYSICAL, number, *(const int *)shareable);
	else if (type == LL_CU_MEM_HANDLE_TYPE_FABRIC)
		ll_exported_as_bytes(LL_EXTENT_PHYSICAL, number, shareable, LL_CU_MEM_FABRIC_HANDLE_BYTES);
}

ll_cu_result ll_physical_imported(ll_cu_mem_handle handle, enum ll_cu_mem_handle_type type, const void *shareable)
{
	/* If the handle is known, this process made the memory or imported it before. */
	struct ll_cu_mem_allocation_prop prop;
	if (ll_physical_retain(handle) ||
	    ll_real()->cuMemGetAllocationPropertiesFromHandle(&prop, handle) != LL_CUDA_SUCCESS ||
	    prop.location.type != LL_CU_MEM_LOCATION_TYPE_DEVICE)
		return LL_CUDA_SUCCESS;
	struct ll_charge_target target = ll_charge_target_of_device(prop.location.id);
	ll_cu_result status = target.refusal;
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL, .address = handle, .dev = target.dev, .handles = 1};
	if (target.dev) {
		physical.serial = ++last_serial;
		physical.shared = type == LL_CU_MEM_HANDLE_TYPE_FABRIC
				      ? ll_exported_id_of_bytes(target.dev, shareable, LL_CU_MEM_FABRIC_HANDLE_BYTES)
				      : ll_exported_id_of_descriptor(target.dev, (int)(intptr_t)shareable);
		status = ll_exported_hold(target.dev, physical.shared, 0);
	}
	if (status != LL_CUDA_SUCCESS)
		ll_real()->cuMemRelease(handle);
	else if (target.dev && !ll_charge_put(&physical))
		ll_exported_drop(physical.shared);
	return status;
}

LL_EXTENT_SETTER(set_bytes, bytes)

ll_cu_result ll_physical_before_map(ll_cu_mem_handle number, size_t bytes)
{
	struct ll_extent physical;
	if (!ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical) || !physical.shared || physical.bytes)
		return LL_CUDA_SUCCESS;
	uint64_t whole_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES);
	ll_cu_result status = ll_exported_set_size(physical.dev, physical.shared, whole_bytes);
	if (status == LL_CUDA_SUCCESS)
		ll_extents_change(LL_EXTENT_PHYSICAL, number, set_bytes, whole_bytes, NULL);
	return status;
}

/* Adds a handle if the extent is of the same memory. */
static bool add_handle_of(struct ll_extent *physical, uint64_t serial)
{
	physical->handles += physical->serial == serial;
	return true;
}

bool ll_physical_retain_at(uint64_t address, ll_cu_mem_handle *ret_number)
{
	struct ll_extent mapping, physical;
	if (!ll_extents_find_containing(address, &mapping) || mapping.kind != LL_EXTENT_MAPPING ||
	    !is_stand_in(mapping.handle))
		return false;
	bool is_found =
	    ll_extents_change(LL_EXTENT_PHYSICAL, mapping.handle, add_handle_of, mapping.serial, &physical) &&
	    physical.serial == mapping.serial;
	if (is_found)
		*ret_number = mapping.handle;
	return is_found;
}

/* Releases the memory of a stand-in that the program no longer holds. */
static ll_cu_result let_go(const struct ll_extent *physical, ll_cu_result (*release)(ll_cu_mem_handle))
{
	ll_cu_result status = release(physical->real);
	ll_charge_freed(physical, status);
	return status;
}

static ll_cu_result release_stand_in(ll_cu_mem_handle number, ll_cu_result (*release)(ll_cu_mem_handle))
{
	struct ll_extent before;
	if (!ll_extents_change(LL_EXTENT_PHYSICAL, number, drop_handle, 0, &before) || !before.handles)
		return LL_CUDA_ERROR_INVALID_VALUE;
	bool is_last = before.handles == 1 && !before.mappings;
	return is_last ? let_go(&before, release) : LL_CUDA_SUCCESS;
}

/* Lowers the count before the driver's call, and raises it again if the driver refuses. When the driver has released
 * the last handle, other memory may get the same number at once. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle))
{
	struct ll_extent before;
	if (is_stand_in(handle))
		return release_stand_in(handle, release);
	bool is_counted = ll_extents_change(LL_EXTENT_PHYSICAL, handle, drop_handle, 0, &before) && before.handles;
	bool is_last = is_counted && before.handles == 1 && !before.mappings;
	ll_cu_result status = release(handle);
	if (is_last)
		ll_charge_freed(&before, status);
	else if (is_counted && status != LL_CUDA_SUCCESS)
		ll_physical_retain(handle);
	return status;
}

/* Notes that a mapping has ended. If no other mapping and no handle holds the memory, returns the charge. */
static void forget_mapping(const struct ll_extent *mapping)
{
	struct ll_extent before;
	if (!ll_extents_change(LL_EXTENT_PHYSICAL, mapping->handle, drop_mapping, mapping->serial, &before) ||
	    before.serial != mapping->serial || before.handles || before.mappings != 1)
		return;
	if (before.is_stand_in)
		let_go(&before, ll_real()->cuMemRelease);
	else
		ll_charge_release(&before);
}

void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle)
{
	struct ll_extent physical;
	if (!ll_extents_change(LL_EXTENT_PHYSICAL, handle, add_mapping, address, &physical))
		return;
	struct ll_extent mapping = {.kind = LL_EXTENT_MAPPING,
				    .address = address,
				    .bytes = bytes,
				    .dev = physical.dev,
				    .handle = handle,
				    .offset = offset,
				    .serial = physical.serial};
	if (!ll_charge_put(&mapping))
		forget_mapping(&mapping);
}

struct access_change {
	uint64_t cleared, set;
};

static void add_access(struct access_change *change, const struct ll_cu_mem_access_desc *desc)
{
	bool is_card = desc->location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE && desc->location.id >= 0 &&
		       desc->location.id < LL_PHYSICAL_CARDS;
	if (!is_card) {
		change->set |= desc->flags == LL_CU_MEM_ACCESS_FLAGS_PROT_NONE ? 0 : LL_PHYSICAL_ACCESS_ELSEWHERE;
		return;
	}
	unsigned shift = 2 * (unsigned)desc->location.id;
	uint64_t mask = UINT64_C(3) << shift;
	change->cleared |= mask;
	change->set = (change->set & ~mask) | ((uint64_t)desc->flags << shift & mask);
}

static bool change_access(struct ll_extent *mapping, uint64_t argument)
{
	const struct access_change *change = (const void *)(uintptr_t)argument;
	mapping->access = (mapping->access & ~change->cleared) | change->set;
	return true;
}

void ll_physical_accessed(ll_cu_deviceptr address, size_t bytes, const struct ll_cu_mem_access_desc *accesses,
			  size_t count)
{
	struct access_change change = {0};
	struct ll_extent mapping = {.address = address - 1};
	for (size_t i = 0; i < count; i++)
		add_access(&change, &accesses[i]);
	while (ll_extents_next(&mapping) && ll_extent_has_address(mapping.kind) && mapping.address - address < bytes)
		ll_extents_change(LL_EXTENT_MAPPING, mapping.address, change_access, (uintptr_t)&change, NULL);
}

/* One call may remove several adjacent mappings. The mappings are removed from the map after the driver's call, because
 * until then no other mapping can be at these addresses and the driver keeps the memory. */
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t))
{
	struct ll_extent mapping = {.address = address - 1};
	ll_cu_result status = unmap(address, bytes);
	if (status != LL_CUDA_SUCCESS)
		return status;
	while (ll_extents_next(&mapping) && ll_extent_has_address(mapping.kind) && mapping.address - address < bytes) {
		if (ll_extents_remove(LL_EXTENT_MAPPING, mapping.address, &mapping))
			forget_mapping(&mapping);
	}
	return status;
}

/* ---- moves ---- */

/* Calls visit() for each mapping of the memory, until it returns an error. */
static ll_cu_result visit_mappings(const struct ll_extent *physical,
				   ll_cu_result (*visit)(const struct ll_extent *mapping,
							 const struct ll_extent *physical))
{
	struct ll_extent mapping = {0};
	uint32_t left = physical->mappings;
	ll_cu_result status = LL_CUDA_SUCCESS;
	/* Nearly all memory is mapped once. In this case no search of the map is needed. */
	if (left == 1 && ll_extents_find(LL_EXTENT_MAPPING, physical->mapped_at, &mapping) &&
	    mapping.handle == physical->address && mapping.serial == physical->serial)
		return visit(&mapping, physical);
	mapping = (struct ll_extent){0};
	while (left && status == LL_CUDA_SUCCESS && ll_extents_next(&mapping) && ll_extent_has_address(mapping.kind)) {
		if (mapping.kind != LL_EXTENT_MAPPING || mapping.handle != physical->address ||
		    mapping.serial != physical->serial)
			continue;
		left--;
		status = visit(&mapping, physical);
	}
	return status;
}

static ll_cu_result check_host_cannot_see(const struct ll_extent *mapping, const struct ll_extent *physical)
{
	(void)physical;
	return mapping->access & LL_PHYSICAL_ACCESS_ELSEWHERE ? LL_CUDA_ERROR_NOT_SUPPORTED : LL_CUDA_SUCCESS;
}

/* Returns whether the memory of this extent, of kind LL_EXTENT_PHYSICAL, can be evicted now. */
static bool physical_is_movable(const struct ll_extent *physical)
{
	return physical->is_stand_in && !physical->is_pinned &&
	       visit_mappings(physical, check_host_cannot_see) == LL_CUDA_SUCCESS;
}

static ll_cu_result undo_mapping(const struct ll_extent *mapping, const struct ll_extent *physical)
{
	(void)physical;
	ll_real()->cuMemUnmap(mapping->address, mapping->bytes);
	return LL_CUDA_SUCCESS;
}

/* physical_unmake removes all mappings of the memory and releases it. physical_make makes the memory again, and
 * maps it at the same addresses with the same rights. number: the stand-in. */
static void physical_unmake(ll_cu_mem_handle number)
{
	struct ll_extent physical;
	if (!ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical))
		return;
	visit_mappings(&physical, undo_mapping);
	ll_real()->cuMemRelease(physical.real);
}

static ll_cu_result map_again(const struct ll_extent *mapping, const struct ll_extent *physical)
{
	struct ll_cu_mem_access_desc accesses[LL_PHYSICAL_CARDS];
	size_t count = 0;
	ll_cu_result status = ll_real()->cuMemMap(mapping->address, mapping->bytes, mapping->offset, physical->real, 0);
	for (int card = 0; card < LL_PHYSICAL_CARDS; card++) {
		enum ll_cu_mem_access_flags flags = ll_physical_access(mapping, card);
		if (flags != LL_CU_MEM_ACCESS_FLAGS_PROT_NONE)
			accesses[count++] = (struct ll_cu_mem_access_desc){
			    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, card}, .flags = flags};
	}
	if (status != LL_CUDA_SUCCESS || !count)
		return status;
	return ll_real()->cuMemSetAccess(mapping->address, mapping->bytes, accesses, count);
}

LL_EXTENT_SETTER(set_real, real)

static ll_cu_result physical_make(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle)
{
	struct ll_extent physical;
	if (!ll_extents_find(LL_EXTENT_PHYSICAL, number, &physical))
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_cu_mem_allocation_prop prop = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
	    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, physical.dev->device},
	    .is_rdma_capable = physical.is_rdma_capable,
	};
	ll_cu_mem_handle handle;
	ll_cu_result status = ll_real()->cuMemCreate(&handle, physical.bytes, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	physical.real = handle;
	ll_extents_change(LL_EXTENT_PHYSICAL, number, set_real, handle, NULL);
	status = visit_mappings(&physical, map_again);
	if (status == LL_CUDA_SUCCESS)
		*ret_handle = handle;
	else
		physical_unmake(number);
	return status;
}

/* ---- all memory that can be moved, chunk by chunk ---- */

bool ll_chunks_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_chunk *ret_chunk)
{
	while (ll_extents_next(at)) {
		bool is_physical = at->kind == LL_EXTENT_PHYSICAL;
		if (at->dev != dev || !(is_physical ? physical_is_movable(at) : at->kind == LL_EXTENT_BACKING))
			continue;
		*ret_chunk = (struct ll_chunk){at->kind, at->address, at->bytes, is_physical ? at->real : at->handle};
		return true;
	}
	return false;
}

/* Adds the memory of cuMemCreate that can be moved: its size, or its charge. */
static uint64_t add_physical(const struct ll_device_state *dev, bool is_charge, uint64_t bytes)
{
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL};
	while (ll_extents_next(&physical) && physical.kind == LL_EXTENT_PHYSICAL) {
		if (physical.dev == dev && physical_is_movable(&physical))
			bytes += is_charge ? physical.charged_bytes : physical.bytes;
	}
	return bytes;
}

uint64_t ll_chunks_bytes(const struct ll_device_state *dev)
{
	return add_physical(dev, false, ll_backing_bytes(dev));
}

uint64_t ll_chunks_charged_bytes(const struct ll_device_state *dev)
{
	return add_physical(dev, true, atomic_load(&dev->evictable_bytes));
}

void ll_chunk_unmake(const struct ll_chunk *chunk)
{
	if (chunk->kind == LL_EXTENT_PHYSICAL)
		physical_unmake(chunk->address);
	else
		ll_backing_unmake(chunk->address, chunk->bytes, chunk->handle);
}

ll_cu_result ll_chunk_make(const struct ll_device_state *dev, struct ll_chunk *chunk)
{
	if (chunk->kind == LL_EXTENT_PHYSICAL)
		return physical_make(chunk->address, &chunk->handle);
	uint64_t handle;
	ll_cu_result status = ll_backing_make(dev->device, chunk->address, chunk->bytes, &handle);
	if (status == LL_CUDA_SUCCESS)
		chunk->handle = handle;
	return status;
}

void ll_chunk_note(const struct ll_chunk *chunk)
{
	if (chunk->kind == LL_EXTENT_BACKING)
		ll_backing_note(chunk->address, chunk->handle);
}

ll_cu_result ll_chunk_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address)
{
	struct ll_cu_mem_access_desc access = {.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, dev->device},
					       .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	ll_cu_deviceptr address;
	ll_cu_result status = ll_real()->cuMemAddressReserve(&address, bytes, 0, 0, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuMemMap(address, bytes, 0, handle, 0);
	bool is_mapped = status == LL_CUDA_SUCCESS;
	if (is_mapped)
		status = ll_real()->cuMemSetAccess(address, bytes, &access, 1);
	if (status == LL_CUDA_SUCCESS) {
		*ret_address = address;
		return status;
	}
	if (is_mapped)
		ll_real()->cuMemUnmap(address, bytes);
	ll_real()->cuMemAddressFree(address, bytes);
	return status;
}

void ll_chunk_unmap_aside(ll_cu_deviceptr address, uint64_t bytes)
{
	ll_real()->cuMemUnmap(address, bytes);
	ll_real()->cuMemAddressFree(address, bytes);
}
