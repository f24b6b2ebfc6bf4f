#include <stdatomic.h>

#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/residency/residency.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

/* ---- questions about an address ---- */

/* Hooks of functions that query an address. In an evictable program they answer for movable allocations as for any
 * other allocation (memory/backing.c). */

LL_HOOK_EXPORT ll_cu_result cuMemGetAddressRange_v2(ll_cu_deviceptr *ret_base, size_t *ret_bytes,
						    ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuMemGetAddressRange_v2);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_GAP)
		address = LL_BACKED_NOWHERE;
	ll_cu_result status = ll_real()->cuMemGetAddressRange_v2(ret_base, ret_bytes, address);
	if (what != LL_BACKED_ALLOCATION || status != LL_CUDA_SUCCESS)
		return status;
	if (ret_base)
		*ret_base = plain.address;
	if (ret_bytes)
		*ret_bytes = plain.bytes;
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerGetAttribute(void *ret_value, enum ll_cu_pointer_attribute attribute,
						  ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerGetAttribute);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_NOT || !ret_value)
		return ll_real()->cuPointerGetAttribute(ret_value, attribute, address);
	LL_REENTRY_SCOPE();
	if (what == LL_BACKED_GAP)
		return ll_real()->cuPointerGetAttribute(ret_value, attribute, LL_BACKED_NOWHERE);
	return ll_backed_attribute(&plain, attribute, ret_value)
		   ? LL_CUDA_SUCCESS
		   : ll_real()->cuPointerGetAttribute(ret_value, attribute, address);
}

/* For an address that is in no allocation, the driver returns the address itself as device and host pointer. */
static ll_cu_result get_of_gap(unsigned int count, enum ll_cu_pointer_attribute *attributes, void **ret_values,
			       ll_cu_deviceptr address)
{
	ll_cu_result status = ll_real()->cuPointerGetAttributes(count, attributes, ret_values, LL_BACKED_NOWHERE);
	for (unsigned int i = 0; status == LL_CUDA_SUCCESS && i < count; i++) {
		ll_cu_deviceptr *told = ret_values[i];
		bool is_address = attributes[i] == LL_CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
				  attributes[i] == LL_CU_POINTER_ATTRIBUTE_HOST_POINTER;
		if (told && is_address && *told == LL_BACKED_NOWHERE)
			*told = address;
	}
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerGetAttributes(unsigned int count, enum ll_cu_pointer_attribute *attributes,
						   void **ret_values, ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerGetAttributes);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	if (what == LL_BACKED_NOT)
		return ll_real()->cuPointerGetAttributes(count, attributes, ret_values, address);
	LL_REENTRY_SCOPE();
	if (what == LL_BACKED_GAP)
		return get_of_gap(count, attributes, ret_values, address);
	ll_cu_result status = ll_real()->cuPointerGetAttributes(count, attributes, ret_values, address);
	for (unsigned int i = 0; status == LL_CUDA_SUCCESS && i < count; i++) {
		if (ret_values[i])
			ll_backed_attribute(&plain, attributes[i], ret_values[i]);
	}
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuPointerSetAttribute(const void *value, enum ll_cu_pointer_attribute attribute,
						  ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuPointerSetAttribute);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	bool is_hidden = what == LL_BACKED_ALLOCATION || what == LL_BACKED_GAP;
	bool is_ours = what == LL_BACKED_ALLOCATION && value && attribute == LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
	if (!is_ours)
		return ll_real()->cuPointerSetAttribute(value, attribute, is_hidden ? LL_BACKED_NOWHERE : address);
	LL_REENTRY_SCOPE();
	return ll_backed_set_synced(&plain, *(const unsigned int *)value != 0);
}

/* The driver treats mapped memory as memory of the host. */
static void *hide_from_host(void *pointer)
{
	return ll_reentry_is_inside() ? pointer : ll_backed_hide_pointer(pointer);
}

LL_HOOK_EXPORT ll_cu_result cuMemHostGetDevicePointer_v2(ll_cu_deviceptr *ret_address, void *pointer,
							 unsigned int flags)
{
	return ll_real()->cuMemHostGetDevicePointer_v2(ret_address, hide_from_host(pointer), flags);
}

LL_HOOK_EXPORT ll_cu_result cuMemHostGetFlags(unsigned int *ret_flags, void *pointer)
{
	return ll_real()->cuMemHostGetFlags(ret_flags, hide_from_host(pointer));
}

/* ---- memory for others ---- */

LL_HOOK_EXPORT ll_cu_result cuMemGetHandleForAddressRange(void *ret_handle, ll_cu_deviceptr address, size_t bytes,
							  enum ll_cu_mem_range_handle_type type,
							  unsigned long long flags)
{
	LL_DRIVER_CALL(cuMemGetHandleForAddressRange);
	struct ll_extent plain;
	enum ll_backed what = ll_reentry_is_inside() ? LL_BACKED_NOT : ll_backed_find(address, &plain);
	ll_cu_result status = ll_real()->cuMemGetHandleForAddressRange(
	    ret_handle, what == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address, bytes, type, flags);
	if (status == LL_CUDA_SUCCESS && what == LL_BACKED_ALLOCATION)
		ll_backed_note_exported(&plain);
	else if (status == LL_CUDA_SUCCESS)
		ll_physical_pin_range(address, bytes);
	return status;
}

/* ---- peers ---- */

LL_HOOK_EXPORT ll_cu_result cuCtxEnablePeerAccess(struct ll_cu_context *peer, unsigned int flags)
{
	LL_DRIVER_CALL(cuCtxEnablePeerAccess);
	ll_cu_result status = ll_real()->cuCtxEnablePeerAccess(peer, flags);
	if (status != LL_CUDA_SUCCESS || ll_reentry_is_inside())
		return status;
	LL_REENTRY_SCOPE();
	return ll_peers_enabled(peer);
}

LL_HOOK_EXPORT ll_cu_result cuCtxDisablePeerAccess(struct ll_cu_context *peer)
{
	LL_DRIVER_CALL(cuCtxDisablePeerAccess);
	ll_cu_result status = ll_real()->cuCtxDisablePeerAccess(peer);
	if (status != LL_CUDA_SUCCESS || ll_reentry_is_inside())
		return status;
	LL_REENTRY_SCOPE();
	ll_peers_disabled(peer);
	return status;
}

/* ---- legacy IPC, and blocks of exported pools ---- */

/* Hooks for memory that processes share by the driver's legacy IPC, and for blocks of exported pools. The library
 * itself shares memory that can be moved. memory/exported.c explains the charges. */

/* ---- opening ---- */

struct opening {
	struct ll_charge_target target;
	uint64_t id; /* 0: not governed */
};

/* Call it before the memory is opened. Adds a use of the memory by this process, so that it stays charged if its
 * exporter frees it meanwhile. */
static ll_cu_result begin_opening(const void *handle, size_t size, struct opening *ret_opening)
{
	struct opening opening = {.target = ll_charge_target_current()};
	ll_cu_result status = opening.target.refusal;
	if (opening.target.dev) {
		opening.id = ll_exported_id_of_bytes(opening.target.dev, handle, size);
		status = ll_exported_hold(opening.target.dev, opening.id, 0);
	}
	*ret_opening = opening;
	return status;
}

static bool add_opening(struct ll_extent *opened, uint64_t unused)
{
	(void)unused;
	opened->count++;
	return true;
}

/* Call it after the driver's call. Puts the opened memory into the map. Returns the driver's error, or
 * LL_CUDA_ERROR_OUT_OF_MEMORY; then the caller must close the memory again. */
static ll_cu_result end_opening(const struct opening *opening, ll_cu_result status, enum ll_extent_kind kind,
				const ll_cu_deviceptr *address)
{
	ll_cu_deviceptr base;
	size_t bytes = 0;
	if (!opening->id)
		return status;
	if (status == LL_CUDA_SUCCESS && ll_real()->cuMemGetAddressRange_v2(&base, &bytes, *address) == LL_CUDA_SUCCESS)
		status = ll_exported_set_size(opening->target.dev, opening->id,
					      ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES));
	bool is_kept = status == LL_CUDA_SUCCESS, is_ipc = kind == LL_EXTENT_OPENED;
	struct ll_extent opened = {.kind = kind,
				   .address = is_kept ? *address : 0,
				   .bytes = is_ipc ? 0 : bytes,
				   .dev = opening->target.dev,
				   .owner = is_ipc ? opening->target.owner : 0,
				   .shared = opening->id};
	/* If the memory is opened twice, the driver returns the same address. */
	bool is_again = is_kept && is_ipc && ll_extents_change(kind, opened.address, add_opening, 0, NULL);
	if (!is_kept || is_again || !ll_charge_put(&opened))
		ll_exported_drop(opening->id);
	return status;
}

/* ---- legacy IPC ---- */

LL_HOOK_EXPORT ll_cu_result cuIpcGetMemHandle(struct ll_cu_ipc_mem_handle *ret_handle, ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuIpcGetMemHandle);
	struct ll_extent plain;
	if (ll_charge_passes() || !ret_handle)
		return ll_real()->cuIpcGetMemHandle(ret_handle, address);
	LL_REENTRY_SCOPE();
	/* The library does not share memory of pools in this way, because the driver does not. */
	bool is_ours = ll_backed_find(address, &plain) == LL_BACKED_ALLOCATION && plain.kind == LL_EXTENT_PLAIN;
	ll_cu_result status = is_ours && ll_residency_is_served(plain.dev)
				  ? ll_shares_export(&plain, ret_handle)
				  : ll_real()->cuIpcGetMemHandle(ret_handle, address);
	static _Atomic bool is_said;
	if (status == LL_CUDA_SUCCESS) {
		/* The address may be anywhere in the allocation. */
		if (ll_extents_find_containing(address, &plain) && plain.kind == LL_EXTENT_PLAIN)
			ll_exported_as_bytes(LL_EXTENT_PLAIN, plain.address, ret_handle, sizeof *ret_handle);
	} else if (is_ours && !ll_residency_is_served(plain.dev) && !atomic_exchange(&is_said, true)) {
		/* The program only gets the driver's error code. */
		ll_say("an evictable program shares memory by cuIpcGetMemHandle only while loadlined answers");
	}
	return status;
}

static ll_cu_result close_opened(ll_cu_deviceptr address)
{
	ll_cu_result status;
	return ll_shares_close(address, &status) ? status : ll_real()->cuIpcCloseMemHandle(address);
}

/* Defines the hook of a function that opens a handle. If the library made the handle, the library opens it. */
#define OPEN_HOOK(symbol)                                                                                              \
	LL_HOOK_EXPORT ll_cu_result symbol(ll_cu_deviceptr *ret_address, struct ll_cu_ipc_mem_handle handle,           \
					   unsigned int flags)                                                         \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		struct opening opening;                                                                                \
		if (ll_charge_passes() || !ret_address)                                                                \
			return ll_real()->symbol(ret_address, handle, flags);                                          \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_cu_result status = begin_opening(&handle, sizeof handle, &opening);                                 \
		if (status != LL_CUDA_SUCCESS)                                                                         \
			return status;                                                                                 \
		status = ll_shares_is_letter(&handle) ? ll_shares_import(&handle, flags, ret_address)                  \
						      : ll_real()->symbol(ret_address, handle, flags);                 \
		bool is_open = status == LL_CUDA_SUCCESS;                                                              \
		status = end_opening(&opening, status, LL_EXTENT_OPENED, ret_address);                                 \
		if (is_open && status != LL_CUDA_SUCCESS)                                                              \
			close_opened(*ret_address);                                                                    \
		return status;                                                                                         \
	}

OPEN_HOOK(cuIpcOpenMemHandle)
OPEN_HOOK(cuIpcOpenMemHandle_v2)

static bool drop_opening(struct ll_extent *opened, uint64_t unused)
{
	(void)unused;
	return opened->count-- > 0;
}

LL_HOOK_EXPORT ll_cu_result cuIpcCloseMemHandle(ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuIpcCloseMemHandle);
	struct ll_extent before;
	if (ll_charge_passes())
		return ll_real()->cuIpcCloseMemHandle(address);
	LL_REENTRY_SCOPE();
	ll_cu_result status = close_opened(address);
	if (status == LL_CUDA_SUCCESS && ll_extents_change(LL_EXTENT_OPENED, address, drop_opening, 0, &before) &&
	    !before.count)
		ll_exported_drop(before.shared);
	return status;
}

/* ---- blocks of exported pools ---- */

LL_HOOK_EXPORT ll_cu_result cuMemPoolExportPointer(struct ll_cu_mem_pool_pointer *ret_pointer, ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuMemPoolExportPointer);
	ll_cu_result status = ll_real()->cuMemPoolExportPointer(ret_pointer, address);
	if (status != LL_CUDA_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	ll_exported_as_bytes(LL_EXTENT_BLOCK, address, ret_pointer, sizeof *ret_pointer);
	return status;
}

/* The program frees imported memory in the same way as its own allocations. */
LL_HOOK_EXPORT ll_cu_result cuMemPoolImportPointer(ll_cu_deviceptr *ret_address, struct ll_cu_mem_pool *pool,
						   struct ll_cu_mem_pool_pointer *pointer)
{
	LL_DRIVER_CALL(cuMemPoolImportPointer);
	struct opening opening;
	if (ll_charge_passes() || !ret_address || !pointer)
		return ll_real()->cuMemPoolImportPointer(ret_address, pool, pointer);
	LL_REENTRY_SCOPE();
	ll_cu_result status = begin_opening(pointer, sizeof *pointer, &opening);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuMemPoolImportPointer(ret_address, pool, pointer);
	bool is_open = status == LL_CUDA_SUCCESS;
	status = end_opening(&opening, status, LL_EXTENT_PLAIN, ret_address);
	if (is_open && status != LL_CUDA_SUCCESS)
		ll_real()->cuMemFree_v2(*ret_address);
	return status;
}
