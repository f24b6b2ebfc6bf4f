#include "shim/memory/chunks.h"

#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/backing.h"
#include "shim/memory/physical.h"

bool ll_chunks_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_chunk *ret_chunk)
{
	while (ll_extents_next(at)) {
		bool is_physical = at->kind == LL_EXTENT_PHYSICAL;
		if (at->dev != dev || !(is_physical ? ll_physical_is_movable(at) : at->kind == LL_EXTENT_BACKING))
			continue;
		*ret_chunk = (struct ll_chunk){at->kind, at->address, at->bytes, is_physical ? at->real : at->handle};
		return true;
	}
	return false;
}

uint64_t ll_chunks_bytes(const struct ll_device_state *dev)
{
	uint64_t bytes = ll_backing_bytes(dev);
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL};
	while (ll_extents_next(&physical) && physical.kind == LL_EXTENT_PHYSICAL)
		bytes += physical.dev == dev && ll_physical_is_movable(&physical) ? physical.bytes : 0;
	return bytes;
}

uint64_t ll_chunks_charged_bytes(const struct ll_device_state *dev)
{
	uint64_t bytes = atomic_load(&dev->evictable_bytes);
	struct ll_extent physical = {.kind = LL_EXTENT_PHYSICAL};
	while (ll_extents_next(&physical) && physical.kind == LL_EXTENT_PHYSICAL)
		bytes += physical.dev == dev && ll_physical_is_movable(&physical) ? physical.charged_bytes : 0;
	return bytes;
}

void ll_chunk_unmake(const struct ll_chunk *chunk)
{
	if (chunk->kind == LL_EXTENT_PHYSICAL)
		ll_physical_unmake(chunk->address);
	else
		ll_backing_unmake(chunk->address, chunk->bytes, chunk->handle);
}

ll_cu_result ll_chunk_make(const struct ll_device_state *dev, struct ll_chunk *chunk)
{
	if (chunk->kind == LL_EXTENT_PHYSICAL)
		return ll_physical_make(chunk->address, &chunk->handle);
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
	if (status == LL_CUDA_SUCCESS) {
		status = ll_real()->cuMemSetAccess(address, bytes, &access, 1);
		if (status == LL_CUDA_SUCCESS) {
			*ret_address = address;
			return status;
		}
		ll_real()->cuMemUnmap(address, bytes);
	}
	ll_real()->cuMemAddressFree(address, bytes);
	return status;
}

void ll_chunk_unmap_aside(ll_cu_deviceptr address, uint64_t bytes)
{
	ll_real()->cuMemUnmap(address, bytes);
	ll_real()->cuMemAddressFree(address, bytes);
}

/* Fills a chunk of cuMemCreate memory by a mapping of its own, because the program may have mapped the memory read-only
 * or not at all. */
static ll_cu_result fill_aside(const struct ll_device_state *dev, const struct ll_chunk *chunk, uint64_t offset,
			       ll_cu_deviceptr from, uint64_t bytes)
{
	ll_cu_deviceptr address;
	ll_cu_result status = ll_chunk_map_aside(dev, chunk->handle, chunk->bytes, &address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuMemcpy(address + offset, from, bytes);
	ll_chunk_unmap_aside(address, chunk->bytes);
	return status;
}

ll_cu_result ll_chunk_fill(const struct ll_device_state *dev, const struct ll_chunk *chunk, uint64_t offset,
			   ll_cu_deviceptr from, uint64_t bytes)
{
	if (chunk->kind == LL_EXTENT_PHYSICAL)
		return fill_aside(dev, chunk, offset, from, bytes);
	return ll_real()->cuMemcpy(chunk->address + offset, from, bytes);
}
