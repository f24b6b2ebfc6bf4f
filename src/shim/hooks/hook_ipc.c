/* Memory that processes share by the driver's legacy IPC. Memory that can be moved the library shares by itself. */
#include "shim/interpose/hook.h"
#include "shim/memory/backed.h"
#include "shim/residency/link.h"
#include "shim/residency/shares.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

/* The program gets a bare error of the driver, so the line says why. */
static void say_ipc_refused(void)
{
	static _Atomic bool is_said;
	if (!is_said && !atomic_exchange(&is_said, true))
		ll_say("an evictable program shares memory by cuIpcGetMemHandle only while a mover serves the card");
}

LL_HOOK_EXPORT ll_cu_result cuIpcGetMemHandle(struct ll_cu_ipc_mem_handle *ret_handle, ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuIpcGetMemHandle);
	struct ll_extent plain;
	/* The driver shares no memory of pools in this way, so the library does not either. */
	bool is_ours = !ll_reentry_is_inside() && ret_handle &&
		       ll_backed_find(address, &plain) == LL_BACKED_ALLOCATION && plain.kind == LL_EXTENT_PLAIN;
	if (is_ours && ll_residency_has_mover(plain.dev)) {
		LL_REENTRY_SCOPE();
		return ll_shares_export(&plain, ret_handle);
	}
	ll_cu_result status = ll_real()->cuIpcGetMemHandle(ret_handle, address);
	if (status != LL_CUDA_SUCCESS && is_ours)
		say_ipc_refused();
	return status;
}

static bool is_ours(const struct ll_cu_ipc_mem_handle *handle)
{
	return ll_device_state_is_governed() && !ll_reentry_is_inside() && ll_shares_is_letter(handle);
}

LL_HOOK_EXPORT ll_cu_result cuIpcOpenMemHandle(ll_cu_deviceptr *ret_address, struct ll_cu_ipc_mem_handle handle,
					       unsigned int flags)
{
	LL_DRIVER_CALL(cuIpcOpenMemHandle);
	if (!is_ours(&handle))
		return ll_real()->cuIpcOpenMemHandle(ret_address, handle, flags);
	LL_REENTRY_SCOPE();
	return ll_shares_open(&handle, flags, ret_address);
}

LL_HOOK_EXPORT ll_cu_result cuIpcOpenMemHandle_v2(ll_cu_deviceptr *ret_address, struct ll_cu_ipc_mem_handle handle,
						  unsigned int flags)
{
	LL_DRIVER_CALL(cuIpcOpenMemHandle_v2);
	if (!is_ours(&handle))
		return ll_real()->cuIpcOpenMemHandle_v2(ret_address, handle, flags);
	LL_REENTRY_SCOPE();
	return ll_shares_open(&handle, flags, ret_address);
}

LL_HOOK_EXPORT ll_cu_result cuIpcCloseMemHandle(ll_cu_deviceptr address)
{
	LL_DRIVER_CALL(cuIpcCloseMemHandle);
	ll_cu_result status;
	if (ll_device_state_is_governed() && !ll_reentry_is_inside() && ll_shares_close(address, &status))
		return status;
	return ll_real()->cuIpcCloseMemHandle(address);
}
