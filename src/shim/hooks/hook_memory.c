/* Allocations that last until they are freed: plain and managed ones, arrays, and memory that another API made.
 * cuMemFree frees blocks of pools too. */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/pools.h"
#include "shim/time/driver_calls.h"

/* ---- plain and managed ---- */

/* The body of an allocation whose size is known: reserve, call, keep. */
#define ALLOCATE(call, bytes_taken)                                                                                    \
	LL_REENTRY_SCOPE();                                                                                            \
	LL_CHARGE(charge, ll_place_current(), bytes_taken);                                                            \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS)                                                                                 \
		ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes);                                         \
	return status

/* What the program surely has of rows that it asked for: the driver need not pad the last one. */
static uint64_t rows_bytes(uint64_t width_bytes, uint64_t height, uint64_t pitch_bytes)
{
	return height ? pitch_bytes * (height - 1) + width_bytes : 0;
}

/* The driver chooses the pitch: rows may be longer than was foretold. */
#define ALLOCATE_ROWS(call)                                                                                            \
	LL_REENTRY_SCOPE();                                                                                            \
	LL_CHARGE(charge, ll_place_current(), ll_footprint_pitched(width_bytes, height));                              \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS) {                                                                               \
		ll_charge_correct(&charge, ll_footprint_pitched(*ret_pitch_bytes, height));                            \
		ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address,                                                 \
			       rows_bytes(width_bytes, height, *ret_pitch_bytes));                                     \
	}                                                                                                              \
	return status

#define FREE(call)                                                                                                     \
	LL_REENTRY_SCOPE();                                                                                            \
	struct ll_extent extent;                                                                                       \
	bool is_plain = ll_extents_take(LL_EXTENT_PLAIN, address, &extent);                                            \
	bool is_block = !is_plain && ll_pool_take(address, &extent);                                                   \
	ll_cu_result status = call;                                                                                    \
	if (is_plain)                                                                                                  \
		ll_charge_freed(&extent, status);                                                                      \
	if (is_block)                                                                                                  \
		ll_pool_freed(&extent, status);                                                                        \
	return status

LL_HOOK_EXPORT ll_cu_result cuMemAlloc(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes)
{
	LL_DRIVER_CALL(cuMemAlloc);
	if (ll_charge_passes())
		return ll_real()->cuMemAlloc(ret_address, bytes);
	ALLOCATE(ll_real()->cuMemAlloc(ret_address, bytes), ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	LL_DRIVER_CALL(cuMemAlloc_v2);
	if (ll_charge_passes())
		return ll_real()->cuMemAlloc_v2(ret_address, bytes);
	ALLOCATE(ll_real()->cuMemAlloc_v2(ret_address, bytes), ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAllocPitch(ll_cu_deviceptr_v1 *ret_address, unsigned int *ret_pitch_bytes,
					    unsigned int width_bytes, unsigned int height, unsigned int element_bytes)
{
	LL_DRIVER_CALL(cuMemAllocPitch);
	if (ll_charge_passes())
		return ll_real()->cuMemAllocPitch(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes);
	ALLOCATE_ROWS(ll_real()->cuMemAllocPitch(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemAllocPitch_v2(ll_cu_deviceptr *ret_address, size_t *ret_pitch_bytes,
					       size_t width_bytes, size_t height, unsigned int element_bytes)
{
	LL_DRIVER_CALL(cuMemAllocPitch_v2);
	if (ll_charge_passes())
		return ll_real()->cuMemAllocPitch_v2(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes);
	ALLOCATE_ROWS(ll_real()->cuMemAllocPitch_v2(ret_address, ret_pitch_bytes, width_bytes, height, element_bytes));
}

/* In full from the start, wherever its pages are: they may all come to the card. */
LL_HOOK_EXPORT ll_cu_result cuMemAllocManaged(ll_cu_deviceptr *ret_address, size_t bytes, unsigned int flags)
{
	LL_DRIVER_CALL(cuMemAllocManaged);
	if (ll_charge_passes())
		return ll_real()->cuMemAllocManaged(ret_address, bytes, flags);
	ALLOCATE(ll_real()->cuMemAllocManaged(ret_address, bytes, flags), ll_footprint_plain(bytes));
}

LL_HOOK_EXPORT ll_cu_result cuMemFree(ll_cu_deviceptr_v1 address)
{
	LL_DRIVER_CALL(cuMemFree);
	if (ll_charge_passes())
		return ll_real()->cuMemFree(address);
	FREE(ll_real()->cuMemFree(address));
}

LL_HOOK_EXPORT ll_cu_result cuMemFree_v2(ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuMemFree_v2);
	if (ll_charge_passes())
		return ll_real()->cuMemFree_v2(address);
	FREE(ll_real()->cuMemFree_v2(address));
}

/* ---- arrays and mipmaps ---- */

/* Arrays and mipmaps. The driver says what one takes only of those that take nothing yet, so its tiles are counted
 * here. */
static struct ll_cu_array3d_descriptor as_3d(const struct ll_cu_array_descriptor *d)
{
	return (struct ll_cu_array3d_descriptor){
	    .width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
}

static struct ll_cu_array3d_descriptor from_v1(const struct ll_cu_array_descriptor_v1 *d)
{
	return (struct ll_cu_array3d_descriptor){
	    .width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
}

static struct ll_cu_array3d_descriptor from_3d_v1(const struct ll_cu_array3d_descriptor_v1 *d)
{
	return (struct ll_cu_array3d_descriptor){.width = d->width,
						 .height = d->height,
						 .depth = d->depth,
						 .format = d->format,
						 .channels = d->channels,
						 .flags = d->flags};
}

#define CREATE(kind, call, ret_handle, given, levels)                                                                  \
	LL_REENTRY_SCOPE();                                                                                            \
	struct ll_cu_array3d_descriptor shape = given;                                                                 \
	LL_CHARGE(charge, ll_place_current(), ll_footprint_array(&shape, levels));                                     \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS)                                                                                 \
		ll_charge_keep(&charge, kind, ll_extent_handle(*(ret_handle)), 0);                                     \
	return status

LL_HOOK_EXPORT ll_cu_result cuArrayCreate(struct ll_cu_array **ret_array,
					  const struct ll_cu_array_descriptor_v1 *descriptor)
{
	LL_DRIVER_CALL(cuArrayCreate);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArrayCreate(ret_array, descriptor);
	CREATE(LL_EXTENT_ARRAY, ll_real()->cuArrayCreate(ret_array, descriptor), ret_array, from_v1(descriptor), 1);
}

LL_HOOK_EXPORT ll_cu_result cuArrayCreate_v2(struct ll_cu_array **ret_array,
					     const struct ll_cu_array_descriptor *descriptor)
{
	LL_DRIVER_CALL(cuArrayCreate_v2);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArrayCreate_v2(ret_array, descriptor);
	CREATE(LL_EXTENT_ARRAY, ll_real()->cuArrayCreate_v2(ret_array, descriptor), ret_array, as_3d(descriptor), 1);
}

LL_HOOK_EXPORT ll_cu_result cuArray3DCreate(struct ll_cu_array **ret_array,
					    const struct ll_cu_array3d_descriptor_v1 *descriptor)
{
	LL_DRIVER_CALL(cuArray3DCreate);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArray3DCreate(ret_array, descriptor);
	CREATE(LL_EXTENT_ARRAY, ll_real()->cuArray3DCreate(ret_array, descriptor), ret_array, from_3d_v1(descriptor),
	       1);
}

LL_HOOK_EXPORT ll_cu_result cuArray3DCreate_v2(struct ll_cu_array **ret_array,
					       const struct ll_cu_array3d_descriptor *descriptor)
{
	LL_DRIVER_CALL(cuArray3DCreate_v2);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArray3DCreate_v2(ret_array, descriptor);
	CREATE(LL_EXTENT_ARRAY, ll_real()->cuArray3DCreate_v2(ret_array, descriptor), ret_array, *descriptor, 1);
}

LL_HOOK_EXPORT ll_cu_result cuMipmappedArrayCreate(struct ll_cu_mipmapped_array **ret_mipmap,
						   const struct ll_cu_array3d_descriptor *descriptor,
						   unsigned int levels)
{
	LL_DRIVER_CALL(cuMipmappedArrayCreate);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuMipmappedArrayCreate(ret_mipmap, descriptor, levels);
	CREATE(LL_EXTENT_MIPMAP, ll_real()->cuMipmappedArrayCreate(ret_mipmap, descriptor, levels), ret_mipmap,
	       *descriptor, levels);
}

#define DESTROY(kind, symbol, handle)                                                                                  \
	struct ll_extent extent;                                                                                       \
	if (ll_charge_passes())                                                                                        \
		return ll_real()->symbol(handle);                                                                      \
	LL_REENTRY_SCOPE();                                                                                            \
	bool is_known = ll_extents_take(kind, ll_extent_handle(handle), &extent);                                      \
	ll_cu_result status = ll_real()->symbol(handle);                                                               \
	if (is_known)                                                                                                  \
		ll_charge_freed(&extent, status);                                                                      \
	return status

LL_HOOK_EXPORT ll_cu_result cuArrayDestroy(struct ll_cu_array *array)
{
	LL_DRIVER_CALL(cuArrayDestroy);
	DESTROY(LL_EXTENT_ARRAY, cuArrayDestroy, array);
}

LL_HOOK_EXPORT ll_cu_result cuMipmappedArrayDestroy(struct ll_cu_mipmapped_array *mipmap)
{
	LL_DRIVER_CALL(cuMipmappedArrayDestroy);
	DESTROY(LL_EXTENT_MIPMAP, cuMipmappedArrayDestroy, mipmap);
}

/* ---- memory that another API or process made ---- */

/*
 * Memory that another API or process made. What comes from another CUDA process (IPC handles, shareable handles, pools)
 * is charged to that process alone, and has no hooks. What comes from elsewhere (Vulkan, a file descriptor) nobody is
 * charged for yet: its size, to the importer.
 */
LL_HOOK_EXPORT ll_cu_result cuImportExternalMemory(struct ll_cu_external_memory **ret_memory,
						   const struct ll_cu_external_memory_desc *descriptor)
{
	LL_DRIVER_CALL(cuImportExternalMemory);
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuImportExternalMemory(ret_memory, descriptor);
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_place_current(), ll_footprint_plain(descriptor->bytes));
	if (charge.is_refused)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	ll_cu_result status = ll_real()->cuImportExternalMemory(ret_memory, descriptor);
	if (status == LL_CUDA_SUCCESS)
		ll_charge_keep(&charge, LL_EXTENT_EXTERNAL, ll_extent_handle(*ret_memory), 0);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuDestroyExternalMemory(struct ll_cu_external_memory *memory)
{
	LL_DRIVER_CALL(cuDestroyExternalMemory);
	struct ll_extent extent;
	if (ll_charge_passes())
		return ll_real()->cuDestroyExternalMemory(memory);
	LL_REENTRY_SCOPE();
	bool is_known = ll_extents_take(LL_EXTENT_EXTERNAL, ll_extent_handle(memory), &extent);
	ll_cu_result status = ll_real()->cuDestroyExternalMemory(memory);
	if (is_known)
		ll_charge_freed(&extent, status);
	return status;
}
