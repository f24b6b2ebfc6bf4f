/* Hooks for memory that processes share by the driver's legacy IPC, and for blocks of exported pools. The library
 * itself shares memory that can be moved. memory/exported.h explains the charges. */
#include "shim/interpose/hook.h"
#include "shim/memory/backed.h"
#include "shim/memory/charge.h"
#include "shim/memory/contexts.h"
#include "shim/memory/exported.h"
#include "shim/residency/link.h"
#include "shim/residency/shares.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

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

/* Puts the opened memory into the map. If the memory is opened twice, the driver returns the same address. */
static void keep_opened(const struct opening *opening, enum ll_extent_kind kind, uint64_t address, uint64_t bytes)
{
	struct ll_extent opened = {.kind = kind,
				   .address = address,
				   .bytes = kind == LL_EXTENT_OPENED ? 0 : bytes,
				   .dev = opening->target.dev,
				   .owner = kind == LL_EXTENT_OPENED ? opening->target.owner : 0,
				   .shared = opening->id};
	bool is_again = kind == LL_EXTENT_OPENED && ll_extents_change(LL_EXTENT_OPENED, address, add_opening, 0, NULL);
	if (is_again || !ll_charge_put(&opened))
		ll_exported_drop(opening->target.dev, opening->id);
}

/* Call it after the driver's call. Returns the driver's error, or LL_CUDA_ERROR_OUT_OF_MEMORY; then the caller must
 * close the memory again. */
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
	if (status == LL_CUDA_SUCCESS)
		keep_opened(opening, kind, *address, bytes);
	else
		ll_exported_drop(opening->target.dev, opening->id);
	return status;
}

/* ---- legacy IPC ---- */

/* Writes a line with the reason, because the program only gets the driver's error code. */
static void say_ipc_refused(void)
{
	static _Atomic bool is_said;
	if (!is_said && !atomic_exchange(&is_said, true))
		ll_say("an evictable program shares memory by cuIpcGetMemHandle only while loadlined answers");
}

/* Notes that the program has got a handle of the allocation. The address may be anywhere in the allocation. */
static void note_handle(ll_cu_deviceptr address, const struct ll_cu_ipc_mem_handle *handle)
{
	struct ll_extent plain;
	if (ll_extents_find_containing(address, &plain) && plain.kind == LL_EXTENT_PLAIN)
		ll_exported_as_bytes(LL_EXTENT_PLAIN, plain.address, handle, sizeof *handle);
}

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
	if (status == LL_CUDA_SUCCESS)
		note_handle(address, ret_handle);
	else if (is_ours && !ll_residency_is_served(plain.dev))
		say_ipc_refused();
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
		ll_exported_drop(before.dev, before.shared);
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
