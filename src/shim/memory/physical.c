#include "shim/memory/physical.h"

#include <stdatomic.h>

static _Atomic uint32_t last_serial;

void ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle)
{
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL,
				     .address = handle,
				     .bytes = charge->bytes,
				     .charged_bytes = charge->bytes,
				     .dev = charge->place.dev,
				     .handles = 1,
				     .serial = ++last_serial};
	if (physical.dev && ll_charge_put(&physical))
		charge->bytes = 0;
}

/* Changes for ll_extents_change on physical memory. They return false when nothing holds the memory any more. */
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

static bool add_mapping(struct ll_extent *physical, uint64_t unused)
{
	(void)unused;
	physical->mappings++;
	return true;
}

static bool drop_mapping(struct ll_extent *physical, uint64_t serial)
{
	physical->mappings -= physical->serial == serial && physical->mappings > 0;
	return physical->handles || physical->mappings;
}

void ll_physical_retain(ll_cu_mem_handle handle)
{
	ll_extents_change(LL_EXTENT_PHYSICAL, handle, add_handle, 0, NULL);
}

/* The count is lowered before the driver is asked, and raised again if the driver refuses: as soon as the driver has
 * released the last handle, other memory may get its number. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle))
{
	struct ll_extent before;
	bool is_counted = ll_extents_change(LL_EXTENT_PHYSICAL, handle, drop_handle, 0, &before) && before.handles;
	bool is_last = is_counted && before.handles == 1 && !before.mappings;
	ll_cu_result status = release(handle);
	if (is_last)
		ll_charge_freed(&before, status);
	else if (is_counted && status != LL_CUDA_SUCCESS)
		ll_physical_retain(handle);
	return status;
}

/* A mapping has ended. If it was the last thing that held the memory, the charge is given back. */
static void forget_mapping(const struct ll_extent *mapping)
{
	struct ll_extent before;
	if (ll_extents_change(LL_EXTENT_PHYSICAL, mapping->handle, drop_mapping, mapping->serial, &before) &&
	    before.serial == mapping->serial && !before.handles && before.mappings == 1)
		ll_charge_release(&before);
}

void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle)
{
	struct ll_extent physical;
	if (!ll_extents_change(LL_EXTENT_PHYSICAL, handle, add_mapping, 0, &physical))
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

/* One call may undo several mappings that lie one after the other. Nobody maps there before the driver has undone them,
 * and the driver keeps the memory until then; so the mappings are forgotten after the call. */
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t))
{
	struct ll_extent mapping = {.address = address - 1};
	ll_cu_result status = unmap(address, bytes);
	if (status != LL_CUDA_SUCCESS)
		return status;
	while (ll_extents_next(&mapping) && ll_extent_has_address(mapping.kind) && mapping.address - address < bytes) {
		if (ll_extents_take(LL_EXTENT_MAPPING, mapping.address, &mapping))
			forget_mapping(&mapping);
	}
	return status;
}
