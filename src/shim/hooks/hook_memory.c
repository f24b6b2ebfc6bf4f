/* Hooks of allocations that last until they are freed: plain and managed allocations, arrays, and memory that another
 * API made. cuMemFree frees blocks of pools too. */
#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"
#include "shim/residency/residency.h"
#include "shim/time/driver_calls.h"

/* ---- plain and managed ---- */

/*
 * Defines the hook of a function that takes card_bytes of the card: it reserves them, calls the driver, and keeps the
 * charge. passes: a further case in which the call passes. waits_on: the card whose lack of memory the call may wait
 * for. keep: what is done after a call that succeeded.
 */
#define CHARGED_HOOK(symbol, params, args, passes, card_bytes, waits_on, keep)                                         \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_charge_passes() || (passes))                                                                    \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		LL_CHARGE(charge, ll_charge_target_current(), card_bytes);                                             \
		if (charge.refusal)                                                                                    \
			return charge.refusal;                                                                         \
		LL_CHARGED_CALL(status, waits_on, ll_real()->symbol args);                                             \
		if (status == LL_CUDA_SUCCESS) {                                                                       \
			keep;                                                                                          \
		}                                                                                                      \
		return status;                                                                                         \
	}

#define ALLOCATE_HOOK(symbol, params, args, bytes)                                                                     \
	CHARGED_HOOK(symbol, params, args, ll_charge_is_hopeless(ret_address, bytes), ll_footprint_plain(bytes),       \
		     charge.target.dev, ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes, 0))

ALLOCATE_HOOK(cuMemAlloc, (ll_cu_deviceptr_v1 * ret_address, unsigned int bytes), (ret_address, bytes), bytes)

LL_HOOK_EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	LL_DRIVER_CALL(cuMemAlloc_v2);
	if (ll_charge_passes() || ll_charge_is_hopeless(ret_address, bytes))
		return ll_real()->cuMemAlloc_v2(ret_address, bytes);
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_charge_target_current(), ll_footprint_plain(bytes));
	if (charge.refusal)
		return charge.refusal;
	struct ll_device_state *dev = charge.target.dev;
	uint32_t serial = 0;
	bool can_move = dev && bytes && ll_device_state_settings()->is_evictable && ll_residency_backs(dev);
	LL_CHARGED_CALL(status, dev,
			can_move ? ll_plain_make(dev, bytes, ret_address, &serial)
				 : ll_real()->cuMemAlloc_v2(ret_address, bytes));
	if (status == LL_CUDA_SUCCESS)
		ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes, serial);
	return status;
}

/* Managed memory is charged in full from the start, even if its pages are on the host, because all of them may move to
 * the card. */
ALLOCATE_HOOK(cuMemAllocManaged, (ll_cu_deviceptr * ret_address, size_t bytes, unsigned int flags),
	      (ret_address, bytes, flags), bytes)

/* Returns the bytes of an allocation in rows without the padding of the last row, which the driver may omit. */
static uint64_t rows_bytes(uint64_t width_bytes, uint64_t height, uint64_t pitch_bytes)
{
	return height ? pitch_bytes * (height - 1) + width_bytes : 0;
}

/* The driver chooses the pitch, so the rows may be longer than was reserved. */
#define ALLOCATE_ROWS_HOOK(symbol, address, number)                                                                    \
	CHARGED_HOOK(symbol,                                                                                           \
		     (address * ret_address, number * ret_pitch_bytes, number width_bytes, number height,              \
		      unsigned int element_bytes),                                                                     \
		     (ret_address, ret_pitch_bytes, width_bytes, height, element_bytes),                               \
		     !ret_pitch_bytes ||                                                                               \
			 ll_charge_is_hopeless(ret_address, ll_footprint_pitched(width_bytes, height)),                \
		     ll_footprint_pitched(width_bytes, height), charge.target.dev,                                     \
		     ll_charge_correct(&charge, ll_footprint_pitched(*ret_pitch_bytes, height));                       \
		     ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address,                                            \
				    rows_bytes(width_bytes, height, *ret_pitch_bytes), 0))

ALLOCATE_ROWS_HOOK(cuMemAllocPitch, ll_cu_deviceptr_v1, unsigned int)
ALLOCATE_ROWS_HOOK(cuMemAllocPitch_v2, ll_cu_deviceptr, size_t)

#define FREE_HOOK(symbol, type)                                                                                        \
	LL_HOOK_EXPORT ll_cu_result symbol(type address)                                                               \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_charge_passes())                                                                                \
			return ll_real()->symbol(address);                                                             \
		LL_REENTRY_SCOPE();                                                                                    \
		struct ll_extent extent;                                                                               \
		bool is_plain = ll_extents_remove(LL_EXTENT_PLAIN, address, &extent);                                  \
		bool is_block = !is_plain && ll_pool_take(address, &extent);                                           \
		if (is_block && extent.is_backed)                                                                      \
			return ll_ordered_free_now(&extent);                                                           \
		ll_cu_result status =                                                                                  \
		    is_plain && extent.is_backed ? ll_plain_free(&extent) : ll_real()->symbol(address);                \
		if (is_plain)                                                                                          \
			ll_charge_freed(&extent, status);                                                              \
		if (is_block)                                                                                          \
			ll_pool_freed(&extent, status);                                                                \
		return status;                                                                                         \
	}

FREE_HOOK(cuMemFree, ll_cu_deviceptr_v1)
FREE_HOOK(cuMemFree_v2, ll_cu_deviceptr)

/* ---- arrays and mipmaps ---- */

/* Converts a descriptor of any version to the newest version. */
#define SHAPE_2D(d)                                                                                                    \
	{                                                                                                              \
		.width = (d)->width, .height = (d)->height, .format = (d)->format, .channels = (d)->channels           \
	}
#define SHAPE_3D(d)                                                                                                    \
	{                                                                                                              \
		.width = (d)->width, .height = (d)->height, .depth = (d)->depth, .format = (d)->format,                \
		.channels = (d)->channels, .flags = (d)->flags                                                         \
	}

/* Defines the hook of a function that makes an array of `descriptor`, a parameter. The driver reports the size of an
 * array only for arrays without memory. So the library computes the size from the tiles. */
#define CREATE_HOOK(symbol, kind, ret_handle, shape_of, levels, params, args)                                          \
	CHARGED_HOOK(symbol, params, args, !descriptor || !(ret_handle),                                               \
		     ll_footprint_array(&(struct ll_cu_array3d_descriptor)shape_of(descriptor), levels),               \
		     charge.target.dev, ll_charge_keep(&charge, kind, ll_extent_handle(*(ret_handle)), 0, 0))

#define CREATE_ARRAY_HOOK(symbol, shape_of, type)                                                                      \
	CREATE_HOOK(symbol, LL_EXTENT_ARRAY, ret_array, shape_of, 1,                                                   \
		    (struct ll_cu_array * *ret_array, const type *descriptor), (ret_array, descriptor))

CREATE_ARRAY_HOOK(cuArrayCreate, SHAPE_2D, struct ll_cu_array_descriptor_v1)
CREATE_ARRAY_HOOK(cuArrayCreate_v2, SHAPE_2D, struct ll_cu_array_descriptor)
CREATE_ARRAY_HOOK(cuArray3DCreate, SHAPE_3D, struct ll_cu_array3d_descriptor_v1)
CREATE_ARRAY_HOOK(cuArray3DCreate_v2, SHAPE_3D, struct ll_cu_array3d_descriptor)
CREATE_HOOK(cuMipmappedArrayCreate, LL_EXTENT_MIPMAP, ret_mipmap, SHAPE_3D, levels,
	    (struct ll_cu_mipmapped_array * *ret_mipmap, const struct ll_cu_array3d_descriptor *descriptor,
	     unsigned int levels),
	    (ret_mipmap, descriptor, levels))

/* Defines the hook of a function that frees the object of a handle. */
#define DESTROY_HOOK(symbol, kind, type)                                                                               \
	LL_HOOK_EXPORT ll_cu_result symbol(type *handle)                                                               \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		struct ll_extent extent;                                                                               \
		if (ll_charge_passes())                                                                                \
			return ll_real()->symbol(handle);                                                              \
		LL_REENTRY_SCOPE();                                                                                    \
		bool is_known = ll_extents_remove(kind, ll_extent_handle(handle), &extent);                            \
		ll_cu_result status = ll_real()->symbol(handle);                                                       \
		if (is_known)                                                                                          \
			ll_charge_freed(&extent, status);                                                              \
		return status;                                                                                         \
	}

DESTROY_HOOK(cuArrayDestroy, LL_EXTENT_ARRAY, struct ll_cu_array)
DESTROY_HOOK(cuMipmappedArrayDestroy, LL_EXTENT_MIPMAP, struct ll_cu_mipmapped_array)

/* ---- memory that another API or process made ---- */

/*
 * Memory of another API (Vulkan, a file descriptor) is not charged yet, so the importer is charged its size. exported.c
 * handles memory of another CUDA process.
 */
CHARGED_HOOK(cuImportExternalMemory,
	     (struct ll_cu_external_memory * *ret_memory, const struct ll_cu_external_memory_desc *descriptor),
	     (ret_memory, descriptor), !descriptor, ll_footprint_plain(descriptor->bytes), NULL,
	     ll_charge_keep(&charge, LL_EXTENT_EXTERNAL, ll_extent_handle(*ret_memory), 0, 0))

DESTROY_HOOK(cuDestroyExternalMemory, LL_EXTENT_EXTERNAL, struct ll_cu_external_memory)
