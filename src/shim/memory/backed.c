#include "shim/memory/backed.h"

#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/backing.h"
#include "shim/memory/contexts.h"
#include "shim/memory/footprint.h"
#include "shim/memory/movable_pool.h"
#include "shim/memory/physical.h"

enum ll_backed ll_backed_find(ll_cu_deviceptr address, struct ll_extent *ret_plain)
{
	struct ll_extent backing;
	if (!ll_device_state_is_governed() || !ll_device_state_settings()->is_evictable)
		return LL_BACKED_NOT;
	if (ll_extents_find_containing(address, ret_plain)) {
		if (ret_plain->kind == LL_EXTENT_MAPPING)
			return LL_BACKED_MAPPING;
		return ret_plain->is_backed ? LL_BACKED_ALLOCATION : LL_BACKED_NOT;
	}
	return ll_extents_find_backing(address, &backing) ? LL_BACKED_GAP : LL_BACKED_NOT;
}

ll_cu_deviceptr ll_backed_hide(ll_cu_deviceptr address)
{
	struct ll_extent plain;
	enum ll_backed what = ll_backed_find(address, &plain);
	return what == LL_BACKED_ALLOCATION || what == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address;
}

void *ll_backed_hide_pointer(void *address)
{
	ll_cu_deviceptr at = (ll_cu_deviceptr)(uintptr_t)address, hidden = ll_backed_hide(at);
	return hidden == at ? address : (void *)(uintptr_t)hidden; /* NOLINT(performance-no-int-to-ptr) */
}

ll_cu_deviceptr ll_backed_hide_gap(ll_cu_deviceptr address)
{
	struct ll_extent plain;
	return ll_backed_find(address, &plain) == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address;
}

/* Returns the id of the physical memory of the allocation. If there are several chunks, this is the id of the first. */
static uint64_t block_id(const struct ll_extent *plain)
{
	struct ll_extent backing = {0};
	ll_extents_find_backing(plain->address, &backing);
	return LL_BACKED_FIRST_ID + backing.serial;
}

/* Returns the blocks of 2 MiB that contain the allocation. Small allocations share one block. */
static struct blocks {
	uint64_t address, bytes;
} blocks_of(const struct ll_extent *plain)
{
	struct ll_extent backing;
	uint64_t bytes = plain->kind == LL_EXTENT_BLOCK ? plain->room_bytes : plain->bytes;
	if (!ll_backing_has_chunks(bytes) && ll_extents_find_backing(plain->address, &backing))
		return (struct blocks){backing.address, backing.bytes};
	return (struct blocks){plain->address, ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES)};
}

/* On a card without a decompression engine, the driver reports memory of cuMemAlloc as capable and mapped memory as not
 * capable (measured: H100, driver 580). So the library reports its memory as capable there. On a card with the engine
 * the driver's answer is right, because the engine cannot decompress into this memory. */
static bool tell_decompress(const struct ll_extent *plain, void *ret_value)
{
	int algorithms;
	if (ll_real()->cuDeviceGetAttribute(&algorithms, LL_CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
					    plain->dev->device) != LL_CUDA_SUCCESS ||
	    algorithms)
		return false;
	*(unsigned *)ret_value = 1;
	return true;
}

/* Returns false if the memory has no stand-in. Then it has the properties that the program asked for. */
static bool find_types(ll_cu_mem_handle number, uint64_t *ret_types)
{
	struct ll_cu_mem_allocation_prop prop = {.handle_types = LL_CU_MEM_HANDLE_TYPE_MAX};
	ll_physical_describe(number, &prop);
	if (prop.handle_types == LL_CU_MEM_HANDLE_TYPE_MAX)
		return false;
	*ret_types = prop.handle_types;
	return true;
}

bool ll_backed_attribute(const struct ll_extent *plain, enum ll_cu_pointer_attribute attribute, void *ret_value)
{
	if (plain->kind == LL_EXTENT_MAPPING)
		return attribute == LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES &&
		       find_types(plain->handle, ret_value);
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_CONTEXT:
		*(struct ll_cu_context **)ret_value = ll_context_of_owner(plain->owner);
		return true;
	case LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)ret_value = plain->is_synced;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)ret_value = LL_BACKED_FIRST_ID + plain->serial;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(uint64_t *)ret_value = block_id(plain);
		return true;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(ll_cu_deviceptr *)ret_value = plain->address;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(ll_cu_deviceptr *)ret_value = blocks_of(plain).address;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)ret_value = plain->bytes;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)ret_value = blocks_of(plain).bytes;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return plain->kind == LL_EXTENT_PLAIN && tell_decompress(plain, ret_value);
	case LL_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: /* memory of pools is not capable */
		if (plain->kind == LL_EXTENT_BLOCK)
			*(unsigned *)ret_value = 0;
		return plain->kind == LL_EXTENT_BLOCK;
	case LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)ret_value = LL_CU_MEM_HANDLE_TYPE_NONE;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)ret_value = plain->kind == LL_EXTENT_PLAIN;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(struct ll_cu_mem_pool **)ret_value =
		    plain->kind == LL_EXTENT_BLOCK ? ll_movable_pool_handle(plain->movable) : NULL;
		return true;
	default:
		return false;
	}
}

static bool set_is_synced(struct ll_extent *plain, uint64_t is_synced)
{
	plain->is_synced = is_synced != 0;
	return true;
}

ll_cu_result ll_backed_set_synced(const struct ll_extent *plain, bool is_synced)
{
	unsigned int flags;
	ll_cu_result status = LL_CUDA_SUCCESS;
	if (is_synced)
		status = ll_real()->cuCtxGetFlags(&flags);
	if (is_synced && status == LL_CUDA_SUCCESS && !(flags & LL_CU_CTX_SYNC_MEMOPS))
		status = ll_real()->cuCtxSetFlags(flags | LL_CU_CTX_SYNC_MEMOPS);
	if (status == LL_CUDA_SUCCESS)
		ll_extents_change(plain->kind, plain->address, set_is_synced, is_synced, NULL);
	return status;
}

static bool set_is_exported(struct ll_extent *plain, uint64_t unused)
{
	(void)unused;
	plain->is_exported = true;
	return true;
}

void ll_backed_note_exported(const struct ll_extent *plain)
{
	struct ll_extent before;
	if (ll_extents_change(plain->kind, plain->address, set_is_exported, 0, &before) && !before.is_exported)
		atomic_fetch_add(&before.dev->exported_count, 1);
}
