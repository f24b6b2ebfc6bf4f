/* Hooks of contexts and streams. Contexts take memory of the card. When a context ends, its memory and its streams end,
 * and the library forgets them. */
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"
#include "shim/residency/residency.h"

/* ---- contexts ---- */

/* Notes a new context. A program with a context can be stopped even if it has no memory to evict yet. */
static ll_cu_result note_context(ll_cu_result status, ll_cu_device device)
{
	if (status == LL_CUDA_SUCCESS)
		ll_residency_link_join(device);
	return status;
}

/* Others leave for a context of a tenant with a request, as for an allocation. */
static bool wait_for_room(struct ll_context_change *change, unsigned *grants)
{
	return change->charge.bytes && ll_device_state_settings()->memory_request_bytes &&
	       ll_residency_make_room(change->dev, change->charge.bytes, false, grants);
}

/* Returns whether a call that makes a context is passed to the driver unchanged. */
static bool context_passes(void)
{
	bool passes = ll_charge_passes();
	if (passes)
		ll_device_state_say_ungoverned();
	return passes;
}

/* Defines the hook of a function that makes a context. device and ret_context are parameters of the function. */
#define MAKE_HOOK(symbol, params, args)                                                                                \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (context_passes())                                                                                  \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		LL_CONTEXT_CHANGE(change, ll_context_begin(device));                                                   \
		if (change.refusal)                                                                                    \
			return change.refusal;                                                                         \
		unsigned grants = 0;                                                                                   \
		LL_CHARGED_CALL(status, change.dev, ll_real()->symbol args);                                           \
		while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && wait_for_room(&change, &grants))                       \
			status = ll_real()->symbol args;                                                               \
		if (status == LL_CUDA_SUCCESS)                                                                         \
			ll_context_made(&change, *ret_context);                                                        \
		return change.refusal = note_context(status, device);                                                  \
	}

/* Defines the hooks of the oldest variant and of the next one. */
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

/* Defines the hook of a function. If `passes` is false, `governed` makes the call. */
#define GOVERNED_HOOK_UNLESS(passes, symbol, params, args, governed)                                                   \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (passes())                                                                                          \
			return ll_real()->symbol args;                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		return governed;                                                                                       \
	}

#define GOVERNED_HOOK(symbol, params, args, governed)                                                                  \
	GOVERNED_HOOK_UNLESS(ll_charge_passes, symbol, params, args, governed)

/* Defines the hook of a function that ends a context or a card's primary context. */
#define END_HOOK(symbol, type, what, end) GOVERNED_HOOK(symbol, (type what), (what), end(what, ll_real()->symbol))

END_HOOK(cuCtxDestroy, struct ll_cu_context *, context, ll_context_destroy)
END_HOOK(cuCtxDestroy_v2, struct ll_cu_context *, context, ll_context_destroy)
END_HOOK(cuDevicePrimaryCtxRelease, ll_cu_device, device, ll_context_release)
END_HOOK(cuDevicePrimaryCtxRelease_v2, ll_cu_device, device, ll_context_release)
END_HOOK(cuDevicePrimaryCtxReset, ll_cu_device, device, ll_context_reset)
END_HOOK(cuDevicePrimaryCtxReset_v2, ll_cu_device, device, ll_context_reset)

GOVERNED_HOOK(cuCtxAttach, (struct ll_cu_context * *ret_context, unsigned int flags), (ret_context, flags),
	      ll_context_attach(ret_context, flags))
GOVERNED_HOOK(cuCtxDetach, (struct ll_cu_context * context), (context), ll_context_detach(context))
GOVERNED_HOOK_UNLESS(context_passes, cuDevicePrimaryCtxRetain,
		     (struct ll_cu_context * *ret_context, ll_cu_device device), (ret_context, device),
		     note_context(ll_context_retain(ret_context, device, wait_for_room), device))
GOVERNED_HOOK_UNLESS(context_passes, cuGreenCtxCreate,
		     (struct ll_cu_green_context * *ret_green, struct ll_cu_resource_desc *resources,
		      ll_cu_device device, unsigned int flags),
		     (ret_green, resources, device, flags),
		     ll_context_create_green(ret_green, resources, device, flags))
GOVERNED_HOOK(cuGreenCtxDestroy, (struct ll_cu_green_context * green), (green), ll_context_destroy_green(green))
GOVERNED_HOOK(cuCtxSetLimit, (enum ll_cu_limit limit, size_t value), (limit, value), ll_context_set_limit(limit, value))

/* ---- streams ---- */

/* Defines the hook of a function that destroys a stream. After the call no timing event may be recorded in the stream,
 * because its handle is dead. */
#define DESTROY_HOOK(symbol)                                                                                           \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_stream *stream)                                                \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_reentry_is_inside() || !ll_device_state_settings())                                             \
			return ll_real()->symbol(stream);                                                              \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_launch_forget_stream(stream);                                                                       \
		ll_movable_pools_forget_stream(stream);                                                                \
		ll_pools_forget_stream(stream);                                                                        \
		return ll_real()->symbol(stream);                                                                      \
	}

DESTROY_HOOK(cuStreamDestroy)
DESTROY_HOOK(cuStreamDestroy_v2)

/* ---- host functions ---- */

#define HOST_FUNCTION_HOOK(symbol, its_stream)                                                                         \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_stream *stream, ll_cu_host_fn function, void *user)            \
	{                                                                                                              \
		ll_launch_note_gap(its_stream, true);                                                                  \
		struct ll_host_function *copy =                                                                        \
		    ll_reentry_is_inside()                                                                             \
			? NULL                                                                                         \
			: ll_host_function_new(its_stream,                                                             \
					       (struct ll_host_function){.function = function, .user = user});         \
		return copy ? ll_real()->symbol(stream, ll_host_function_run, copy)                                    \
			    : ll_real()->symbol(stream, function, user);                                               \
	}

#define HOST_CALLBACK_HOOK(symbol, its_stream)                                                                         \
	LL_HOOK_EXPORT ll_cu_result symbol(struct ll_cu_stream *stream, ll_cu_stream_callback callback, void *user,    \
					   unsigned int flags)                                                         \
	{                                                                                                              \
		ll_launch_note_gap(its_stream, true);                                                                  \
		struct ll_host_function *copy =                                                                        \
		    ll_reentry_is_inside()                                                                             \
			? NULL                                                                                         \
			: ll_host_function_new(its_stream,                                                             \
					       (struct ll_host_function){.callback = callback, .user = user});         \
		return copy ? ll_real()->symbol(stream, ll_host_callback_run, copy, flags)                             \
			    : ll_real()->symbol(stream, callback, user, flags);                                        \
	}

HOST_FUNCTION_HOOK(cuLaunchHostFunc, stream)
HOST_FUNCTION_HOOK(cuLaunchHostFunc_ptsz, ll_stream_per_thread(stream))
HOST_CALLBACK_HOOK(cuStreamAddCallback, stream)
HOST_CALLBACK_HOOK(cuStreamAddCallback_ptsz, ll_stream_per_thread(stream))
