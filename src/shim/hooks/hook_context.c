/* Contexts take memory of the card, and all that is in them goes when they go. What the library remembers of streams
 * goes with these. */
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/memory/contexts.h"

/* ---- contexts ---- */

/* Hook of a function that makes a context on `device`, a parameter of it as ret_context is. */
#define MAKE_HOOK(symbol, params, args)                                                                                \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_charge_passes())                                                                                \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		LL_CONTEXT_CHANGE(change, ll_context_begin(device));                                                   \
		if (change.refusal)                                                                                    \
			return change.refusal;                                                                         \
		LL_CHARGED_CALL(status, change.dev, ll_real()->symbol args);                                           \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			ll_context_made(&change, *ret_context);                                                        \
		return change.refusal = status;                                                                        \
	}

/* The oldest, and the one after it. */
#define MAKE_HOOKS(symbol, params, args)                                                                               \
	MAKE_HOOK(symbol, params, args)                                                                                \
	MAKE_HOOK(symbol##_v2, params, args)

MAKE_HOOKS(cuCtxCreate, (struct ll_cu_context * *ret_context, unsigned int flags, ll_cu_device device),
	   (ret_context, flags, device))

MAKE_HOOK(cuCtxCreate_v3,
	  (struct ll_cu_context * *ret_context, struct ll_cu_exec_affinity_param *params, int param_count,
	   unsigned int flags, ll_cu_device device),
	  (ret_context, params, param_count, flags, device))

MAKE_HOOK(cuCtxCreate_v4,
	  (struct ll_cu_context * *ret_context, struct ll_cu_ctx_create_params *params, unsigned int flags,
	   ll_cu_device device),
	  (ret_context, params, flags, device))

MAKE_HOOKS(cuGLCtxCreate, (struct ll_cu_context * *ret_context, unsigned int flags, ll_cu_device device),
	   (ret_context, flags, device))

MAKE_HOOKS(cuVDPAUCtxCreate,
	   (struct ll_cu_context * *ret_context, unsigned int flags, ll_cu_device device, ll_vdp_device vdp_device,
	    ll_vdp_get_proc_address *vdp_get_proc_address),
	   (ret_context, flags, device, vdp_device, vdp_get_proc_address))

LL_HOOK_EXPORT ll_cu_result cuCtxDestroy(struct ll_cu_context *context)
{
	LL_DRIVER_CALL(cuCtxDestroy);
	if (ll_charge_passes())
		return ll_real()->cuCtxDestroy(context);
	LL_REENTRY_SCOPE();
	return ll_context_destroy(context, ll_real()->cuCtxDestroy);
}

LL_HOOK_EXPORT ll_cu_result cuCtxAttach(struct ll_cu_context **ret_context, unsigned int flags)
{
	LL_DRIVER_CALL(cuCtxAttach);
	if (ll_charge_passes())
		return ll_real()->cuCtxAttach(ret_context, flags);
	LL_REENTRY_SCOPE();
	return ll_context_attach(ret_context, flags);
}

LL_HOOK_EXPORT ll_cu_result cuCtxDetach(struct ll_cu_context *context)
{
	LL_DRIVER_CALL(cuCtxDetach);
	if (ll_charge_passes())
		return ll_real()->cuCtxDetach(context);
	LL_REENTRY_SCOPE();
	return ll_context_detach(context);
}

LL_HOOK_EXPORT ll_cu_result cuCtxDestroy_v2(struct ll_cu_context *context)
{
	LL_DRIVER_CALL(cuCtxDestroy_v2);
	if (ll_charge_passes())
		return ll_real()->cuCtxDestroy_v2(context);
	LL_REENTRY_SCOPE();
	return ll_context_destroy(context, ll_real()->cuCtxDestroy_v2);
}

LL_HOOK_EXPORT ll_cu_result cuDevicePrimaryCtxRetain(struct ll_cu_context **ret_context, ll_cu_device device)
{
	LL_DRIVER_CALL(cuDevicePrimaryCtxRetain);
	if (ll_charge_passes())
		return ll_real()->cuDevicePrimaryCtxRetain(ret_context, device);
	LL_REENTRY_SCOPE();
	return ll_context_retain(ret_context, device);
}

LL_HOOK_EXPORT ll_cu_result cuDevicePrimaryCtxRelease(ll_cu_device device)
{
	LL_DRIVER_CALL(cuDevicePrimaryCtxRelease);
	if (ll_charge_passes())
		return ll_real()->cuDevicePrimaryCtxRelease(device);
	LL_REENTRY_SCOPE();
	return ll_context_release(device, ll_real()->cuDevicePrimaryCtxRelease);
}

LL_HOOK_EXPORT ll_cu_result cuDevicePrimaryCtxRelease_v2(ll_cu_device device)
{
	LL_DRIVER_CALL(cuDevicePrimaryCtxRelease_v2);
	if (ll_charge_passes())
		return ll_real()->cuDevicePrimaryCtxRelease_v2(device);
	LL_REENTRY_SCOPE();
	return ll_context_release(device, ll_real()->cuDevicePrimaryCtxRelease_v2);
}

LL_HOOK_EXPORT ll_cu_result cuDevicePrimaryCtxReset(ll_cu_device device)
{
	LL_DRIVER_CALL(cuDevicePrimaryCtxReset);
	if (ll_charge_passes())
		return ll_real()->cuDevicePrimaryCtxReset(device);
	LL_REENTRY_SCOPE();
	return ll_context_reset(device, ll_real()->cuDevicePrimaryCtxReset);
}

LL_HOOK_EXPORT ll_cu_result cuDevicePrimaryCtxReset_v2(ll_cu_device device)
{
	LL_DRIVER_CALL(cuDevicePrimaryCtxReset_v2);
	if (ll_charge_passes())
		return ll_real()->cuDevicePrimaryCtxReset_v2(device);
	LL_REENTRY_SCOPE();
	return ll_context_reset(device, ll_real()->cuDevicePrimaryCtxReset_v2);
}

LL_HOOK_EXPORT ll_cu_result cuGreenCtxCreate(struct ll_cu_green_context **ret_green,
					     struct ll_cu_resource_desc *resources, ll_cu_device device,
					     unsigned int flags)
{
	LL_DRIVER_CALL(cuGreenCtxCreate);
	if (ll_charge_passes())
		return ll_real()->cuGreenCtxCreate(ret_green, resources, device, flags);
	LL_REENTRY_SCOPE();
	return ll_context_create_green(ret_green, resources, device, flags);
}

LL_HOOK_EXPORT ll_cu_result cuGreenCtxDestroy(struct ll_cu_green_context *green)
{
	LL_DRIVER_CALL(cuGreenCtxDestroy);
	if (ll_charge_passes())
		return ll_real()->cuGreenCtxDestroy(green);
	LL_REENTRY_SCOPE();
	return ll_context_destroy_green(green);
}

LL_HOOK_EXPORT ll_cu_result cuCtxSetLimit(enum ll_cu_limit limit, size_t value)
{
	LL_DRIVER_CALL(cuCtxSetLimit);
	if (ll_charge_passes())
		return ll_real()->cuCtxSetLimit(limit, value);
	LL_REENTRY_SCOPE();
	return ll_context_set_limit(limit, value);
}

/* ---- streams ---- */

/* Timing events in a stream that is gone would be calls with a dead handle. */
#define DESTROY_HOOK(symbol)                                                                                           \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_stream *stream)                                                \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_reentry_is_inside() || !ll_device_state_settings())                                             \
			return ll_real()->symbol(stream);                                                              \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_launch_forget_stream(stream);                                                                       \
		return ll_real()->symbol(stream);                                                                      \
	}

DESTROY_HOOK(cuStreamDestroy)
DESTROY_HOOK(cuStreamDestroy_v2)
